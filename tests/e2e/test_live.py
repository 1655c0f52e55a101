"""Live transcription on a real server, over HTTP and WebSocket: both directions at once, every way to end (LIV-01)."""

import json
import random
import signal
from contextlib import ExitStack, suppress

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from conformance_client import eventually
from controlled_server import controlled_server
from live_client import LIVE, live_client, text_of
from server_process import HANG_GUARD_S
from websocket_clients import connect

TENTH = bytes(2 * 1600)
"""A tenth of a second of silence at 16 kHz, for which the engine answers a number."""

LIMITS = {"idle_timeout_ms": 300, "max_chunk_bytes": 100_000, "max_body_bytes": 200_000}


@pytest.fixture(scope="module", params=["thread", "process"])
def server(request, tmp_path_factory):
    config = {"isolation": request.param, "listeners": []}
    with controlled_server(tmp_path_factory.mktemp("live"), parallel=True, **config) as server:
        server.checkpoints["asr"].set("live.echo")
        yield server


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """A server whose live sessions have tight limits."""
    with controlled_server(tmp_path_factory.mktemp("strict"), parallel=True, live_ingest=LIMITS) as server:
        server.checkpoints["asr"].set("live.echo")
        yield server


def session(server, **query):
    return live_client(server.process.url, model="asr", **query)


def settled(server):
    """The slots become free and the next request is served."""
    assert server.transcribe().status_code == 200
    eventually(
        lambda: server.client.get("/v1/status").json()["models"],
        lambda models: not any(it["leases"] or it["queue"] for it in models),
        "free slots",
    )


def await_queue(server, *operations):
    """Wait until exactly these operations wait for the model `asr`."""
    eventually(
        lambda: next(it for it in server.client.get("/v1/status").json()["models"] if it["id"] == "asr"),
        lambda model: [it["operation"] for it in model["queue"]] == list(operations),
        f"{operations} in the queue",
    )


def socket_to(server, **query):
    url = server.process.url.replace("http", "ws") + LIVE
    query = {"model": "asr", **query}
    return connect(url + "?" + "&".join(f"{k}={v}" for k, v in query.items()))


def test_words_come_while_the_client_still_speaks(server):
    with session(server) as client:
        client.say(TENTH)
        assert client.event() == {"type": "transcript.text.delta", "delta": "1 "}
        client.say(TENTH)
        assert client.event() == {"type": "transcript.text.delta", "delta": "2 "}
        client.end()
        done = client.event()
        assert (done["type"], done["text"]) == ("transcript.text.done", "1 2 ")
        assert done["timing"].keys() == {"queue_ms", "load_ms", "run_ms"}
        assert client.event() is None
        assert client.fields["content-type"] == "text/event-stream"
        assert "queue;dur=" in client.fields["server-timing"]
    settled(server)


@pytest.mark.parametrize("seed", range(3))
def test_odd_chunks_change_nothing(server, seed):
    audio, draw = TENTH * 5 + b"\1", random.Random(seed)
    with session(server) as client:
        while audio:
            size = draw.choice([1, 3, 333, 1601, 4097])
            client.say(audio[:size])
            audio = audio[size:]
        client.end()
        events = client.events()
    assert events[-1] == {}
    assert events[-2]["text"] == text_of(events) == "1 2 3 4 5 "


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"sample_rate": 8000}, TENTH[: 2 * 800]),
        ({"channels": 2}, TENTH * 2),
        ({"sample_format": "f32le"}, TENTH * 2),
        ({"sample_rate": 48000, "channels": 2, "sample_format": "f32le"}, TENTH * 12),
    ],
    ids=["8 kHz", "stereo", "float", "all"],
)
def test_raw_samples_of_any_kind_are_heard(server, query, said):
    with session(server, **query) as client:
        for _ in range(3):
            client.say(said)
        client.end()
        assert text_of(client.events()) == "1 2 3 "


