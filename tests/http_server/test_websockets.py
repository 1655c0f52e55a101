"""WebSockets on real sockets: how they open or are refused, what they carry, and what is asked of their peers."""

import asyncio
import socket
import struct

import pytest
import uvloop
from websockets.frames import Opcode

from antiphon.http.server.websocket import PING_S
from antiphon.ports.listener import PeerLimits
from listening_stage import head, until
from live_stage import LiveStage, frame, handshake, settled

LOOP_FACTORY = uvloop.Loop


@pytest.fixture
def stage(limits):
    return LiveStage(limits)


async def refused(stage, request, status, code=None):
    peer = await stage.connect()
    await peer.send(request)
    answer = await peer.answer()
    assert (answer.status, answer.code) == (status, code)
    assert answer.fields["content-type"] == "application/json"
    assert await peer.is_closed()
    return answer


async def test_what_is_said_comes_back(stage):
    peer = await stage.open("/echo")
    await peer.send("grüße")
    assert await peer.text() == "grüße"
    await peer.send(b"\0\xff")
    found = await peer.frame()
    assert (found.opcode, bytes(found.data)) == (Opcode.BINARY, b"\0\xff")


async def test_it_opens_on_a_connection_that_has_been_used(stage):
    peer = await stage.connect()
    await peer.send(head("/body", "POST", "Content-Length: 0"))
    assert (await peer.answer()).status == 200
    await peer.send(handshake("/echo"))
    assert (await peer.answer_head())[0] == 101
    assert len(stage.connections) == 1


async def test_what_comes_with_the_handshake_is_heard(stage):
    peer = await stage.connect()
    await peer.send(handshake("/echo") + frame(b"early"))
    status, _, rest = await peer.answer_head()
    assert status == 101
    assert (await peer.read_until(b"early", rest)).endswith(b"early")


async def test_the_subprotocol_is_agreed_on_and_never_the_key(stage):
    peer = await stage.connect()
    await peer.send(handshake("/echo", "Sec-WebSocket-Protocol: openai-insecure-api-key.secret, realtime"))
    status, fields, _ = await peer.answer_head()
    assert (status, fields["sec-websocket-protocol"]) == (101, "realtime")


