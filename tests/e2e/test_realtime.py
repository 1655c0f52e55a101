"""OpenAI's Realtime protocol with controlled models: the official client as its users have it, and raw WebSockets."""

import base64
import json
import signal
from contextlib import suppress
from socket import SHUT_RDWR

import openai
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from conformance_client import eventually
from controlled_server import controlled_server
from listener_stop import begin_stop
from server_process import HANG_GUARD_S
from websocket_clients import PATIENCE, connect

FIFTH = bytes(2 * 4800)
"""A fifth of a second of silence as it is sent: two utterances of the engine, less what a resampler keeps."""

TRANSCRIPTION = "conversation.item.input_audio_transcription"
_VAD = {"type": "server_vad"}
LIMITS = {"idle_timeout_ms": 300, "max_body_bytes": 50_000, "max_chunk_bytes": 100_000}


@pytest.fixture(scope="module", params=["thread", "process"])
def server(request, tmp_path_factory):
    with controlled_server(tmp_path_factory.mktemp("realtime"), parallel=True, isolation=request.param) as server:
        server.checkpoints["asr"].set("live.echo")
        yield server


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """A server whose live audio has tight limits."""
    with controlled_server(tmp_path_factory.mktemp("strict"), parallel=True, live_ingest=LIMITS) as server:
        server.checkpoints["asr"].set("live.echo")
        yield server


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=f"{server.process.url}/v1", api_key="any", max_retries=0, timeout=HANG_GUARD_S) as it:
        yield it


class Session:
    """A session on a bare WebSocket."""

    def __init__(self, socket):
        self.socket = socket

    def say(self, kind, **fields):
        self.socket.send(json.dumps({"type": kind, **fields}))

    def append(self, audio=FIFTH):
        self.say("input_audio_buffer.append", audio=base64.b64encode(audio).decode())

    def set(self, **audio_input):
        self.say("session.update", session={"type": "transcription", "audio": {"input": audio_input}})
        return self.expect("session.updated")["session"]["audio"]["input"]

    def hear(self):
        return json.loads(self.socket.recv(HANG_GUARD_S))

    def expect(self, kind):
        """The next event, which is of this kind."""
        found = self.hear()
        assert found["type"] == kind, found
        return found

    def until(self, kind):
        """The events up to the next one of this kind."""
        heard = [self.hear()]
        while heard[-1]["type"] != kind:
            heard.append(self.hear())
        return heard

    def error(self):
        return self.expect("error")["error"]

    def close_code(self):
        try:
            while True:
                self.hear()
        except ConnectionClosed as closed:
            return closed.rcvd.code


def address(server, query="intent=transcription&model=asr"):
    return f"{server.process.url.replace('http', 'ws')}/v1/realtime?{query}"


@pytest.fixture
def session(server):
    with connect(address(server)) as socket:
        session = Session(socket)
        session.expect("session.created")
        yield session


def settled(server):
    """The slots are free and the next request is served."""
    assert server.transcribe().status_code == 200
    eventually(
        lambda: server.client.get("/v1/status").json()["models"],
        lambda models: all(not model["leases"] and not model["queue"] for model in models),
        "free slots",
    )


def kinds(events):
    return [it["type"] for it in events]


def texts(events, what):
    return [it[what] for it in events if what in it]


def test_the_official_client_transcribes_turn_by_turn(client, server):
    with client.realtime.connect(
        extra_query={"intent": "transcription"}, websocket_connection_options=PATIENCE
    ) as connection:
        assert connection.recv().type == "session.created"
        connection.session.update(
            session={
                "type": "transcription",
                "audio": {
                    "input": {
                        "format": {"type": "audio/pcm", "rate": 24000},
                        "transcription": {"model": "asr", "language": "en", "prompt": "words"},
                        "turn_detection": {"type": "server_vad", "threshold": 0.5, "silence_duration_ms": 400},
                    }
                },
            }
        )
        updated = connection.recv()
        assert updated.type == "session.updated"
        assert updated.session.audio.input.transcription.model == "asr"
        assert updated.session.audio.input.turn_detection.type == "server_vad"
        assert updated.session.audio.input.turn_detection.silence_duration_ms == 400

        heard = []
        for _ in range(5):
            connection.input_audio_buffer.append(audio=base64.b64encode(FIFTH).decode())
        while [it.type for it in heard].count(f"{TRANSCRIPTION}.completed") < 2:
            heard.append(connection.recv())

    assert [it.type for it in heard[:7]] == [
        "input_audio_buffer.speech_started",
        f"{TRANSCRIPTION}.delta",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        f"{TRANSCRIPTION}.completed",
    ]
    started, delta, stopped, committed, added, _, completed = heard[:7]
    assert {started.item_id, stopped.item_id, committed.item_id, added.item.id, completed.item_id} == {delta.item_id}
    assert (started.audio_start_ms, stopped.audio_end_ms) == (0, 100)
    assert completed.transcript == delta.delta == "1 "
    assert completed.usage.seconds == 0.1
    assert heard[10].previous_item_id == delta.item_id
    assert heard[13].transcript == "2 "
    settled(server)


