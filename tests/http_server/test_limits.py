"""How long a peer may take: for its head, its body, the answer, and between two requests; and how many may come."""

import asyncio
import socket
import struct

import pytest
import uvloop

from antiphon.http.server.connection import MAX_HEAD_BYTES, MAX_SURPLUS
from antiphon.ports.listener import PeerLimits
from listening_stage import BLOCK_BYTES, head, until

LOOP_FACTORY = uvloop.Loop


async def test_a_head_that_does_not_end_is_answered_408(stage):
    peer = await stage.stalled_head()
    stage.clock.advance(9)
    assert stage.connections
    stage.clock.advance(2)
    answer = await peer.answer()
    assert (answer.status, answer.code, answer.fields["connection"]) == (408, "request_timeout", "close")
    assert await peer.is_closed()
    assert stage.told == []


async def test_a_head_that_drips_is_answered_408(stage):
    peer = await stage.stalled_head()
    for _ in range(4):
        stage.clock.advance(3)
        await peer.send(b"X-")
        await asyncio.sleep(0)
    assert (await peer.answer()).status == 408


async def test_a_connection_on_which_nothing_comes_is_closed(stage):
    peer = await stage.connect()
    stage.clock.advance(9)
    assert stage.connections
    stage.clock.advance(2)
    assert await peer.is_closed()


async def test_a_body_that_stalls_is_answered_408(stage):
    peer = await stage.stalled_body()
    stage.clock.advance(21)
    answer = await peer.answer()
    assert (answer.status, answer.code, answer.fields["connection"]) == (408, "request_timeout", "close")
    assert await peer.is_closed()


async def test_a_body_that_breaks_before_it_is_asked_for_is_answered_400_and_not_asked_for(stage, caplog):
    peer = await stage.connect()
    await peer.send(head("/body", "POST", "Transfer-Encoding: chunked", "Expect: 100-continue") + b"zz\r\n")
    answer = await peer.answer()
    assert (answer.status, answer.fields["connection"]) == (400, "close")
    assert await peer.is_closed()
    await until(lambda: not stage._server._traffic.state.tasks)
    assert caplog.records == []


async def test_a_body_that_drips_is_answered_408(stage):
    peer = await stage.stalled_body(b"")
    for _ in range(2):
        stage.clock.advance(9)
        await stage.send_heard(peer, b"x")
    stage.clock.advance(3)
    answer = await peer.answer()
    assert (answer.status, answer.code, answer.fields["connection"]) == (408, "request_timeout", "close")
    assert "min_body_bytes_per_s" in answer.message
    assert await peer.is_closed()


@pytest.mark.parametrize("limits", [PeerLimits(body_timeout_s=20, min_body_bytes_per_s=1000)])
async def test_a_body_that_came_fast_at_first_may_not_drip_later(stage, limits):
    peer = await stage.connect()
    await peer.send(head("/body", "POST", "Content-Length: 60000"))
    await until(lambda: stage.told == ["body"])
    await stage.send_heard(peer, b"x" * 50_000)
    for step_s in (15, 10, 10):
        stage.clock.advance(step_s)
        await stage.send_heard(peer, b"x")
    stage.clock.advance(6)
    answer = await peer.answer()
    assert (answer.status, answer.code) == (408, "request_timeout")
    assert "min_body_bytes_per_s" in answer.message


@pytest.mark.parametrize("limits", [PeerLimits(body_timeout_s=20, min_body_bytes_per_s=1000)])
async def test_a_body_at_the_least_pace_is_read(stage, limits):
    peer = await stage.connect()
    await peer.send(head("/body", "POST", "Content-Length: 100000"))
    await until(lambda: stage.told == ["body"])
    await stage.send_heard(peer, b"x" * 10_000)
    for _ in range(9):
        stage.clock.advance(10)
        await stage.send_heard(peer, b"x" * 10_000)
    assert (await peer.answer()).body == b"100000"


