"""Texts that cost an engine's normaliser a minute, in a process of its own: the server answers meanwhile (SEC-07)."""

import httpx
import pytest

from engine_server import SPEECH
from server_process import HANG_GUARD_S

pytestmark = pytest.mark.engine

HOSTILE = {
    "dots": "a." * 49_999,
    "digits": "1," * 40_000,
    "run": "a" * 99_999,
    "space": " " * 99_990 + "a",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_holds_up_neither_health_nor_whoever_comes_after_its_client(engines, name):
    def speak():
        with httpx.Client(base_url=engines.process.url, timeout=HANG_GUARD_S) as leaver:
            body = {"model": "piper", "input": HOSTILE[name], "stream_format": "audio", "response_format": "pcm"}
            with leaver.stream("POST", SPEECH, json=body) as answer:
                return len(next(answer.iter_raw()))

    assert engines.speak("Hello.").status_code == 200
    speaking = engines.threads.submit(speak)
    while not speaking.done():
        assert engines.client.get("/health").status_code == 200
    assert speaking.result() > 0
    assert engines.speak("The next.", busy_timeout_ms=30_000).status_code == 200
