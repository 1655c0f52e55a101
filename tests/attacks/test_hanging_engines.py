"""Engines that stand still: their clients leave, and the model is of use again all the same."""

import os
import signal

from controlled_server import controlled_server
from isolated_server import worker_of
from leaving_client import asking_for_speech
from siege import MIB, siege_of


def test_an_engine_that_hangs_after_its_client_left_is_replaced(tmp_path):
    with controlled_server(tmp_path, parallel=False, isolation="process", cancel_timeout_ms=500) as server:
        tts = server.checkpoints["tts"]
        assert server.speak("before").status_code == 200
        stopped = worker_of(tts)
        with (
            siege_of(server).watched(max_growth_bytes=16 * MIB),  # it ends with a request to the model
            tts.held("run", "held"),
            asking_for_speech(server.process.url, {"model": "tts", "input": "held"}),
        ):
            tts.wait_for("run", text="held")
            os.kill(stopped, signal.SIGSTOP)
        assert worker_of(tts) != stopped
