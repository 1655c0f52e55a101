"""Faults that other servers had with queues, loads and idle models, restated: the case is named in each title."""

import base64
import io
import threading
import wave

import pytest

from conformance_client import eventually
from conformance_server import TASK_RUN, answer_of

IDLE_MS = 300


@pytest.fixture
def idling(lent_server):
    """A server that unloads what has been idle for a while."""
    return lent_server(idle_unload_ms=IDLE_MS)


def refused(call, status=503, code="server_busy"):
    response = call.result()
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    return response


def older(model, kind, age_ms):
    """Wait until the first lease or waiter is older than that."""
    eventually(model.status, lambda it: it[kind] and it[kind][0]["age_ms"] > age_ms, f"{kind} of {age_ms} ms")


def idle_s(model, step):
    """How long the model was idle between the last such step and the next teardown, in seconds."""
    gone = model.checkpoint.wait_for("destroy")
    return gone.t - model.checkpoint.events(step)[-1].t


class TestIdleTime:
    """QUE-03, MEM-05: idle begins when the last lease or load ends, and the timer is never lost."""

    def test_idle_begins_at_the_end_of_a_request(self, idling):
        model = idling.new_model()
        with model.checkpoint.held("run"):
            call = model.infer("slow")
            older(model, "leases", 2 * IDLE_MS)
            assert model.listed()["loaded"] is True
        answer_of(call)
        assert idle_s(model, "ran") >= IDLE_MS / 1000
        model.wait_state("unloaded")

    def test_a_fresh_load_lives_for_a_whole_window(self, idling):
        model = idling.new_model()
        assert idle_s(model, "clone") >= IDLE_MS / 1000
        model.wait_state("unloaded")

    def test_a_slow_load_that_nobody_follows_is_unloaded_a_window_later(self, idling):
        model = idling.unregistered_model()
        with model.checkpoint.held("load"):
            load = model.register()
            eventually(model.listed, lambda it: it.get("loaded") is False, "the registration")
            older(model, "leases", 2 * IDLE_MS)
            assert model.status()["state"] == "loading"
        load.ok()
        assert idle_s(model, "loaded") >= IDLE_MS / 1000
        model.wait_state("unloaded")

    @pytest.mark.parametrize("opened", ["open_infer", "open_stream", "open_batch"])
    def test_a_slow_load_whose_client_has_left_is_unloaded_too(self, idling, cold_model, opened):
        model = cold_model(idling)
        with model.checkpoint.held("load"):
            leaving = getattr(model, opened)("left")
            model.checkpoint.wait_for("load")
            older(model, "leases", 2 * IDLE_MS)
            leaving.cut()
        assert idle_s(model, "loaded") >= IDLE_MS / 1000
        model.wait_state("unloaded")

    def test_a_queued_request_counts_as_busy(self, idling, slots):
        model = idling.new_model()
        with model.checkpoint.held("run"):
            calls = [model.infer(f"running {number}") for number in range(slots)]
            model.wait_listed(active_slots=slots)
            calls.append(model.infer("queued"))
            older(model, "queue", 2 * IDLE_MS)
        for call in calls:
            answer_of(call)
        assert idle_s(model, "ran") >= IDLE_MS / 1000

    def test_an_open_stream_is_no_idle_time(self, idling):
        model = idling.new_model()
        with model.checkpoint.held("stream"):
            stream = model.open_stream("slow")
            next(stream.events())
            older(model, "leases", 2 * IDLE_MS)
            assert model.listed()["loaded"] is True
        stream.read()
        assert idle_s(model, "reset") >= IDLE_MS / 1000

    def test_a_pinned_model_stays(self, idling):
        pinned = idling.new_model(pinned=True)
        later = idling.new_model()
        later.checkpoint.wait_for("closed")
        assert pinned.listed()["loaded"] is True

    def test_a_failed_replacement_beside_the_first_loses_no_timer(self, idling):
        model = idling.new_model()
        v2 = model.replacement("v2")
        v2.fail("open")
        with v2.held("open"):
            swap = model.register(path=str(v2.path), strategy="side_by_side")
            v2.wait_for("open")
            other = idling.new_model()
            other.checkpoint.wait_for("closed")  # a whole window later
            assert model.listed()["loaded"] is True
        assert swap.result().status_code == 500
        model.wait_state("unloaded")


