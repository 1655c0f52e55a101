"""Engines that hang in worker processes: they are stopped, and nobody else waits for them (over real HTTP)."""

import psutil
import pytest

from conformance_client import eventually
from isolated_server import isolated_server, state_of, worker_of
from refusals import assert_refused

OTHER = "org/tts one"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with isolated_server(tmp_path_factory.mktemp("limits"), teardown_timeout_ms=300) as server:
        yield server


@pytest.fixture(autouse=True)
def _whole(server):
    """Every test finds and leaves models that work."""
    for model in ("tts", OTHER):
        assert server.speak("before", model=model).status_code == 200
    yield
    assert server.speak("after").status_code == 200


def test_a_run_that_hangs_is_refused_and_its_worker_replaced(server):
    before = worker_of(server.checkpoints["tts"])
    with server.steered("run.hang.stuck"):
        assert_refused(server.speak("stuck", run_timeout_ms=300), 504, code="run_timeout")
    assert server.speak("next").status_code == 200
    assert worker_of(server.checkpoints["tts"]) != before
    assert not psutil.pid_exists(before)


def test_the_limit_may_stand_in_the_query_too(server):
    with server.steered("run.hang.stuck"):
        answer = server.client.post("/v1/audio/speech?run_timeout_ms=300", json={"model": "tts", "input": "stuck"})
    assert_refused(answer, 504, code="run_timeout")


def test_neighbours_in_the_same_worker_are_told_that_it_died_and_other_models_are_not_touched(server):
    tts, other = server.checkpoints["tts"], server.checkpoints[OTHER]
    with other.held("run", "held"), tts.held("run", "neighbour"), server.steered("run.hang.stuck"):
        untouched, neighbour = server.later("held", model=OTHER), server.later("neighbour")
        tts.wait_for("run", text="neighbour")
        other.wait_for("run", text="held")
        assert_refused(server.speak("stuck", run_timeout_ms=300), 504, code="run_timeout")
        assert_refused(neighbour.result(), 503, code="worker_died")
        assert not untouched.done()
    assert untouched.result().status_code == 200


def test_an_engine_that_stops_when_it_is_told_to_keeps_its_worker(server):
    before = worker_of(server.checkpoints["tts"])
    with server.steered("run.cancellable"), server.checkpoints["tts"].held("run", "slow"):
        assert_refused(server.speak("slow", run_timeout_ms=300), 504, code="run_timeout")
        assert server.speak("next").status_code == 200
    assert worker_of(server.checkpoints["tts"]) == before


def test_an_unload_behind_a_hanging_run_is_refused_in_time_and_changes_nothing(server):  # QUE-06
    tts = server.checkpoints["tts"]
    with server.steered("run.hang.stuck-1"):
        stuck = server.later("stuck-1")
        tts.wait_for("run", text="stuck-1")
        refused = server.client.post("/v1/models/unload?busy_timeout_ms=100", json={"id": "tts"})
        assert_refused(refused, 503, code="server_busy")
        assert server.speak("hello", model=OTHER).status_code == 200
        assert server.client.get("/health").status_code == 200
        assert state_of(server)["loaded"] is True
        assert server.speak("spare slot").status_code == 200
        psutil.Process(worker_of(tts)).kill()
        assert_refused(stuck.result(), 503, code="worker_died")


@pytest.mark.parametrize("step", ["run", "load"])
def test_code_that_keeps_the_gil_stops_nobody_else(server, step):  # QUE-07
    tts = server.checkpoints["tts"]
    if step == "load":
        server.client.post("/v1/models/unload", json={"id": "tts"})
    before = len(tts.events(step))
    with server.steered(f"{step}.gil", "3000"):
        busy = server.later("busy")
        tts.wait_for(step, before + 1)
        assert server.client.get("/health").status_code == 200
        assert server.client.get("/v1/status").status_code == 200
        assert server.speak("hello", model=OTHER).status_code == 200
        assert not busy.done()
        assert busy.result().status_code == 200


def test_a_run_that_keeps_the_gil_is_stopped_all_the_same(server):
    with server.steered("run.gil.stuck", "600000"):
        assert_refused(server.speak("stuck", run_timeout_ms=300), 504, code="run_timeout")
        assert server.speak("next").status_code == 200


def test_a_teardown_that_hangs_is_ended(server):
    tts = server.checkpoints["tts"]
    before = worker_of(tts)
    with server.steered("destroy.hang"):
        unloaded = server.client.post("/v1/models/unload", json={"id": "tts"}).json()
        assert (unloaded["id"], unloaded["loaded"], unloaded["memory"]["after_bytes"]) == ("tts", False, 0)
        assert not psutil.pid_exists(before)


def test_a_load_that_hangs_fails_in_time_and_the_next_is_not_delayed(server):
    tts = server.checkpoints["tts"]
    registration = {"id": "limited", "family": "controlled", "path": str(tts.path), "task": "tts"}
    with server.steered("load.hang"):
        load = server.client.post("/v1/models/load", json={**registration, "load_timeout_ms": 3000})
        assert_refused(load, 500, code="load_failed")
        assert "load_timeout_ms" in load.json()["error"]["message"]
    assert server.client.post("/v1/models/load", json={**registration, "load_timeout_ms": 0}).status_code == 200


def test_the_status_shows_what_a_worker_takes(server):
    tts = server.checkpoints["tts"]
    server.client.post("/v1/models/unload", json={"id": "tts"})
    assert state_of(server)["resident_bytes"] is None
    tts.set("bytes", str(64 * 2**20))
    try:
        assert server.speak("hello").status_code == 200
        taken = eventually(lambda: state_of(server)["resident_bytes"], lambda it: it is not None, "a measurement")
    finally:
        tts.unset("bytes")
    assert taken > 64 * 2**20