def test_the_official_client_commits_its_turns_itself(client, server):
    with client.realtime.connect(
        model="asr", extra_query={"intent": "transcription"}, websocket_connection_options=PATIENCE
    ) as connection:
        connection.recv()
        connection.session.update(session={"type": "transcription", "audio": {"input": {"turn_detection": None}}})
        assert connection.recv().session.audio.input.turn_detection is None
        for _ in range(2):
            connection.input_audio_buffer.append(audio=base64.b64encode(FIFTH).decode())
            connection.input_audio_buffer.commit()
        heard = [connection.recv() for _ in range(10)]

    items = [it.item_id for it in heard if it.type == "input_audio_buffer.committed"]
    assert [it.item_id for it in heard if it.type == f"{TRANSCRIPTION}.completed"] == items
    assert heard[-1].usage.seconds == 0.2
    assert "asr|" in heard[-1].transcript
    settled(server)


def test_the_older_client_transcribes(server):
    sockets = f"{server.process.url.replace('http', 'ws')}/v1"
    with (
        openai.OpenAI(
            base_url=f"{server.process.url}/v1", websocket_base_url=sockets, api_key="any", timeout=HANG_GUARD_S
        ) as client,
        client.beta.realtime.connect(
            model="asr", extra_query={"intent": "transcription"}, websocket_connection_options=PATIENCE
        ) as connection,
    ):
        assert connection.recv().type == "transcription_session.created"
        connection.transcription_session.update(
            session={"input_audio_format": "g711_ulaw", "input_audio_transcription": {"language": "en"}}
        )
        updated = connection.recv()
        assert updated.type == "transcription_session.updated"
        assert (updated.session.input_audio_format, updated.session.input_audio_transcription.model) == (
            "g711_ulaw",
            "asr",
        )
        connection.input_audio_buffer.append(audio=base64.b64encode(b"\xff" * 4000).decode())
        heard = [connection.recv()]
        while heard[-1].type != f"{TRANSCRIPTION}.completed":
            heard.append(connection.recv())
    assert heard[-1].transcript == "1 "
    assert "conversation.item.created" in [it.type for it in heard]


def test_a_key_may_come_with_the_subprotocols(tmp_path):
    with controlled_server(tmp_path, parallel=False, api_keys=["secret"]) as server:
        with pytest.raises(InvalidStatus) as refused:
            connect(address(server))
        assert refused.value.response.status_code == 401
        asked = ["realtime", "openai-insecure-api-key.secret"]
        with connect(address(server), subprotocols=asked, origin="http://localhost:3000") as socket:
            assert socket.subprotocol == "realtime"
            assert json.loads(socket.recv(HANG_GUARD_S))["type"] == "session.created"


@pytest.mark.parametrize(
    ("query", "status", "param"),
    [("intent=conversation", 400, "intent"), ("intent=transcription&model=nobody", 404, "model")],
)
def test_a_session_that_cannot_be_is_refused_before_it_opens(server, query, status, param):
    with pytest.raises(InvalidStatus) as refused:
        connect(address(server, query))
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["error"]["param"] == param


def test_a_page_from_elsewhere_opens_no_session(server):
    with pytest.raises(InvalidStatus) as refused:
        connect(address(server), origin="https://evil.example")
    assert refused.value.response.status_code == 403


def update(**audio_input):
    session = {"type": "transcription", "audio": {"input": audio_input}}
    return json.dumps({"type": "session.update", "session": session})


