"""Workers that die, whatever they are at: the server, the queue and the neighbours go on, over HTTP (DIS-05)."""

import json

import psutil
import pytest

from conformance_client import eventually
from isolated_server import children_of, doomed_server, isolated_server, kill_worker, state_of, worker_of
from refusals import assert_refused
from server_process import HANG_GUARD_S


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with isolated_server(tmp_path_factory.mktemp("isolated")) as server:
        yield server


@pytest.fixture(autouse=True)
def _whole(server):
    """Every test finds models that work, and whose last request succeeded."""
    assert server.speak("before").status_code == 200
    yield
    assert server.speak("after").status_code == 200
    assert state_of(server)["leases"] == []


def assert_died(response):
    assert_refused(response, 503, code="worker_died")
    assert int(response.headers["retry-after"]) >= 1


def test_a_crash_takes_all_that_runs_in_the_same_worker_and_nothing_else(server):
    tts, other = server.checkpoints["tts"], server.checkpoints["org/tts one"]
    with other.held("run", "held"), tts.held("run", "neighbour"), server.steered("run.crash.boom"):
        untouched = server.later("held", model="org/tts one")
        neighbour = server.later("neighbour")
        tts.wait_for("run", text="neighbour")
        other.wait_for("run", text="held")
        before = worker_of(tts)
        assert_died(server.speak("boom"))
        assert_died(neighbour.result())
        assert not untouched.done()
    assert untouched.result().status_code == 200
    assert server.speak("next").status_code == 200
    assert worker_of(tts) != before


def test_a_dead_model_says_so_until_it_is_loaded_again(server):
    with server.steered("run.crash.boom"):
        assert_died(server.speak("boom"))
    status = state_of(server)
    assert (status["state"], status["loaded"], status["max_parallel_slots"]) == ("unloaded", False, None)
    assert "SIGKILL" in status["last_error"]
    assert server.speak("next").status_code == 200
    assert state_of(server)["last_error"] is None


def test_the_queue_goes_on_in_a_new_worker(server):
    tts = server.checkpoints["tts"]
    with tts.held("run", "one"), tts.held("run", "two"):
        running = [server.later(text) for text in ("one", "two")]
        for text in ("one", "two"):
            tts.wait_for("run", text=text)
        waiting = [server.later(text) for text in ("three", "four")]
        eventually(lambda: state_of(server)["waiting"], lambda it: it == 2, "two that wait")
        kill_worker(tts)
        for task in running:
            assert_died(task.result())
        assert [task.result().status_code for task in waiting] == [200, 200]


@pytest.mark.parametrize("step", ["load", "clone", "prepare", "run"])
def test_a_kill_in_any_phase_of_a_request_is_told_and_the_next_request_works(server, step):
    tts = server.checkpoints["tts"]
    if step in ("load", "clone"):
        server.client.post("/v1/models/unload", json={"id": "tts"})
    before = len(tts.events(step))
    with tts.held(step):
        request = server.later("hello")
        tts.wait_for(step, before + 1)
        kill_worker(tts)
        assert_died(request.result())


def test_a_kill_in_a_teardown_ends_it(server):
    tts = server.checkpoints["tts"]
    before = len(tts.events("destroy"))
    with tts.held("destroy"):
        unload = server.threads.submit(lambda: server.client.post("/v1/models/unload", json={"id": "tts"}))
        tts.wait_for("destroy", before + 1)
        kill_worker(tts)
        assert unload.result().status_code == 200


def test_a_kill_in_a_stream_is_an_event_of_it(server):
    tts = server.checkpoints["tts"]
    with tts.held("stream", "long"):
        body = {"model": "tts", "input": "long", "stream_format": "sse"}
        with server.client.stream("POST", "/v1/audio/speech", json=body) as answer:
            lines = answer.iter_lines()
            assert json.loads(next(lines).removeprefix("data: "))["type"] == "speech.audio.delta"
            tts.wait_for("stream", text="long")
            kill_worker(tts)
            events = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    assert events[-1]["type"] == "error"
    assert events[-1]["error"]["code"] == "worker_died"


def test_after_three_deaths_in_a_row_the_next_load_waits(server):
    with server.steered("run.crash.boom"):
        for _ in range(3):
            assert_died(server.speak("boom"))
    refused = server.speak("too soon")
    assert_died(refused)
    assert "3 times in a row" in refused.json()["error"]["message"]
    eventually(lambda: server.speak("again").status_code, lambda it: it != 503, "the end of the pause")


def test_unloads_and_deaths_leave_no_process_behind(server):
    tts = server.checkpoints["tts"]
    for _ in range(5):
        server.client.post("/v1/models/unload", json={"id": "tts"})
        assert server.speak("hello").status_code == 200
        kill_worker(tts)
        eventually(lambda: state_of(server)["loaded"], lambda it: not it, "the death of the worker")
        assert server.speak("hello").status_code == 200
    for model in ("tts", "org/tts one", "asr"):
        server.client.post("/v1/models/unload", json={"id": model})
    engines = {event.pid for it in server.checkpoints.values() for event in it.events()}
    assert not engines & {child.pid for child in children_of(server)}


def test_no_worker_outlives_a_server_that_is_killed(tmp_path):
    with doomed_server(tmp_path) as server:
        assert server.speak("hello").status_code == 200
        with server.checkpoints["tts"].held("run"):
            server.later("held")
            server.checkpoints["tts"].wait_for("run", 2)
            children = children_of(server)
            assert worker_of(server.checkpoints["tts"]) in {child.pid for child in children}
            server.process.process.kill()
            _, alive = psutil.wait_procs(children, HANG_GUARD_S)
            assert alive == []
