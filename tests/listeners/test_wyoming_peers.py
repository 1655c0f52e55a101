"""Wyoming peers that are wrong, large, slow or gone: each costs at most its own connection, and holds nothing."""

import asyncio
import socket
import struct

import httpx
import pytest
from wyoming.audio import AudioChunk, AudioStart
from wyoming.info import Describe
from wyoming.ping import Ping
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeVoice

from conformance_client import eventually
from server_process import HANG_GUARD_S
from wyoming_stage import HEARD, raw_event, spoken, types_of, wyoming_server

LIMITS = {"max_audio_bytes": 5000, "max_text_chars": 40}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with wyoming_server(tmp_path_factory.mktemp("wyoming"), options=LIMITS, max_connections=0) as server:
        yield server


@pytest.fixture
def served(server):
    """The server, whose next request must be answered, and which must hold nothing."""
    yield server
    eventually(lambda: busy(server), lambda it: it == [], "a free server")
    asyncio.run(answers(server))
    assert list(server.process.temp.iterdir()) == []
    assert "Traceback" not in server.process.log.read_text()


def busy(server):
    status = httpx.get(f"{server.process.url}/v1/status", timeout=HANG_GUARD_S).json()
    return [model["id"] for model in status["models"] if model["leases"] or model["queue"]]


async def answers(server):
    async with server.client() as client:
        assert (await client.ask(Synthesize("next"), until="audio-stop"))[-1].type == "audio-stop"


async def refused(client):
    """The error that ends a connection."""
    events = await client.until("error")
    assert types_of(events) == ["error"]
    assert await client.next() is None
    return events[0].data


NO_EVENTS = {
    "no json": b"hello\n",
    "no object": b"[1]\n",
    "no type": b'{"data": {}}\n',
    "type is a number": b'{"type": 1}\n',
    "no utf-8": b'{"type": "\xff"}\n',
    "deep": b'{"type": "ping", "data": ' + b'{"a":' * 20_000 + b"}" * 20_001 + b"\n",
    "data is a text": raw_event("ping", data="x"),
    "length is a text": raw_event("ping", payload_length="1"),
    "length is a truth value": raw_event("ping", payload_length=True),
    "negative length": raw_event("ping", payload_length=-1),
    "broken data": raw_event("ping", data_length=2) + b"{x",
}


@pytest.mark.parametrize("data", NO_EVENTS.values(), ids=NO_EVENTS)
async def test_what_is_no_event_ends_its_connection_with_an_error(served, data):
    async with served.client() as client:
        await client.send_bytes(data)
        error = await refused(client)
    assert error["text"].isprintable()


KEYS_TWICE = {
    "of the line": b'{"type": "ping", "type": "describe"}\n',
    "of its data": b'{"type": "ping", "data": {"text": "a", "text": "b"}}\n',
    "of the data beside it": raw_event("ping", data_length=22) + b'{"text": 1, "text": 2}',
}


@pytest.mark.parametrize("data", KEYS_TWICE.values(), ids=KEYS_TWICE)
async def test_a_key_that_appears_twice_ends_its_connection_with_an_error(served, data):
    async with served.client() as client:
        await client.send_bytes(data)
        assert "appears more than once" in (await refused(client))["text"]


TOO_LARGE = {
    "line": b'{"type": "' + b"x" * 200_000,
    "data": raw_event("ping", data_length=10**9),
    "payload": raw_event("audio-chunk", data=HEARD, payload_length=2**40),
}


@pytest.mark.parametrize("data", TOO_LARGE.values(), ids=TOO_LARGE)
async def test_an_event_over_a_limit_is_refused_before_it_comes(served, data):
    async with served.client() as client:
        await client.send_bytes(data)
        assert (await refused(client))["code"] == "too_large"


WRONG_FIELDS = {
    "no text": raw_event("synthesize"),
    "text is a number": raw_event("synthesize", data={"text": 1}),
    "voice is a text": raw_event("synthesize", data={"text": "x", "voice": "joe"}),
    "ssml": raw_event("synthesize", data={"text": "<speak/>", "text_format": "ssml"}),
    "language of nobody": raw_event("synthesize", data={"text": "x", "voice": {"language": "klingon"}}),
    "no rate": raw_event("audio-start", data={"width": 2, "channels": 1}),
    "rate of nobody": raw_event("audio-start", data={**HEARD, "rate": 10**12}),
    "no width": raw_event("audio-start", data={**HEARD, "width": 0}),
    "wide": raw_event("audio-start", data={**HEARD, "width": 8}),
    "terms are a text": raw_event("transcribe", data={"transcript_terms": "x"}) + raw_event("audio-start", data=HEARD),
    "two starts": raw_event("audio-start", data=HEARD) * 2,
    "another format": raw_event("audio-start", data=HEARD) + raw_event("audio-chunk", data={**HEARD, "rate": 8000}),
}