@pytest.mark.parametrize(
    ("sent", "param"),
    [("no json", None), ("[]", None), ("{}", "type"), ('{"type": 1}', "type"),
     ('{"type": "response.create", "event_id": "mine"}', "type"),
     ('{"type": "conversation.item.create", "item": {}}', "type"),
     ('{"type": "input_audio_buffer.append"}', "audio"),
     ('{"type": "input_audio_buffer.append", "audio": "?"}', "audio"),
     ('{"type": "input_audio_buffer.commit"}', None),
     ('{"type": "session.update", "session": {"type": "realtime"}}', "session.type"),
     (update(turn_detection={"type": "semantic_vad"}), "session.audio.input.turn_detection.type"),
     (update(turn_detection={"type": "server_vad", "silence_duration_ms": -1}),
      "session.audio.input.turn_detection.silence_duration_ms"),
     (update(format={"type": "audio/pcm", "rate": 16_000}), "session.audio.input.format.rate"),
     (update(transcription={"model": "nobody"}), "model"),
     (update(transcription={"language": "klingon"}), "language")],
)  # fmt: skip
def test_what_cannot_be_done_is_an_error_and_the_session_goes_on(session, sent, param):
    session.socket.send(sent)
    error = session.error()
    assert error["param"] == param
    assert error["message"]
    assert error["event_id"] == ("mine" if "mine" in sent else None)
    session.append()
    session.until(f"{TRANSCRIPTION}.completed")


def test_without_a_model_audio_is_an_error(server):
    with connect(address(server, "intent=transcription")) as socket:
        session = Session(socket)
        session.expect("session.created")
        session.append()
        assert session.error()["param"] == "session.audio.input.transcription.model"
        assert session.set(transcription={"model": "asr"})["transcription"]["model"] == "asr"
        session.append()
        session.until(f"{TRANSCRIPTION}.completed")


def test_pieces_that_end_inside_of_a_sample_change_nothing(session):
    session.set(turn_detection={"type": "server_vad"})
    audio = FIFTH * 3
    for start in range(0, len(audio), 1111):
        session.append(audio[start : start + 1111])
    session.say("input_audio_buffer.commit")
    heard = session.until(f"{TRANSCRIPTION}.completed")
    while texts(heard, "transcript")[-1] != "6 ":
        heard += session.until(f"{TRANSCRIPTION}.completed")
    assert "".join(texts(heard, "transcript")) == "".join(texts(heard, "delta")) == "1 2 3 4 5 6 "


def test_a_commit_ends_the_turn_and_the_next_audio_begins_another(session, server):
    with server.steered("live.echo", "16000", "asr"):  # no utterance is as short as what is said
        session.append()
        session.say("input_audio_buffer.commit")
        heard = session.until(f"{TRANSCRIPTION}.completed")
        assert kinds(heard)[0] == "input_audio_buffer.committed"
        assert heard[-1]["transcript"] == ""
        session.append(FIFTH * 6)
        heard = session.until("input_audio_buffer.speech_started")
        assert heard[-1]["audio_start_ms"] == 200
    server.checkpoints["asr"].set("live.echo")
    session.socket.close()
    settled(server)


def test_cleared_audio_is_heard_no_more(session, server):
    session.append()
    session.until(f"{TRANSCRIPTION}.completed")
    session.say("input_audio_buffer.clear")
    session.until("input_audio_buffer.cleared")
    settled(server)
    session.say("input_audio_buffer.commit")
    assert session.error()["message"] == "there is no audio to commit"


def test_a_turn_that_fails_is_told_of_and_the_session_goes_on(session, server):
    session.set(turn_detection=None)
    with server.steered("run.fail", "boom", "asr"):
        session.append()
        session.say("input_audio_buffer.commit")
        failed = session.until(f"{TRANSCRIPTION}.failed")[-1]
    assert failed["error"]["code"] == "engine_error"
    session.append()
    session.say("input_audio_buffer.commit")
    session.until(f"{TRANSCRIPTION}.completed")


def test_a_stream_that_fails_ends_the_session(session, server):
    with server.steered("run.fail", "boom", "asr"):
        session.append()
        assert session.error()["code"] == "engine_error"
        assert session.close_code() == 1011
    settled(server)


def test_a_client_that_vanishes_frees_its_slot(server):
    sockets = [connect(address(server)) for _ in range(2)]
    for socket in sockets:
        session = Session(socket)
        session.append()
        session.until(f"{TRANSCRIPTION}.completed")
        socket.socket.shutdown(SHUT_RDWR)
    settled(server)