@pytest.mark.parametrize("end", [b"", b"\0"], ids=["nothing", "half a sample"])
def test_a_session_without_audio_ends_properly(server, end):
    with session(server) as client:
        if end:
            client.say(end)
        client.end()
        done, mark = client.events()
    assert (done["type"], done["text"], mark) == ("transcript.text.done", "", {})


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"sample_rate": 0}, "sample_rate"),
        ({"sample_rate": -1}, "sample_rate"),
        ({"sample_rate": 999_999_999}, "sample_rate"),
        ({"sample_rate": "abc"}, "sample_rate"),
        ({"channels": 0}, "channels"),
        ({"channels": 1_000_000}, "channels"),
        ({"sample_format": "u8"}, "sample_format"),
        ({"language": "xx-nowhere"}, "language"),
        ({"model": ""}, "model"),
    ],
    ids=str,
)
def test_a_bad_query_is_refused_before_any_event(server, query, param):
    with live_client(server.process.url, **{"model": "asr", **query}) as client:
        error = client.refusal()
        assert (client.status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    settled(server)


def test_an_unknown_model_is_refused_before_any_event(server):
    with live_client(server.process.url, model="nobody") as client:
        assert client.refusal()["code"] == "model_not_found"
        assert client.status == 404


def test_a_model_that_speaks_does_not_listen(server):
    with live_client(server.process.url, model="tts") as client:
        assert client.refusal()["param"] == "model"
        assert client.status == 400


def test_a_client_that_is_lost_frees_its_slot(server):
    with session(server) as client:
        client.say(TENTH)
        client.event()
        client.leave()
    with session(server) as first, session(server) as second:  # every slot
        for client in (first, second):
            client.say(TENTH)
            client.event()
            client.end()
            assert client.events()[-1] == {}
    settled(server)


def test_a_malformed_chunk_is_an_error_and_no_end(server):
    with session(server) as client:
        client.say(TENTH)
        client.event()
        client.raw(b"no chunk\r\n")
        events = client.events()
    assert [it["type"] for it in events] == ["error"]
    settled(server)


def test_live_sessions_and_uploads_share_the_slots_in_their_order(server):
    with session(server) as first, session(server) as second, session(server) as third:
        for client in (first, second):
            client.say(TENTH)
            client.event()
        third.say(TENTH)
        waiting(server, 1)
        upload = server.threads.submit(server.transcribe)
        waiting(server, 2)
        first.end()
        assert third.event()["delta"] == "1 "
        assert not upload.done()
        second.end()
        assert upload.result().status_code == 200
        third.end()
        assert third.events()[-1] == {}
    settled(server)


def test_a_live_session_waits_no_longer_than_it_asked_to(server):
    with session(server) as first, session(server) as second:
        for client in (first, second):
            client.say(TENTH)
            client.event()
        with session(server, busy_timeout_ms=1) as third:
            assert third.refusal()["code"] == "server_busy"
            assert third.status == 503


@pytest.mark.parametrize(
    ("said", "code", "message"),
    [
        (TENTH, "request_timeout", "no audio came for 0.3 s"),
        (TENTH * 70, "too_large", "larger than the limit of 200000 bytes"),
        (TENTH * 32, "too_large", "a chunk of the body is larger than the limit of 100000 bytes"),
    ],
    ids=["stall", "too much", "too much at once"],
)
def test_a_session_over_a_limit_ends_in_an_error(strict, said, code, message):
    with session(strict) as client:
        at_once = 50_000 if len(said) > 200_000 else len(said)
        for start in range(0, len(said), at_once):
            client.say(said[start : start + at_once])
        events = client.events()
    assert events[-1]["type"] == "error"
    assert events[-1]["error"]["code"] == code
    assert message in events[-1]["error"]["message"]
    settled(strict)


def framed(*chunks):
    """The bytes of these chunks of a body."""
    return b"".join(b"%x\r\n%s\r\n" % (len(data), data) for data in chunks)


_SMALL, _LARGE = bytes(50_000), bytes(100_002)
_END = b"0\r\n\r\n"


@pytest.mark.parametrize(
    "writes",
    [
        [framed(_LARGE) + _END],
        [framed(_LARGE), _END],
        [framed(_SMALL, _LARGE) + _END],
        [framed(_LARGE, _SMALL) + _END],
        [framed(_LARGE)[:60_000], framed(_LARGE)[60_000:] + _END],
    ],
    ids=["with the end", "before the end", "last of two", "first of two", "in two writes"],
)
def test_a_chunk_over_its_limit_is_refused_however_it_is_written(strict, writes):
    with session(strict) as client:
        for data in writes:
            client.raw(data)
        error = client.events()[-1]
    assert error["error"]["code"] == "too_large"
    assert error["error"]["message"] == "a chunk of the body is larger than the limit of 100000 bytes"
    settled(strict)


def test_chunks_within_their_limit_may_come_together(strict):
    with session(strict) as client:
        client.raw(framed(_SMALL, _SMALL, _SMALL) + _END)
        *_, done, mark = client.events()
    assert (done["type"], mark) == ("transcript.text.done", {})
    settled(strict)


@pytest.mark.parametrize("over", ["http", "websocket"])
@pytest.mark.parametrize("said", ["in the queue", "in a slot"])
@pytest.mark.parametrize(("before", "after"), [(2_000, 100_000), (100_000, 2_000)], ids=["raised", "lowered"])
def test_a_session_is_held_to_the_limits_that_are_registered_when_its_turn_comes(tmp_path, over, said, before, after):
    """The session queues behind a registration that changes what a chunk may have."""
    with controlled_server(tmp_path, parallel=True, ui_management=True) as server, ExitStack() as open_sessions:
        checkpoint = server.checkpoints["asr"]
        checkpoint.set("live.echo")
        model = {"id": "asr", "family": "controlled", "path": str(checkpoint.path), "task": "asr", "slots": 2}
        first = {**model, "live_ingest": {"max_chunk_bytes": before}}
        assert server.client.post("/v1/models/load", json=first).status_code == 200

        def say():
            if over == "http":
                client.raw(framed(bytes(8_000)) + _END)
            else:
                socket.send(bytes(8_000))
                with suppress(ConnectionClosed):
                    socket.send(b"")

        with checkpoint.held("run"):
            running = server.threads.submit(server.transcribe)
            checkpoint.wait_for("run")
            second = {**model, "live_ingest": {"max_chunk_bytes": after}}
            registering = server.threads.submit(lambda: server.client.post("/v1/models/load", json=second))
            await_queue(server, "load")
            if over == "http":
                client = open_sessions.enter_context(session(server))
            else:
                socket = open_sessions.enter_context(socket_to(server))
            await_queue(server, "load", "infer")
            if said == "in the queue":
                say()
        assert (running.result().status_code, registering.result().status_code) == (200, 200)
        if said == "in a slot":
            say()
        if over == "http":
            last = client.events()[-1]
        else:
            last = {}
            with suppress(ConnectionClosed):
                while True:
                    last = json.loads(socket.recv())
        assert ("error" in last) == (after < 8_000), last
        settled(server)


def test_a_reader_is_held_to_the_limit_that_is_registered_when_its_turn_comes(tmp_path):
    """The session queues behind a registration that limits how long its client may take over an event."""
    unlimited = {"send_timeout_ms": 0}
    with (
        controlled_server(tmp_path, parallel=True, ui_management=True, live_ingest=unlimited, **unlimited) as server,
        ExitStack() as open_sessions,
    ):
        checkpoint = server.checkpoints["asr"]
        checkpoint.set("live.echo", "1")  # a sample is answered by far more bytes than it has
        limited = {"id": "asr", "family": "controlled", "path": str(checkpoint.path), "task": "asr", "slots": 2}
        limited["live_ingest"] = {"send_timeout_ms": 300}
        with checkpoint.held("run"):
            running = server.threads.submit(server.transcribe)
            checkpoint.wait_for("run")
            registering = server.threads.submit(lambda: server.client.post("/v1/models/load", json=limited))
            await_queue(server, "load")
            client = open_sessions.enter_context(session(server))
            await_queue(server, "load", "infer")
        assert (running.result().status_code, registering.result().status_code) == (200, 200)
        server.threads.submit(speak_and_never_read, client)
        settled(server)


def test_a_model_has_limits_of_its_own(tmp_path):
    with controlled_server(tmp_path, parallel=True, ui_management=True, live_ingest={"idle_timeout_ms": 0}) as server:
        checkpoint = server.checkpoints["asr"]
        model = {"id": "asr", "family": "controlled", "path": str(checkpoint.path), "task": "asr", "slots": 2}
        model["live_ingest"] = {"idle_timeout_ms": 100}
        assert server.client.post("/v1/models/load", json=model).status_code == 200
        with session(server) as client:
            (error,) = client.events()
            assert error["error"]["code"] == "request_timeout"
        model["live_ingest"] = {"max_chunk_bytes": 0}
        refused = server.client.post("/v1/models/load", json=model)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "live_ingest")
        assert "live_ingest.max_chunk_bytes: wanted bytes, 1 or more; found 0" in refused.json()["error"]["message"]