@pytest.mark.parametrize("limits", [PeerLimits(body_timeout_s=20, min_body_bytes_per_s=0)])
async def test_a_body_that_comes_slowly_is_read_where_there_is_no_least_pace(stage, limits):
    peer = await stage.stalled_body(b"")
    for _ in range(10):
        stage.clock.advance(15)
        await stage.send_heard(peer, b"x")
    assert (await peer.answer()).body == b"10"


@pytest.mark.parametrize("limits", [PeerLimits(header_timeout_s=0, body_timeout_s=0, keep_alive_s=0)])
async def test_no_limit_is_no_limit(stage, limits):
    idle, slow = await stage.connect(), await stage.connect()
    await slow.send(head("/body", "POST", "Content-Length: 10"))
    await until(lambda: stage.told == ["body"])
    stage.clock.advance(3_600)
    await slow.send(b"0123456789")
    assert (await slow.answer()).status == 200
    stage.clock.advance(3_600)
    for peer in (idle, slow):
        await peer.send(head("/body", "POST", "Content-Length: 0"))
        assert (await peer.answer()).body == b"0"


async def test_a_connection_that_is_idle_between_requests_is_closed(stage):
    peer = await stage.connect()
    await peer.send(head("/body", "POST", "Content-Length: 0"))
    assert (await peer.answer()).status == 200
    stage.clock.advance(4)
    await peer.send(head("/body", "POST", "Content-Length: 0"))
    assert (await peer.answer()).status == 200
    stage.clock.advance(4)
    assert stage.connections
    stage.clock.advance(2)
    assert await peer.is_closed()


async def test_a_request_that_waits_for_its_answer_meets_no_limit(stage):
    peer = await stage.connect()
    await peer.ask("/hold")
    await until(lambda: stage.told == ["hold"])
    stage.clock.advance(1000)
    stage.release.set()
    assert (await peer.answer()).status == 200


async def test_an_answer_that_nobody_reads_stops_growing_and_is_cut(stage):
    peer = await stage.non_reader()
    given = stage.flood.given
    for _ in range(29):
        stage.clock.advance(1)
        await asyncio.sleep(0)
    assert stage.flood.given == given < stage.flood.blocks
    assert stage.connection.transport.get_write_buffer_size() <= 3 * BLOCK_BYTES
    stage.clock.advance(2)
    await until(lambda: stage.flood.closed and not stage.connections)
    peer.socket.close()


async def test_an_answer_that_is_read_slowly_is_not_cut(stage):
    stage.flood.blocks = 100
    peer = await stage.non_reader()
    await stage.read_slowly(peer, 20)
    assert not any(connection.answers for connection in stage.connections)


@pytest.mark.parametrize("limits", [PeerLimits(max_connections=2)])
async def test_a_connection_too_many_is_told_so_and_the_others_are_served(stage, limits):
    served = [await stage.connect(), await stage.connect()]
    surplus = await stage.connect()
    answer = await surplus.answer()
    assert (answer.status, answer.code, answer.fields["retry-after"]) == (503, "server_busy", "1")
    surplus.socket.close()
    for peer in served:
        await peer.send(head("/body", "POST", "Content-Length: 0"))
        assert (await peer.answer()).status == 200


@pytest.mark.parametrize("limits", [PeerLimits(max_connections=2, header_timeout_s=10)])
async def test_a_tls_handshake_is_counted_before_it_begins(tls_stage, files):
    stage = tls_stage
    silent = [await stage.dialled() for _ in range(2)]
    await until(lambda: stage.handshakes == 2)
    surplus = await stage.connect_over_tls(files.client())
    assert (await surplus.answer()).code == "server_busy"
    for peer in silent:
        peer.socket.close()
    await until(lambda: stage.handshakes == 0)
    surplus.socket.close()
    await until(lambda: not stage.connections)
    served = await stage.connect_over_tls(files.client())
    await served.send(head("/body", "POST", "Content-Length: 0"))
    assert (await served.answer()).status == 200