class TestColdStart:
    """QUE-04: requests that come together load a model once, and share what becomes of that."""

    COUNT = 8

    def test_eight_cold_requests_load_once(self, server, cold_model):
        model = cold_model(server)
        with model.checkpoint.held("load"):
            calls = [model.infer(f"cold {number}") for number in range(self.COUNT)]
            model.wait_listed(active_slots=2, queued_requests=self.COUNT - 2)
        assert {answer_of(call).text for call in calls} == {f"cold {number}" for number in range(self.COUNT)}
        assert len(model.checkpoint.events("load")) == 1

    def test_each_gets_the_error_and_the_next_tries_again(self, server, cold_model):
        model = cold_model(server)
        model.checkpoint.fail("load")
        with model.checkpoint.held("load"):
            calls = [model.infer(f"cold {number}") for number in range(self.COUNT)]
            model.wait_listed(active_slots=2, queued_requests=self.COUNT - 2)
        for call in calls:
            refused(call, 500, "load_failed")
        model.checkpoint.unset("load.fail")
        assert answer_of(model.infer("again")).text == "again"
        assert model.runs() == ["again"]


def test_a_hung_request_keeps_nobody_else_waiting(lent_server):
    """QUE-06."""
    server = lent_server(max_text_chars=1000)
    hung, other = server.new_model(), server.new_model()
    hung.checkpoint.set("run.hang")
    for number in range(2):
        hung.infer(f"hung {number}")
    hung.checkpoint.wait_for("run", 2)
    before = hung.listed()

    refused(hung.unload(params={"busy_timeout_ms": 100}))

    assert hung.listed() == before
    assert answer_of(other.infer("warm")).text == "warm"
    assert answer_of(server.new_model().infer("cold")).text == "cold"
    assert server.client.call("GET", "/health").json()["status"] == "ok"
    refused(hung.infer("in vain", busy_timeout_ms=100))
    server.kill()


class TestStalls:
    """QUE-07: while one model loads or computes, everything else goes on."""

    @pytest.mark.parametrize("step", ["load", "run"])
    def test_a_held_step_holds_up_nothing_else(self, server, cold_model, step):
        busy, other = cold_model(server), server.new_model()
        with busy.checkpoint.held(step):
            call = busy.infer("held")
            busy.checkpoint.wait_for(step)
            assert server.client.call("GET", "/health").status_code == 200
            assert busy.status()["active_slots"] == 1
            assert answer_of(other.infer("meanwhile")).text == "meanwhile"
            assert not busy.checkpoint.events("ran")
        answer_of(call)

    @pytest.mark.parametrize("step", ["load", "run"])
    def test_a_python_loop_holds_up_nothing_else(self, server, cold_model, step):
        busy, other = cold_model(server), server.new_model()
        busy.checkpoint.set(f"{step}.spin", "2000")
        call = busy.infer("spinning")
        busy.checkpoint.wait_for(step)
        assert server.client.call("GET", "/health").status_code == 200
        answer_of(other.infer("meanwhile"))
        answer_of(call)
        done, spun = other.checkpoint.events("ran")[0], busy.checkpoint.events("loaded" if step == "load" else "ran")[0]
        assert done.t < spun.t


def test_unloads_and_loads_in_quick_order_end_as_they_were_admitted(server):
    """QUE-08: fifty times each way, on two sockets, with traffic."""
    model = server.new_model()
    stop, answers = threading.Event(), []

    def traffic():
        while not stop.is_set():
            answers.append(model.infer(f"traffic {len(answers)}").result().status_code)

    client = threading.Thread(target=traffic, daemon=True)
    client.start()
    try:
        for _ in range(50):
            for first, second in ((model.unload, model.register), (model.register, model.unload)):
                pair = [first(), second()]
                assert [call.result().status_code for call in pair] == [200, 200]
    finally:
        stop.set()
        client.join()
    assert set(answers) == {200}

    for _ in range(2):  # the second changes nothing
        assert model.unload().ok()["loaded"] is False
        assert model.listed()["loaded"] is False
        assert len(model.checkpoint.events("closed")) == len(model.checkpoint.events("load"))  # gone when it answers
    model.register().ok()
    assert model.listed()["loaded"] is True


