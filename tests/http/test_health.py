"""`/health/ready` on real servers: when it says yes, and what it says before that, to whom."""

import httpx
import pytest

from antiphon.testing import ControlledCheckpoint
from controlled_server import controlled_server
from server_process import HANG_GUARD_S, running_server

READY = "/health/ready"


@pytest.fixture
def starting(tmp_path):
    """A server with keys that holds the load of `tts` back, while `asr` cannot be loaded."""
    held, broken = (ControlledCheckpoint(tmp_path / name) for name in ("tts", "asr"))
    held.hold("load")
    broken.fail("load")
    with controlled_server(tmp_path, parallel=True, lazy_load=False, api_keys=["a-key"]) as server:
        server.client.headers["authorization"] = "Bearer a-key"
        held.wait_for("load")
        yield server


def test_a_server_is_ready_once_its_models_have_been_in_memory(starting):
    early = starting.client.get(READY)
    assert (early.status_code, early.json()["error"]["code"], early.headers["retry-after"]) == (503, "starting", "1")
    assert {"tts", "asr"} <= set(early.json()["missing"])

    starting.checkpoints["tts"].release("load")
    assert starting.speak("loaded by now").status_code == 200
    assert starting.client.get(READY).json()["missing"] == ["asr"]

    (starting.checkpoints["asr"].path / "load.fail").unlink()
    assert starting.transcribe().status_code == 200
    assert starting.speak("loaded by now", model="org/tts one").status_code == 200
    ready = starting.client.get(READY)
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


def test_a_stranger_is_told_how_many_are_missing_and_not_which(starting):
    told = httpx.get(starting.process.url + READY, timeout=HANG_GUARD_S)

    assert (told.status_code, told.json()["missing"]) == (503, None)
    assert "tts" not in told.text
    assert httpx.get(f"{starting.process.url}/health", timeout=HANG_GUARD_S).status_code == 200
    starting.checkpoints["tts"].release("load")


def test_a_server_without_eager_models_is_ready_at_once(tmp_path):
    with running_server(tmp_path, {"models": []}) as server:
        assert httpx.get(server.url + READY, timeout=HANG_GUARD_S).status_code == 200