@pytest.mark.parametrize("data", WRONG_FIELDS.values(), ids=WRONG_FIELDS)
async def test_a_request_with_wrong_fields_is_refused(served, data):
    async with served.client() as client:
        await client.send_bytes(data)
        error = await refused(client)
    assert error["text"].isprintable()


async def test_an_audio_over_the_limit_is_refused_while_it_still_comes(served):
    async with served.client() as client:
        await client.send(AudioStart(**HEARD), *[AudioChunk(**HEARD, audio=bytes(3200))] * 2)
        assert (await refused(client))["code"] == "too_large"


async def test_a_chunk_over_the_limit_of_its_model_is_refused(tmp_path):
    with wyoming_server(tmp_path, live_ingest={"max_chunk_bytes": 3200}) as server:
        async with server.client() as client:
            chunks = [AudioChunk(**HEARD, audio=bytes(size)) for size in (3200, 3202)]
            await client.send(AudioStart(**HEARD), *chunks)
            error = await refused(client)
    assert error["code"] == "too_large"
    assert error["text"] == "a message is larger than the limit of 3200 bytes (live_ingest.max_chunk_bytes)"


async def test_a_text_over_the_limit_is_refused(served):
    async with served.client() as client:
        await client.send(Synthesize("x" * 41))
        assert (await refused(client))["code"] == "too_large"


async def test_a_growing_text_over_the_limit_is_refused(served):
    async with served.client() as client:
        await client.send(SynthesizeStart(), *[SynthesizeChunk("word ")] * 9)
        assert (await refused(client))["code"] == "too_large"


async def test_an_error_of_the_server_has_its_message_and_code(served):
    async with served.client() as client:
        await client.send(Synthesize("x", SynthesizeVoice("nobody")))
        error = await refused(client)
    assert error["code"] == "model_not_found"
    assert "nobody" in error["text"]


async def test_an_engine_that_fails_in_mid_answer_ends_it_with_an_error(served):
    served.voice.fail("stream")
    try:
        async with served.client() as client:
            events = await client.ask(Synthesize("broken"), until="audio-stop")
    finally:
        served.voice.unset("stream.fail")
    assert types_of(events) == ["audio-start", "audio-chunk", "error"]
    assert events[-1].data["code"] == "engine_error"


async def test_a_transcript_that_fails_ends_with_the_engines_error(served):
    served.ear.fail("stream")
    try:
        async with served.client() as client:
            events = await client.transcript("broken")
    finally:
        served.ear.unset("stream.fail")
    assert types_of(events) == ["transcript-start", "transcript-chunk", "error"]
    assert events[-1].data["code"] == "engine_error"


@pytest.mark.parametrize("reset", [False, True], ids=["closes", "resets"])
async def test_a_peer_that_vanishes_while_it_is_spoken_to_frees_the_slot(served, reset):
    served.voice.set("run.cancellable")
    with served.voice.held("run"):
        gone = connected(served.path)
        gone.sendall(raw_event("synthesize", data={"text": f"gone {reset}"}))
        await served.voice.await_for("run", text=f"gone {reset}")
        leave(gone, reset=reset)
        await served.voice.await_for("ran", text=f"gone {reset}")
        eventually(lambda: busy(served), lambda it: it == [], "a free slot")
    served.voice.unset("run.cancellable")


async def test_a_peer_that_vanishes_from_the_queue_has_left_it(served):
    with served.voice.held("run"):
        async with served.client() as first:
            await first.send(Synthesize("first"))
            await served.voice.await_for("run", text="first")
            gone = connected(served.path)
            gone.sendall(raw_event("synthesize", data={"text": "never"}))
            eventually(lambda: queued(served), lambda count: count == 1, "a queue")
            gone.close()
            eventually(lambda: queued(served), lambda count: count == 0, "an empty queue")
            served.voice.release("run")
            assert (await first.until("audio-stop"))[-1].type == "audio-stop"
    assert served.voice.events("run", "never") == []