@pytest.mark.parametrize("name", ["default", "serial"])
def test_waiters_are_refused_at_their_own_time(lent_server, name):
    """QUE-09: not when what runs has ended; and a request's wish stays under the model's ceiling."""
    model = lent_server(name).new_model(busy_timeout_ms=200, slots=None)
    with model.checkpoint.held("run"):
        running = model.infer("running")
        model.checkpoint.wait_for("run")
        late = [model.infer("late 0"), model.infer("late 1", busy_timeout_ms=60_000)]
        for call in late:
            refused(call)
        assert not model.checkpoint.events("ran")
    answer_of(running)
    answer_of(model.infer("afterwards"))
    assert model.runs() == ["running", "afterwards"]


class TestCrosstalk:
    """QUE-10: each of many answers at once is the one that its request has alone."""

    COUNT = 16

    def test_of_texts(self, server):
        model = server.new_model(slots=4)
        texts = [f"text {number}" for number in range(self.COUNT)]
        alone = [result_of(model.infer(text, request={"text": text, "seed": 7})) for text in texts]
        together = [model.infer(text, request={"text": text, "seed": 7}) for text in texts]
        assert [result_of(call) for call in together] == alone

    def test_of_recordings(self, server):
        model = server.new_model(slots=4, task="asr")

        def hear(number):
            request = {"text": f"prompt {number}", "audio": recording(100 + 37 * number)}
            return server.client.start("POST", TASK_RUN, json={"model": model.id, "request": request})

        alone = [result_of(hear(number)) for number in range(self.COUNT)]
        together = [hear(number) for number in range(self.COUNT)]
        assert [result_of(call) for call in together] == alone
        assert len({str(it) for it in alone}) == self.COUNT


def result_of(call):
    """An answer without its timing, and without which session made it."""
    answer = call.ok()
    del answer["timing"]
    revision, _, text = answer["text"].split("|", 2)
    without_session = {"text": f"{revision}|{text}"}
    return {**answer, **without_session, "segments": len(answer["segments"]), "words": len(answer["words"])}


def recording(frames):
    """So many samples of silence as a wav file in base64."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(bytes(2 * frames))
    return base64.b64encode(file.getvalue()).decode()


class TestMemory:
    """MEM-04: no memory is said as such, before the load where it can be, and costs nobody else anything."""

    @pytest.mark.parametrize("step", ["load", "open", "clone", "prepare", "run"])
    def test_an_engine_that_runs_out_of_memory(self, server, cold_model, step):
        model, other = cold_model(server), server.new_model()
        model.checkpoint.fail(step, "MemoryError")

        response = refused(model.infer("too much"), code="insufficient_memory")

        message = response.json()["error"]["message"]
        assert str(model.checkpoint.path) not in message
        assert "0x" not in message
        assert "retry-after" in response.headers
        assert answer_of(other.infer("goes on")).text == "goes on"
        if step in ("load", "open", "clone"):
            assert len(model.checkpoint.events("loaded")) == len(model.checkpoint.events("closed"))
            assert model.listed()["loaded"] is False
        model.checkpoint.unset(f"{step}.fail")
        assert answer_of(model.infer("again")).text == "again"

    def test_idle_models_leave_before_a_load_is_refused(self, lent_server, cold_model):
        server = lent_server(min_free_memory_mb=1)
        wanted = cold_model(server)
        wanted.checkpoint.set("bytes", str(2**60))
        wanted.unload().ok()
        wanted.register().result()  # what it needs is read with its registration
        idle, busy = server.new_model(), server.new_model()
        with busy.checkpoint.held("run"):
            running = busy.infer("running")
            busy.checkpoint.wait_for("run")
            refused(wanted.infer("too much"), code="insufficient_memory")
            assert [it.listed()["loaded"] for it in (idle, busy, wanted)] == [False, True, False]
            assert wanted.checkpoint.events() == []
        assert answer_of(running).text == "running"
