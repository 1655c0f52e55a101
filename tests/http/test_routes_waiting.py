"""Requests that overlap: time-outs of waiting, faults of the engine, failed loads and clients that leave a queue."""

import httpx
import pytest

from controlled_server import SPEECH
from refusals import assert_refused
from server_process import HANG_GUARD_S


@pytest.fixture
def occupied(server):
    """The model `tts` with every slot held by a request, until the test ends."""
    texts = [f"occupant {n}" for n in range(2 if server.parallel else 1)]
    with server.steered("run.hold") as checkpoint:
        before = [len(checkpoint.events("run", text)) for text in texts]
        running = [server.later(text) for text in texts]
        for text, count in zip(texts, before, strict=True):
            checkpoint.wait_for("run", count + 1, text)
        yield server
    for done in running:
        assert done.result(HANG_GUARD_S).status_code == 200


def in_body(server, **wait):
    return server.speak("it waits", **wait)


def in_query(server, **wait):
    return server.client.post(SPEECH, params=wait, json={"model": "tts", "input": "it waits"})


def in_stream(server, **wait):
    return server.speak("it waits", stream_format="sse", **wait)


def in_task(server, **wait):
    return server.client.post("/v1/tasks/run", json={"model": "tts", "request": {"text": "it waits"}, **wait})


@pytest.mark.parametrize("ask", [in_body, in_query, in_stream, in_task])
def test_a_wait_that_ends_without_a_slot_is_busy(occupied, ask):
    assert_refused(ask(occupied, busy_timeout_ms=50), 503, code="server_busy")


def test_a_form_field_bounds_the_wait_too(parallel_server):
    with parallel_server.steered("run.hold", model_id="asr") as checkpoint:
        running = [parallel_server.threads.submit(parallel_server.transcribe, prompt=f"form {n}") for n in range(2)]
        for n in range(2):
            checkpoint.wait_for("run", text=f"form {n}")
        assert_refused(parallel_server.transcribe(busy_timeout_ms="50"), 503, code="server_busy")
    assert [done.result(HANG_GUARD_S).status_code for done in running] == [200, 200]


def test_the_body_goes_before_the_query(occupied):
    refused = occupied.client.post(
        SPEECH, params={"busy_timeout_ms": 0}, json={"model": "tts", "input": "it waits", "busy_timeout_ms": 50}
    )

    assert_refused(refused, 503, code="server_busy")


def test_what_was_refused_never_runs(occupied):
    checkpoint = occupied.checkpoints["tts"]

    assert_refused(occupied.speak("refused for good", busy_timeout_ms=50), 503, code="server_busy")

    checkpoint.release("run")
    assert occupied.speak("after it").status_code == 200
    assert checkpoint.events("run", "refused for good") == []


def test_health_and_models_answer_while_everything_is_held(occupied):
    assert occupied.client.get("/health").status_code == 200
    assert occupied.model()["loaded"] is True


def test_a_queued_request_is_served_once_a_slot_is_free(occupied):
    queued = occupied.later("queued")

    occupied.checkpoints["tts"].release("run")

    assert queued.result(HANG_GUARD_S).status_code == 200


def test_the_queue_is_counted(parallel_server):
    with parallel_server.steered("run.hold"):
        running = [parallel_server.later(f"counted {n}") for n in range(3)]
        while parallel_server.model()["queued_requests"] != 1:
            assert not running[0].done()
        assert parallel_server.model()["active_slots"] == 2
    assert [done.result(HANG_GUARD_S).status_code for done in running] == [200, 200, 200]


def test_a_client_that_leaves_the_queue_never_reaches_the_engine(occupied):
    soon = httpx.Timeout(HANG_GUARD_S, read=0.2)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(occupied.process.url + SPEECH, json={"model": "tts", "input": "left the queue"}, timeout=soon)

    checkpoint = occupied.checkpoints["tts"]
    checkpoint.release("run")
    assert occupied.speak("behind it").status_code == 200
    assert checkpoint.events("run", "left the queue") == []


@pytest.mark.parametrize("step", ["prepare", "run"])
@pytest.mark.parametrize(
    "exception", ["RuntimeError", "BufferError", "SystemExit", "StopIteration", "KeyboardInterrupt"]
)
def test_a_fault_of_the_engine_is_an_engine_error_and_no_more(server, step, exception):
    with server.steered(f"{step}.fail.faulty", exception):
        refused = server.speak("faulty")

    assert_refused(refused, 500, code="engine_error")
    assert server.speak("faultless", busy_timeout_ms=30_000).status_code == 200


@pytest.mark.parametrize("step", ["prepare", "run"])
def test_an_engine_out_of_memory_is_told_to_come_back_later(server, step):
    with server.steered(f"{step}.fail.faulty", "MemoryError"):
        refused = server.speak("faulty")

    assert_refused(refused, 503, code="insufficient_memory")
    assert int(refused.headers["retry-after"]) >= 1
    assert server.speak("faultless", busy_timeout_ms=30_000).status_code == 200


def test_a_refusal_of_the_engine_is_the_clients_fault(server):
    with server.steered("prepare.fail.refused", "InvalidRequest"):
        assert_refused(server.speak("refused"), 400)


@pytest.mark.parametrize("name", ["load.fail", "session.null", "clone.fail", "clone.null", "open.fail"])
def test_a_load_that_fails_is_told_and_the_next_request_tries_again(parallel_server, name):
    parallel_server.client.post("/v1/models/unload", json={"id": "tts"})

    with parallel_server.steered(name):
        assert_refused(parallel_server.speak("no model"), 500, code="load_failed")
        assert parallel_server.model()["loaded"] is False

    assert parallel_server.speak("a model").status_code == 200


def test_a_load_that_fails_is_told_to_all_who_wait_for_it(parallel_server):
    parallel_server.client.post("/v1/models/unload", json={"id": "tts"})
    checkpoint = parallel_server.checkpoints["tts"]
    loads = len(checkpoint.events("load"))

    with parallel_server.steered("load.hold"), parallel_server.steered("load.fail"):
        waiting = [parallel_server.later(f"cold {n}") for n in range(2)]
        checkpoint.wait_for("load", loads + 1)
        while parallel_server.model()["active_slots"] != 2:
            assert not waiting[0].done()
        checkpoint.release("load")
        for refused in waiting:
            assert_refused(refused.result(HANG_GUARD_S), 500, code="load_failed")

    assert len(checkpoint.events("load")) == loads + 1