def test_a_client_that_says_nothing_frees_its_slot_and_may_go_on(strict):
    with connect(address(strict)) as socket:
        session = Session(socket)
        for _ in range(2):
            session.append()
            assert session.until("error")[-1]["error"]["code"] == "request_timeout"
            settled(strict)


def test_audio_over_the_limit_frees_its_slot(strict):
    with connect(address(strict)) as socket:
        session = Session(socket)
        for _ in range(6):
            session.append()
        assert session.until("error")[-1]["error"]["code"] == "too_large"
        settled(strict)
        session.set(turn_detection=None)
        for _ in range(6):
            session.append()
        assert session.error()["code"] == "too_large"


def test_audio_that_is_not_committed_in_time_is_dropped_and_the_session_goes_on(tmp_path):
    with (
        controlled_server(tmp_path, parallel=False, live_ingest={"total_timeout_ms": 200}) as server,
        connect(address(server)) as socket,
    ):
        session = Session(socket)
        session.expect("session.created")
        session.set(turn_detection=None)
        session.append()
        assert session.error()["code"] == "request_timeout"
        session.say("input_audio_buffer.commit")
        assert session.error()["message"] == "there is no audio to commit"
        session.append()
        session.say("input_audio_buffer.commit")
        assert session.until("conversation.item.input_audio_transcription.completed")


def test_commits_that_wait_are_few(tmp_path):
    with controlled_server(tmp_path, parallel=False) as server, connect(address(server)) as socket:
        session = Session(socket)
        session.expect("session.created")
        session.set(turn_detection=None)
        with server.steered("run.hold", "", "asr"):
            for _ in range(17):
                session.append()
                session.say("input_audio_buffer.commit")
            refused = session.until("error")
        assert kinds(refused).count("input_audio_buffer.committed") == 16
        assert refused[-1]["error"]["code"] == "server_busy"


def test_sessions_share_the_budget_of_all_bodies(tmp_path):
    most = bytes(700 * 1024)
    with (
        controlled_server(tmp_path, parallel=False, max_pending_body_mb=1) as server,
        connect(address(server)) as one,
        connect(address(server)) as other,
    ):
        first, second = Session(one), Session(other)
        for session in (first, second):
            session.expect("session.created")
            session.set(turn_detection=None)
        first.append(most)
        first.set(turn_detection=None)  # it is answered once the audio has been taken
        second.append(most)
        error = second.error()
        assert (error["code"], "max_pending_body_mb" in error["message"]) == ("server_busy", True)
        first.say("input_audio_buffer.clear")
        first.expect("input_audio_buffer.cleared")
        second.append(most)
        second.set(turn_detection=None)
        one.close()


@pytest.fixture
def registrable(tmp_path):
    """A server whose model `asr` can be registered anew: `register(max_chunk_bytes)` does so."""
    with controlled_server(tmp_path, parallel=True, ui_management=True) as server:
        checkpoint = server.checkpoints["asr"]
        checkpoint.set("live.echo")
        model = {"id": "asr", "family": "controlled", "path": str(checkpoint.path), "task": "asr", "slots": 2}

        def register(max_chunk_bytes):
            registration = {**model, "live_ingest": {"max_chunk_bytes": max_chunk_bytes}}
            return server.client.post("/v1/models/load", json=registration).status_code

        yield server, register


@pytest.mark.parametrize("turn_detection", [{"type": "server_vad"}, None], ids=["turns", "commits"])
def test_a_piece_over_the_limit_of_its_model_is_an_error_and_the_session_goes_on(registrable, turn_detection):
    server, register = registrable
    assert register(9600) == 200
    with connect(address(server)) as socket:
        session = Session(socket)
        session.expect("session.created")
        session.set(turn_detection=turn_detection)
        session.append(bytes(9602))
        error = session.error()
        assert error["code"] == "too_large"
        assert error["message"] == "a message is larger than the limit of 9600 bytes (live_ingest.max_chunk_bytes)"
        settled(server)
        session.append(bytes(9600))
        session.say("input_audio_buffer.commit")
        assert "error" not in kinds(session.until(f"{TRANSCRIPTION}.completed"))