async def test_no_compression_is_agreed_on(stage):
    peer = await stage.connect()
    await peer.send(handshake("/echo", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"))
    _, fields, _ = await peer.answer_head()
    assert "sec-websocket-extensions" not in fields


async def test_an_unknown_route_is_a_404_in_our_shape(stage):
    answer = await refused(stage, handshake("/nowhere"), 404, "not_found")
    assert b"there is no route WebSocket /nowhere" in answer.body


async def test_a_refusal_of_the_application_is_an_answer_in_our_shape(stage):
    await refused(stage, handshake("/refused"), 404, "model_not_found")


async def test_an_application_that_fails_before_it_opens_is_a_500(stage, caplog):
    answer = await refused(stage, handshake("/broken"), 500, "internal_error")
    assert b"secret" not in answer.body
    assert "internal error in WebSocket '/broken'" in caplog.text


async def test_an_application_that_fails_afterwards_closes_with_1011(stage):
    peer = await stage.open("/broken?accept=1")
    assert await peer.code() == 1011


@pytest.mark.parametrize(
    "changed",
    [("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8"), ("Sec-WebSocket-Version: 13\r\n", ""),
     ("dGhlIHNhbXBsZSBub25jZQ==", "short"), ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "")],
)  # fmt: skip
async def test_a_handshake_that_breaks_the_rules_is_a_400(stage, changed):
    await refused(stage, handshake("/echo").decode().replace(*changed).encode(), 400)
    assert stage.told == []


@pytest.mark.parametrize(
    "request_head",
    [handshake("/body").replace(b"GET", b"POST", 1).replace(b"\r\n\r\n", b"\r\nContent-Length: 0\r\n\r\n"),
     head("/echo")],
)  # fmt: skip
async def test_what_cannot_become_a_websocket_is_answered_as_http(stage, request_head):
    peer = await stage.connect()
    await peer.send(request_head)
    assert (await peer.answer()).status in {200, 404}


async def test_a_head_that_does_not_end_is_answered_408(stage):
    peer = await stage.connect()
    await peer.send(handshake("/echo")[:-2])
    await until(lambda: stage.connection._unframed_bytes > 0)
    stage.clock.advance(11)
    assert (await peer.answer()).status == 408


@pytest.mark.parametrize("limits", [PeerLimits(max_connections=1)])
async def test_an_open_websocket_counts_as_a_connection(stage, limits):
    await stage.open("/echo")
    await refused(stage, handshake("/echo"), 503, "server_busy")


async def test_a_message_in_pieces_is_one_message(stage):
    peer = await stage.open("/echo")
    pieces = [frame("grü".encode()[:3], Opcode.TEXT, fin=False), frame(b"", Opcode.CONT, fin=False)]
    await peer.raw(pieces[0])
    await peer.raw(pieces[1] + frame(b"", Opcode.PING) + frame("grüße".encode()[3:], Opcode.CONT))
    assert (await peer.frame()).opcode is Opcode.PONG
    assert await peer.text() == "grüße"


@pytest.mark.parametrize("limits", [PeerLimits(max_message_bytes=1000)])
@pytest.mark.parametrize(
    "sent",
    [frame(b"x" * 1001), frame(b"x" * 600, fin=False) + frame(b"x" * 401, Opcode.CONT),
     b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"],
    ids=["at_once", "in_pieces", "claimed"],
)  # fmt: skip
async def test_a_message_over_the_limit_closes_it_with_1009(stage, limits, sent):
    peer = await stage.open("/echo")
    await peer.send(b"x" * 1000)
    assert len((await peer.frame()).data) == 1000
    await peer.raw(sent)
    assert await peer.code() == 1009
    await until(lambda: len(stage.told) == 4)
    assert stage.told[3].startswith("1009")


@pytest.mark.parametrize(
    ("sent", "code"),
    [(b"\xff\xff", 1002), (b"\x82\x01x", 1002), (frame(b"x", Opcode.CONT), 1002), (frame(b"\xff", Opcode.TEXT), 1007),
     (frame(b"\x03", Opcode.CLOSE), 1002)],
    ids=["reserved_bits", "unmasked", "stray_continuation", "no_utf8", "bad_close"],
)  # fmt: skip
async def test_what_breaks_the_rules_closes_it_and_the_application_hears_why(stage, sent, code):
    peer = await stage.open("/echo")
    await peer.raw(sent)
    assert await peer.code() == code
    await peer.raw(b"x" * 100_000)  # it still sends, and that is no reason to reset the connection
    await until(lambda: any(it.startswith(str(code)) for it in stage.told))
    peer.peer.socket.close()
    await settled(stage)


async def test_a_peer_that_closes_is_answered_and_heard(stage):
    peer = await stage.open("/echo")
    await peer.raw(frame(b"\x03\xe8bye", Opcode.CLOSE))
    assert await peer.code() == 1000
    assert await peer.peer.is_closed()
    await settled(stage)
    assert stage.told == ["open", "left", "1000 bye"]


async def test_a_peer_that_vanishes_is_told_as_such(stage):
    peer = await stage.open("/echo")
    peer.peer.socket.close()
    await settled(stage)
    assert stage.told == ["open", "left", "1006"]


async def test_what_was_said_before_the_end_is_heard_before_it(stage):
    peer = await stage.open("/hush")
    await peer.raw(frame(b"1") + frame(b"22") + frame(b"\x03\xe8", Opcode.CLOSE))
    assert await peer.code() == 1000
    stage.release.set()
    await settled(stage)
    assert stage.told == ["hush", "heard 1", "heard 2"]


async def test_nothing_more_is_read_than_the_application_takes(stage):
    peer = await stage.open("/hush")
    sending = asyncio.create_task(peer.raw(frame(b"x" * 1000) * 20_000))
    await until(lambda: not stage.socket._reads)
    assert len(stage.socket._dialogue._heard) < 100
    stage.release.set()
    await sending
    await peer.raw(frame(b"", Opcode.CLOSE))
    await until(lambda: len(stage.told) == 20_001)
    assert stage.told[-1] == "heard 1000"


async def test_a_peer_that_vanishes_while_nothing_is_read_is_noticed(stage):
    peer = await stage.open("/hush")
    await peer.raw(frame(b"x" * 1000) * 100)
    await until(lambda: not stage.socket._reads)
    peer.peer.socket.close()
    while stage.connections:
        stage.clock.advance(1)
        await asyncio.sleep(0)
    stage.release.set()
    await settled(stage)


async def test_a_peer_that_breaks_a_rule_and_is_gone_before_it_opens_has_left(stage, caplog):
    peer = await stage.connect()
    await peer.send(handshake("/echo?late=1") + b"\x82\x01x")  # a frame without a mask
    await until(lambda: stage.told == ["open"])
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.socket.close()
    stage.release.set()
    await settled(stage)
    assert stage.told[-1].startswith("1002")
    assert caplog.records == []


async def test_a_peer_that_reads_nothing_is_let_go_of(stage):
    peer = await stage.open("/flood", receive_buffer=4096)
    await until(lambda: not stage.socket._writable.is_set())
    stage.clock.advance(29)
    said = stage.said
    assert stage.told == []
    stage.clock.advance(2)
    await settled(stage)
    assert stage.told == ["flooded"]
    assert stage.said == said
    peer.peer.socket.close()


async def test_pings_of_a_peer_that_reads_nothing_are_not_answered_without_end(stage):
    peer = await stage.open("/flood", receive_buffer=4096)
    await until(lambda: not stage.socket._writable.is_set())
    buffered = stage.socket.transport.get_write_buffer_size()
    sending = asyncio.ensure_future(peer.raw(frame(b"x" * 125, Opcode.PING) * 100_000))
    await until(lambda: not stage.socket._reads)
    for _ in range(1000):
        await asyncio.sleep(0)
    assert stage.socket.transport.get_write_buffer_size() < buffered + 2**20
    sending.cancel()


async def test_one_that_hears_nothing_is_pinged_and_stays_if_it_answers(stage):
    peer = await stage.open("/echo")
    for _ in range(5):
        stage.clock.advance(PING_S)
        assert (await peer.frame()).opcode is Opcode.PING
        heard = stage.socket._heard_at
        await peer.raw(frame(b"", Opcode.PONG))
        await until(lambda: stage.socket._heard_at > heard)  # noqa: B023 (it is awaited here)
    await peer.send("still here")
    assert await peer.text() == "still here"


async def test_one_that_does_not_answer_a_ping_is_let_go_of(stage):
    peer = await stage.open("/echo")
    stage.clock.advance(PING_S)
    assert (await peer.frame()).opcode is Opcode.PING
    stage.clock.advance(29)
    assert stage.connections
    stage.clock.advance(2)
    await settled(stage)
    assert stage.told == ["open", "left", "1006"]


async def test_at_the_stop_the_application_says_its_last_word(stage):
    peer = await stage.open("/echo")
    await stage.begin_stop()
    assert await peer.text() == "shutting down"
    assert await peer.code() == 1001
    await peer.raw(frame(b"\x03\xe9", Opcode.CLOSE))
    assert await peer.peer.is_closed()
    await stage.returned()
    assert "left" not in stage.told, "who is sent away has not left"


async def test_at_the_stop_a_peer_that_does_not_close_is_let_go_of(stage):
    await stage.waiting()
    peer = await stage.open("/echo")
    await stage.begin_stop()
    assert await peer.code() == 1001
    assert len(stage.connections) == 2
    stage.clock.advance(0.2)
    assert len(stage.connections) == 2
    stage.clock.advance(0.1)
    await until(lambda: len(stage.connections) == 1)


async def test_at_the_stop_a_peer_that_reads_nothing_is_let_go_of(stage):
    peer = await stage.open("/flood", receive_buffer=4096)
    await until(lambda: not stage.socket._writable.is_set())
    await stage.waiting()
    await stage.begin_stop()
    stage.clock.advance(0.24)
    assert len(stage.connections) == 2
    stage.clock.advance(0.04)
    await until(lambda: stage.told == ["hold", "flooded"])
    peer.peer.socket.close()


async def test_none_is_opened_after_the_stop(stage):
    idle = await stage.connect()
    await stage.waiting()
    await stage.begin_stop()
    await idle.send(handshake("/echo"))
    answer = await idle.answer()
    assert (answer.status, answer.code, answer.fields["retry-after"]) == (503, "shutting_down", "1")


async def test_the_cut_lets_go_of_one_whose_application_goes_on(stage):
    await stage.open("/hush")
    await stage.begin_stop()
    stage.clock.advance(10)
    assert len(stage.connections) == 1
    stage.stop.cut.set()
    for _ in range(20):
        stage.clock.advance(0.05)
        await asyncio.sleep(0)
    assert not stage.connections
    assert not stage.serving.done()
    stage.release.set()
    await stage.returned()
