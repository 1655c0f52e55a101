"""The order to stop on real sockets: what is refused, what goes on, what is cut and when, and when it is over."""

import asyncio

import pytest
import uvloop

from listening_stage import Peer, head, until

LOOP_FACTORY = uvloop.Loop


async def test_nobody_is_accepted_any_more(stage):
    await stage.waiting()
    await stage.begin_stop()
    with Peer(None).socket as late, pytest.raises(ConnectionRefusedError):
        await asyncio.get_running_loop().sock_connect(late, stage.address)


async def test_a_new_request_on_an_open_connection_is_told(stage):
    idle = await stage.connect()
    await idle.send(head("/body", "POST", "Content-Length: 0"))
    assert (await idle.answer()).status == 200
    fresh = await stage.connect()
    await stage.waiting()
    await stage.begin_stop()
    stage.clock.advance(60)  # however long the drain takes
    for peer in (idle, fresh):
        await peer.ask("/hold")
        answer = await peer.answer()
        assert (answer.status, answer.code) == (503, "shutting_down")
        assert (answer.fields["connection"], answer.fields["retry-after"]) == ("close", "1")
        assert await peer.is_closed()
    assert stage.told == ["body", "hold"]


async def test_the_sender_of_a_long_body_sees_that_it_is_refused(stage):
    peer = await stage.connect()
    await stage.waiting()
    await stage.begin_stop()
    size = 4 * 2**20
    await peer.send(head("/body", "POST", f"Content-Length: {size}") + b"x" * size)
    assert (await peer.answer()).status == 503
    assert await peer.is_closed()


async def test_what_runs_goes_on_and_its_connection_is_closed_after_it(stage):
    peer = await stage.waiting()
    await stage.begin_stop()
    stage.clock.advance(1000)
    stage.release.set()
    answer = await peer.answer()
    assert (answer.status, answer.body, answer.fields["connection"]) == (200, b"done", "close")
    assert await peer.is_closed()
    await stage.returned()


async def test_a_head_that_stalls_is_cut_after_a_quarter_of_a_second(stage):
    await stage.waiting()
    peer = await stage.stalled_head()
    stage.clock.advance(5)  # what was before the stop does not count
    await stage.begin_stop()
    stage.clock.advance(0.24)
    assert len(stage.connections) == 2
    stage.clock.advance(0.04)
    assert await peer.is_closed()


async def test_a_body_that_stalls_is_cut_and_its_request_ends(stage):
    await stage.waiting()
    peer = await stage.stalled_body()
    await stage.begin_stop()
    stage.clock.advance(0.28)
    assert await peer.is_closed()
    await until(lambda: len(stage._server._traffic.state.tasks) == 1)


@pytest.mark.parametrize("sent", [b"", b"half"], ids=["nothing yet", "a part"])
async def test_a_request_whose_body_is_still_arriving_is_refused_at_once_although_it_trickles(stage, sent):
    peer = await stage.stalled_body(sent)
    await stage.begin_stop()
    refusal = await peer.answer()
    assert (refusal.status, refusal.code) == (503, "shutting_down")
    assert not stage._server._traffic.state.tasks
    for _ in range(3):  # 0.24 s: the peer has a moment to see the answer, and what it still sends changes nothing
        assert len(stage.connections) == 1
        await peer.send(b"x")
        stage.clock.advance(0.08)
    stage.clock.advance(0.04)
    await stage.returned()


async def test_a_new_request_that_trickles_its_body_is_let_go_of(stage):
    idle, working = await stage.connect(), await stage.waiting()
    await stage.begin_stop()
    await idle.send(head("/body", "POST", "Content-Length: 100"))
    assert (await idle.answer()).code == "shutting_down"
    for _ in range(10):
        assert len(stage.connections) == 2
        stage.clock.advance(0.2)
        heard = max(it._heard_at for it in stage.connections)
        await idle.send(b"x")
        await until(lambda: len(stage.connections) < 2 or max(it._heard_at for it in stage.connections) > heard)  # noqa: B023 (it is awaited here)
    await until(lambda: len(stage.connections) == 1)
    stage.release.set()
    assert (await working.answer()).status == 200
    await stage.returned()


