"""Engines that stand still: their clients leave, and the model is of use again all the same."""

import os
import signal

import psutil
import pytest

from conformance_client import eventually
from controlled_server import controlled_server
from isolated_server import worker_of
from leaving_client import asking_for_speech
from refusals import assert_refused
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


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/v1/models/unload?busy_timeout_ms=1", {"id": "tts"}),
        ("/v1/tasks/unload_models", {"model_ids": ["tts"]}),
        ("/v1/tasks/unload_all_models", {}),
    ],
)
def test_an_engine_that_hangs_is_unloaded_by_force(tmp_path, route, body):
    with controlled_server(tmp_path, parallel=False, isolation="process", ui_management=True) as server:
        tts = server.checkpoints["tts"]
        assert server.speak("before").status_code == 200
        stopped = worker_of(tts)
        with siege_of(server).watched(max_growth_bytes=16 * MIB):
            with tts.held("run", "held"):
                held = server.later("held")
                tts.wait_for("run", text="held")
                os.kill(stopped, signal.SIGSTOP)
                queued = server.later("queued")
                eventually(lambda: queue_of(server), lambda queue: len(queue) == 1, "a request that waits")
                unloaded = server.client.post(route, json={**body, "force": True})
            assert unloaded.status_code == 200, unloaded.text
            for answer in (held.result(), queued.result()):
                assert_refused(answer, 503, code="server_busy")
                assert "unloaded by force" in answer.json()["error"]["message"]
        assert not psutil.pid_exists(stopped)
        assert worker_of(tts) != stopped
        assert not tts.events("run", "queued")


def queue_of(server):
    return server.client.get("/v1/status").json()["models"][0]["queue"]