def test_a_model_that_tells_speakers_apart_answers_turns(tmp_path):
    with controlled_server(tmp_path, parallel=True, ui_management=True) as server:
        path = str(server.checkpoints["asr"].path)
        model = {"id": "diar", "family": "controlled", "path": path, "task": "diar"}
        assert server.client.post("/v1/models/load", json=model).status_code == 200
        with live_client(server.process.url, model="diar") as client:
            client.say(TENTH)
            client.end()
            *deltas, done, mark = client.events()
    turns = [turn for it in deltas for turn in it["speaker_turns"]]
    assert [it["type"] for it in deltas] == ["diarization.delta"] * 3
    assert [(it["start_sample"], it["end_sample"]) for it in turns] == [(0, 533), (533, 1066), (1066, 1600)]
    assert (done["type"], done["speaker_turns"], done["sample_rate"]) == ("diarization.done", turns, 16_000)
    assert mark == {}


def test_a_stop_ends_live_sessions_and_lets_other_work_go_on(tmp_path):
    with controlled_server(tmp_path, parallel=True) as server:
        server.checkpoints["asr"].set("live.echo")
        with server.steered("run.hold") as held, session(server) as client:
            other = server.later("hello")
            held.wait_for("run")
            client.say(TENTH)
            client.event()
            with socket_to(server) as socket:
                socket.send(TENTH)
                socket.recv(HANG_GUARD_S)
                server.process.process.send_signal(signal.SIGTERM)
                (error,) = client.events()
                assert error["error"]["code"] == "shutting_down"
                assert json.loads(socket.recv(HANG_GUARD_S))["error"]["code"] == "shutting_down"
                assert closed(socket) == 1001
            assert not other.done()
        assert other.result().status_code == 200