async def test_an_answer_that_nobody_reads_is_cut(stage):
    await stage.waiting()
    peer = await stage.non_reader()
    stage.clock.advance(5)
    await stage.begin_stop()
    stage.clock.advance(0.24)
    assert not stage.flood.closed
    stage.clock.advance(0.04)
    await until(lambda: stage.flood.closed)
    peer.socket.close()


async def test_an_answer_that_is_read_slowly_goes_out_whole(stage):
    stage.flood.blocks = 100
    peer = await stage.non_reader()
    await stage.begin_stop()
    await stage.read_slowly(peer, 0.2)
    await stage.returned()


async def test_it_returns_when_the_last_request_is_over_also_one_whose_client_has_left(stage):
    leaving = await stage.waiting("/deaf")
    await stage.begin_stop()
    leaving.socket.close()
    await until(lambda: not stage.connections)
    stage.clock.advance(10)
    await asyncio.sleep(0)
    assert not stage.serving.done()
    stage.release.set()
    await stage.returned()


async def test_an_idle_connection_is_closed_when_the_drain_ends(stage):
    idle, working = await stage.connect(), await stage.waiting()
    await stage.begin_stop()
    stage.clock.advance(60)
    assert len(stage.connections) == 2
    stage.release.set()
    assert (await working.answer()).status == 200
    await stage.returned()
    assert await idle.is_closed()


async def test_a_head_that_drips_does_not_hold_the_end_up(stage):
    peer = await stage.stalled_head()
    await stage.begin_stop()
    await stage.returned()
    assert await peer.is_closed()


async def test_the_cut_lets_go_of_every_connection_and_joins_what_runs(stage):
    heeding = await stage.waiting("/hold")
    deaf = await stage.waiting("/deaf")
    await stage.begin_stop()
    stage.stop.cut.set()
    stage.clock.advance(0.2)  # those who are refused by the cut can be told
    assert len(stage.connections) == 2
    stage.clock.advance(0.3)
    assert await heeding.is_closed()
    assert await deaf.is_closed()
    await until(lambda: "left" in stage.told)
    stage.clock.advance(10)
    await asyncio.sleep(0)
    assert not stage.serving.done()
    stage.release.set()
    await stage.returned()


async def test_the_cut_ends_an_answer_that_is_read_slowly(stage):
    peer = await stage.non_reader()
    await stage.begin_stop()
    stage.stop.cut.set()
    for _ in range(10):
        stage.clock.advance(0.05)
        await peer.read()
    await until(lambda: stage.flood.closed)
    await stage.returned()


async def test_a_server_without_requests_ends_at_once(stage):
    await stage.connect()
    await stage.begin_stop()
    await stage.returned()


async def test_an_idle_tls_peer_that_never_says_goodbye_does_not_hold_the_end_up(tls_stage, files):
    peer = await tls_stage.connect_over_tls(files.client())
    await peer.ask("/body", "POST", "Content-Length: 0")
    assert (await peer.answer()).status == 200
    await tls_stage.begin_stop()
    tls_stage.clock.advance(0.24)
    assert len(tls_stage.connections) == 1
    tls_stage.clock.advance(0.04)
    await until(lambda: not tls_stage.connections)
    await tls_stage.returned()


async def test_a_tls_peer_that_has_its_last_answer_and_never_says_goodbye_is_let_go_of(tls_stage, files):
    peer = await tls_stage.connect_over_tls(files.client())
    await peer.ask("/hold")
    await until(lambda: tls_stage.told == ["hold"])
    await tls_stage.begin_stop()
    tls_stage.clock.advance(60)
    tls_stage.release.set()
    assert (await peer.answer()).status == 200
    await tls_stage.returned()