async def test_a_peer_that_vanishes_in_the_middle_of_its_audio_leaves_its_slot_free(served):
    gone = connected(served.path)
    gone.sendall(raw_event("audio-start", data=HEARD))
    gone.sendall(raw_event("audio-chunk", data=HEARD, payload_length=3200) + bytes(1000))
    gone.close()
    await answers(served)
    # Live audio may have begun a run by then: it has ended, and nothing was heard to its end.
    ear = served.ear
    eventually(lambda: len(ear.events("run")) - len(ear.events("ran")), lambda running: running == 0, "no run")


async def test_a_peer_that_floods_before_its_answer_is_still_seen_to_leave(served):
    served.voice.set("run.cancellable")
    with served.voice.held("run"):
        gone = connected(served.path)
        gone.sendall(raw_event("synthesize", data={"text": "flooded"}) + raw_event("ping") * 500)
        await served.voice.await_for("run", text="flooded")
        gone.close()
        await served.voice.await_for("ran", text="flooded")
    served.voice.unset("run.cancellable")


def status_without_key(server):
    return httpx.get(f"{server.process.url}/v1/models", timeout=HANG_GUARD_S).status_code


def queued(server):
    models = httpx.get(f"{server.process.url}/v1/status", timeout=HANG_GUARD_S).json()["models"]
    return sum(len(model["queue"]) for model in models)


def connected(path):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(path)
    return peer


def leave(peer, *, reset):
    if reset:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


SLOW = {
    "in its event": b'{"type"',
    "in its audio": raw_event("audio-start", data=HEARD),
    "in its text": raw_event("synthesize-start"),
}


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    limits = {"header_timeout_ms": 100, "body_timeout_ms": 100, "send_timeout_ms": 100}
    with wyoming_server(tmp_path_factory.mktemp("impatient"), **limits) as server:
        yield server
    assert "Traceback" not in server.process.log.read_text()


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
async def test_a_peer_that_stands_still_is_let_go(impatient, sent):
    async with impatient.client() as client:
        await client.send_bytes(sent)
        assert (await refused(client))["code"] == "request_timeout"


async def test_a_peer_that_asks_for_nothing_is_let_go(tmp_path):
    with wyoming_server(tmp_path, options={"idle_timeout_ms": 100, "max_connections": 1}) as server:
        async with server.client() as client:
            assert await client.next() is None


async def test_a_peer_that_reads_nothing_is_let_go_and_frees_its_slot(impatient):
    with connected(impatient.path) as deaf:
        deaf.setblocking(False)
        loop = asyncio.get_running_loop()
        requests = raw_event("synthesize", data={"text": "x"}) * 100_000  # more than fits between the two
        with pytest.raises(OSError):
            await loop.sock_sendall(deaf, requests)
    eventually(lambda: busy(impatient), lambda it: it == [], "a free slot")
    await answers(impatient)


async def test_a_connection_over_the_limit_is_told_so(tmp_path):
    with wyoming_server(tmp_path, options={"max_connections": 1}) as server:
        async with server.client() as first:
            await first.ask(Ping(), until="pong")
            async with server.client() as second:
                assert (await refused(second))["code"] == "server_busy"
            assert (await first.ask(Describe(), until="info"))[-1].type == "info"


async def test_the_server_is_asked_with_the_key_that_the_listener_was_given(tmp_path):
    with wyoming_server(tmp_path, options={"api_key": "secret"}, api_keys=["secret"]) as server:
        assert status_without_key(server) == 401
        async with server.client() as client:
            assert (await client.transcript())[-1].type == "transcript-stop"


async def test_two_peers_are_served_in_the_order_of_their_requests(served):
    with served.voice.held("run"):
        async with served.client() as first, served.client() as second:
            await first.send(Synthesize("one"))
            await served.voice.await_for("run", text="one")
            await second.send(Synthesize("two"))
            eventually(lambda: queued(served), lambda count: count == 1, "a queue")
            assert served.voice.events("run", "two") == []
            served.voice.release("run")
            assert (await second.until("audio-stop"))[-1].type == "audio-stop"
    ran = [event.request for event in served.voice.events("run")]
    assert ran.index("one") < ran.index("two")


async def test_a_sound_is_still_heard_beside_a_broken_peer(served):
    async with served.client() as broken, served.client() as whole:
        await whole.send(*spoken(bytes(3200), "fine")[:-1])
        await broken.send_bytes(b"garbage\n")
        await refused(broken)
        events = await whole.ask(*spoken(b"")[-1:], until="transcript-stop")
    assert events[-2].data["text"].endswith("|fine")