@pytest.mark.parametrize(("before", "after"), [(2_000, 100_000), (100_000, 2_000)], ids=["raised", "lowered"])
def test_a_session_is_held_to_the_limits_that_are_registered_when_its_turn_comes(registrable, before, after):
    server, register = registrable
    assert register(before) == 200
    with server.steered("run.hold", "", "asr") as checkpoint, connect(address(server)) as socket:
        session = Session(socket)
        session.expect("session.created")
        running = server.threads.submit(server.transcribe)
        checkpoint.wait_for("run")
        registering = server.threads.submit(register, after)
        await_queue(server, "load")
        session.append()  # before the limits are known that will hold
        await_queue(server, "load", "infer")
        checkpoint.release("run")
        assert (running.result().status_code, registering.result()) == (200, 200)
        if after < len(FIFTH):
            assert session.error()["code"] == "too_large"
        else:
            assert "error" not in kinds(session.until(f"{TRANSCRIPTION}.completed"))
    settled(server)


def await_queue(server, *operations):
    eventually(
        lambda: next(it for it in server.client.get("/v1/status").json()["models"] if it["id"] == "asr"),
        lambda model: [it["operation"] for it in model["queue"]] == list(operations),
        f"{operations} in the queue",
    )


def test_a_message_over_the_limit_closes_the_session(strict):
    with connect(address(strict)) as socket:
        session = Session(socket)
        session.append(bytes(100_000))
        assert session.close_code() == 1009


@pytest.mark.parametrize("speaks", [True, False])
def test_at_the_stop_a_session_is_told_and_closed(tmp_path, speaks):
    with controlled_server(tmp_path, parallel=True) as server:
        server.checkpoints["asr"].set("live.echo")
        with connect(address(server)) as socket:
            session = Session(socket)
            session.expect("session.created")
            if speaks:
                session.append()
                session.until(f"{TRANSCRIPTION}.completed")
            server.process.process.send_signal(signal.SIGTERM)
            assert session.until("error")[-1]["error"]["code"] == "shutting_down"
            assert session.close_code() == 1001


def test_at_the_stop_what_was_committed_is_transcribed_yet(tmp_path):
    with controlled_server(tmp_path, parallel=True) as server, connect(address(server)) as socket:
        session = Session(socket)
        session.expect("session.created")
        session.set(turn_detection=None)
        with server.steered("run.hold", "", "asr") as checkpoint:
            for _ in range(3):  # each is a run of its own, after the one before
                session.append()
                session.say("input_audio_buffer.commit")
                session.until("conversation.item.done")
            checkpoint.wait_for("run")
            begin_stop(server.process)
            session.append()
            session.say("input_audio_buffer.commit")
            late = session.until("error")
        heard = session.until("error")
        assert late[-1]["error"]["code"] == "shutting_down"
        assert kinds([*late, *heard]).count(f"{TRANSCRIPTION}.completed") == 3
        assert f"{TRANSCRIPTION}.failed" not in kinds([*late, *heard])
        assert heard[-1]["error"]["code"] == "shutting_down"
        assert session.close_code() == 1001


def test_at_the_stop_a_live_stream_ends_and_earlier_commits_are_transcribed(tmp_path):
    with controlled_server(tmp_path, parallel=True) as server, connect(address(server)) as socket:
        checkpoint = server.checkpoints["asr"]
        checkpoint.set("live.echo")
        session = Session(socket)
        session.expect("session.created")
        session.set(turn_detection=None, transcription={"prompt": "held"})
        with checkpoint.held("run", "held"):
            session.append()
            session.say("input_audio_buffer.commit")
            checkpoint.wait_for("run", text="held")
            listening = {"input": {"turn_detection": _VAD, "transcription": {"prompt": "live"}}}
            session.say("session.update", session={"type": "transcription", "audio": listening})
            session.append()
            session.until(f"{TRANSCRIPTION}.completed")  # of the first turn that was heard live
            begin_stop(server.process)
            assert speak_on(session)["error"]["code"] == "shutting_down"  # no stream begins any more
        heard = session.until(f"{TRANSCRIPTION}.completed")
        assert heard[-1]["transcript"] == "asr|s1|held"
        assert session.close_code() == 1001


def speak_on(session):
    """Send audio until there is an error."""
    heard = {"type": ""}
    while heard["type"] != "error":
        session.append(bytes(2))
        with suppress(TimeoutError):
            heard = json.loads(session.socket.recv(0))
    return heard