def test_sessions_that_vanish_stall_or_never_read_free_their_slots_by_their_limits(tmp_path):
    limits = {"idle_timeout_ms": 300, "send_timeout_ms": 300}
    with (
        controlled_server(tmp_path, parallel=True, live_ingest=limits, busy_timeout_ms=0) as server,
        ExitStack() as open_,
    ):
        server.checkpoints["asr"].set("live.echo", "1")  # a sample is answered by far more bytes than it has
        for number in range(20):
            client = open_.enter_context(session(server))
            if number == 9:  # one is enough: megabytes of small events go into the kernel's buffers first
                server.threads.submit(speak_and_never_read, client)
                continue
            client.say(TENTH[:20])
            if number % 2:
                client.leave()
        settled(server)


def test_a_websocket_hears_and_answers_at_once(server):
    with socket_to(server) as socket:
        socket.send(TENTH[:1601])
        socket.send(TENTH[1601:])
        assert json.loads(socket.recv(HANG_GUARD_S)) == {"type": "transcript.text.delta", "delta": "1 "}
        socket.send(TENTH)
        assert json.loads(socket.recv(HANG_GUARD_S))["delta"] == "2 "
        socket.send(json.dumps({"type": "end"}))
        done = json.loads(socket.recv(HANG_GUARD_S))
        assert (done["type"], done["text"]) == ("transcript.text.done", "1 2 ")
        assert closed(socket) == 1000
    settled(server)


def test_an_empty_message_ends_a_websockets_audio(server):
    with socket_to(server) as socket:
        socket.send(b"")
        assert json.loads(socket.recv(HANG_GUARD_S))["type"] == "transcript.text.done"
        assert closed(socket) == 1000


def test_a_websocket_that_is_closed_before_its_audio_has_ended_frees_its_slot(server):
    with socket_to(server) as socket:
        socket.send(TENTH)
        socket.recv(HANG_GUARD_S)
    with session(server) as first, session(server) as second:
        for client in (first, second):
            client.end()
            assert client.events()[-1] == {}
    settled(server)


@pytest.mark.parametrize("text", ["hello", '{"type": "start"}', "[" * 100_000], ids=["text", "other", "deep"])
def test_a_malformed_message_is_an_error_and_no_end(server, text):
    with socket_to(server) as socket:
        socket.send(text)
        error = json.loads(socket.recv(HANG_GUARD_S))
        assert (error["type"], error["error"]["type"]) == ("error", "invalid_request_error")
        assert closed(socket) == 1008
    settled(server)


def test_a_message_over_the_limit_closes_its_websocket(strict):
    with socket_to(strict) as socket:
        socket.send(bytes(100_001))
        assert closed(socket) == 1009
    settled(strict)


def test_a_websocket_that_stalls_ends_in_an_error(strict):
    with socket_to(strict) as socket:
        assert json.loads(socket.recv(HANG_GUARD_S))["error"]["code"] == "request_timeout"
        assert closed(socket) == 1008
    settled(strict)


@pytest.mark.parametrize(("query", "status"), [({"model": "nobody"}, 404), ({"sample_rate": 0}, 400)], ids=str)
def test_a_websocket_is_refused_as_a_request_is(server, query, status):
    with pytest.raises(InvalidStatus) as refused, socket_to(server, **query):
        pass
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["error"]["type"] in ("invalid_request_error", "not_found_error")


def speak_and_never_read(client):
    """Say what is answered by more than any buffer holds."""
    with suppress(OSError):  # it is let go of in the middle
        for _ in range(200):
            client.say(TENTH)


def closed(socket) -> int:
    """The code that the server closes with."""
    with pytest.raises(ConnectionClosed) as end:
        socket.recv(HANG_GUARD_S)
    assert end.value.rcvd is not None
    return end.value.rcvd.code


def waiting(server, count: int) -> None:
    """Wait until so many requests wait for the model that listens."""
    eventually(lambda: server.model("asr")["queued_requests"], lambda it: it == count, f"{count} that wait")