@pytest.mark.parametrize("limits", [PeerLimits(max_connections=1)])
async def test_of_many_silent_tls_peers_few_are_held(tls_stage):
    held = [await tls_stage.dialled() for _ in range(MAX_SURPLUS + 1)]
    await until(lambda: tls_stage.handshakes == MAX_SURPLUS + 1)
    beyond = await tls_stage.dialled()
    assert await beyond.is_closed()
    assert tls_stage.handshakes == len(held)


async def test_a_tls_peer_that_speaks_something_else_is_let_go_of(tls_stage):
    peer = await tls_stage.dialled()
    await until(lambda: tls_stage.handshakes == 1)
    await peer.send(b"GET / HTTP/1.1\r\n\r\n")
    await until(lambda: tls_stage.handshakes == 0)
    assert not tls_stage.connections


async def test_a_handshake_does_not_hold_a_stop_up(tls_stage):
    await tls_stage.dialled()
    await until(lambda: tls_stage.handshakes == 1)
    await tls_stage.begin_stop()
    await tls_stage.returned()
    assert tls_stage.handshakes == 0


async def test_a_head_without_end_is_refused_before_it_fills_the_memory(stage):
    peer = await stage.connect()
    await peer.send(b"GET / HTTP/1.1\r\nX: " + b"x" * (MAX_HEAD_BYTES + 1000))
    answer = await peer.answer()
    assert (answer.status, answer.code) == (413, "too_large")
    assert await peer.is_closed()


async def test_trailers_without_end_are_refused(stage):
    peer = await stage.connect()
    await peer.send(head("/body", "POST", "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\nX: ")
    await until(lambda: stage.told == ["body"])
    await peer.send(b"x" * (MAX_HEAD_BYTES + 1000))
    assert (await peer.answer()).status == 413


async def test_what_is_no_http_is_refused_so_that_its_sender_sees_it(stage):
    peer = await stage.connect()
    await peer.send(b"hello\r\n\r\n" + b"x" * 100_000)
    answer = await peer.answer()
    assert (answer.status, answer.code) == (400, None)
    assert await peer.is_closed()


async def test_a_refused_peer_that_never_leaves_is_let_go_of(stage):
    peer = await stage.connect()
    await peer.send(b"hello\r\n\r\n")
    assert (await peer.answer()).status == 400
    stage.clock.advance(1)
    assert stage.connections
    stage.clock.advance(2)
    await until(lambda: not stage.connections)


async def leave(peer, how):
    match how:
        case "close":
            peer.socket.close()
        case "reset":
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.socket.close()
        case "half close":
            peer.socket.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("how", ["close", "reset", "half close"])
async def test_a_client_that_leaves_while_it_waits_is_noticed(stage, how):
    peer = await stage.connect()
    await peer.ask("/hold")
    await until(lambda: stage.told == ["hold"])
    await leave(peer, how)
    await until(lambda: stage.told == ["hold", "left"])


@pytest.mark.parametrize("how", ["close", "reset", "half close"])
async def test_a_client_that_leaves_in_its_body_is_noticed(stage, how):
    peer = await stage.stalled_body()
    await leave(peer, how)
    await until(lambda: not stage.connections and not stage._server._traffic.state.tasks)


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_client_that_leaves_in_its_answer_is_noticed(stage, how):
    peer = await stage.non_reader()
    await leave(peer, how)
    await until(lambda: stage.flood.closed)


async def test_a_client_that_leaves_is_noticed_although_it_has_asked_for_more(stage):
    peer = await stage.connect()
    await peer.ask("/hold")
    await until(lambda: stage.told == ["hold"])
    await peer.ask("/hold")
    await until(lambda: stage.connection.flow.read_paused)
    peer.socket.close()
    while "left" not in stage.told:
        stage.clock.advance(1)
        await asyncio.sleep(0)
    assert stage.told == ["hold", "left"], "the second was never begun"
