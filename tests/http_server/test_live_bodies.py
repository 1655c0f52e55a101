"""A body that arrives for minutes under an answer that has begun: its timing, its end, its faults, and the stop."""

import asyncio
import socket
import struct

import pytest
import uvloop

from listening_stage import head, until
from live_stage import LiveStage, settled

LOOP_FACTORY = uvloop.Loop
END = b"0\r\n\r\n"


@pytest.fixture
def stage(limits):
    return LiveStage(limits)


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


async def live(stage, *fields):
    """A peer whose body arrives, and whose answer has begun."""
    peer = await stage.connect()
    await peer.send(head("/live", "POST", "Transfer-Encoding: chunked", *fields))
    return peer, await peer.read_until(b"hello;")


async def test_the_answer_goes_on_while_the_body_arrives(stage):
    peer, received = await live(stage)
    for size in (3, 5, 7):
        await peer.send(chunk(b"x" * size))
        received = await peer.read_until(b"\r\n%d;" % size, received)
    await peer.send(END)
    await peer.read_until(b"end;\r\n0\r\n\r\n", received)


async def test_the_connection_serves_on_after_a_body_that_ended(stage):
    peer, received = await live(stage)
    await peer.send(END)
    await peer.read_until(b"0\r\n\r\n", received)
    await peer.send(head("/body", "POST", "Content-Length: 0"))
    assert (await peer.answer()).status == 200


async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(stage):
    peer = await stage.connect()
    await peer.send(head("/live", "POST", "Transfer-Encoding: chunked", "Expect: 100-continue"))
    received = await peer.read_until(b"hello;")
    assert received.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
    assert received.count(b"100 Continue") == 1


async def test_a_body_that_pauses_is_waited_for(stage):
    peer, received = await live(stage)
    stage.clock.advance(10_000)
    await peer.send(chunk(b"xxxx") + END)
    await peer.read_until(b"end;", received)


async def test_a_client_that_leaves_in_its_body_is_no_end_of_it(stage):
    peer, _ = await live(stage)
    await peer.send(chunk(b"x"))
    await until(lambda: stage.connection.cycle.body == b"")
    peer.socket.close()
    await settled(stage)
    assert stage.told == ["left"]


async def test_a_client_that_resets_the_connection_is_no_end_of_it(stage):
    peer, _ = await live(stage)
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.socket.close()
    await settled(stage)
    assert stage.told == ["left"]


@pytest.mark.parametrize("broken", [b"zz\r\n", b"-1\r\n", b"\r\n", b"3\r\nxxxx\r\n", b"3;" + b"x" * 500_000])
async def test_a_malformed_chunk_is_a_fault_that_the_client_can_read(stage, broken):
    peer, received = await live(stage)
    await peer.send(chunk(b"xx") + broken)
    received = await peer.read_until(b"0\r\n\r\n", received)
    assert b"end;" not in received
    assert stage.told in (["400"], ["413"])
    await peer.send(chunk(b"x"))  # it still sends, and that is no reason to reset the connection
    assert await peer.is_closed()


async def test_what_came_before_a_malformed_chunk_is_heard(stage):
    peer, received = await live(stage)
    await peer.send(chunk(b"xx") + b"zz\r\n")
    received = await peer.read_until(b"400;", received)
    assert b"\r\n2;" in received


async def test_an_answer_that_ends_early_is_read_whole_and_ends_the_connection(stage):
    peer, received = await live(stage)
    await stage.begin_stop()
    await until(lambda: "stopped" in stage.told)
    await peer.send(chunk(b"x" * 1000) * 10_000)  # more than lies in any buffer
    received = await peer.read_until(b"stopped;\r\n0\r\n\r\n", received)
    assert await peer.is_closed()
    stage.clock.advance(0.3)
    await until(lambda: not stage.connections)


async def test_at_the_stop_a_live_body_ends_while_other_work_goes_on(stage):
    peer, received = await live(stage)
    working = await stage.waiting()
    stage.clock.advance(5)
    await stage.begin_stop()
    await peer.read_until(b"stopped;\r\n0\r\n\r\n", received)
    assert stage.told == ["hold", "stopped"]
    stage.release.set()
    assert (await working.answer()).status == 200
    await stage.returned()


async def test_at_the_stop_a_client_that_reads_nothing_is_let_go_of(stage):
    peer, _ = await live(stage)
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await stage.waiting()
    await stage.begin_stop()
    await until(lambda: "stopped" in stage.told)
    stage.clock.advance(0.3)
    await until(lambda: len(stage.connections) == 1)


async def test_a_body_whose_pace_nobody_took_is_still_timed(stage):
    peer = await stage.stalled_body()
    stage.clock.advance(21)
    assert (await peer.answer()).status == 408


@pytest.mark.parametrize(
    ("writes", "heard"),
    [
        ([chunk(b"x" * 9) + END], [b"413;"]),
        ([chunk(b"x" * 9), END], [b"413;"]),
        ([chunk(b"x" * 8) + chunk(b"x" * 9) + END], [b"413;"]),
        ([chunk(b"x" * 9)[:6], chunk(b"x" * 9)[6:] + END], [b"413;"]),
        ([b"".join([chunk(b"x" * 8)] * 3) + END], [b"end;"]),
        ([chunk(b"x" * 8), chunk(b"x" * 8) + END], [b"end;"]),
    ],
    ids=["with the end", "before the end", "last of two", "in two writes", "three within", "two within"],
)
async def test_a_chunk_has_a_limit_however_it_is_written(stage, writes, heard):
    peer = await stage.connect()
    await peer.send(head("/live?max=8", "POST", "Transfer-Encoding: chunked"))
    received = await peer.read_until(b"hello;")
    for data in writes:
        await peer.send(data)
    received = await peer.read_until(b"0\r\n\r\n", received)
    assert [it for it in (b"413;", b"end;") if it in received] == heard


async def test_what_comes_behind_a_live_request_is_no_chunk_of_it(stage):
    peer = await stage.connect()
    first = head("/live?max=8&late", "POST", "Transfer-Encoding: chunked") + chunk(b"x" * 8) + END
    await peer.send(first + head("/body", "POST", "Content-Length: 100") + b"x" * 100)
    await until(lambda: stage.told == ["late"])
    stage.release.set()
    received = await peer.read_until(b"end;\r\n0\r\n\r\n")
    assert b"413;" not in received
    received = await peer.read_until(b"\r\n\r\n100", received)


async def test_a_body_that_arrives_behind_a_live_request_is_waited_for_and_answered(stage):
    peer = await stage.connect()
    first = head("/live?late", "POST", "Transfer-Encoding: chunked") + chunk(b"x") + END
    await peer.send(first + head("/body", "POST", "Content-Length: 100") + b"x" * 60)
    await until(lambda: stage.told == ["late"])
    stage.clock.advance(1000)  # its limit begins when it is its turn
    stage.release.set()
    await peer.read_until(b"end;\r\n0\r\n\r\n")
    await peer.send(b"x" * 40)
    answer = await peer.answer()
    assert (answer.status, answer.body) == (200, b"100")


async def test_a_malformed_request_behind_a_live_one_ends_the_connection_and_not_the_body(stage):
    peer = await stage.connect()
    first = head("/live?late", "POST", "Transfer-Encoding: chunked") + chunk(b"x") + END
    await peer.send(first + head("/body", "POST", "Transfer-Encoding: chunked") + b"zz\r\n")
    assert await peer.is_closed()  # there is no place for its answer before that of the first
    stage.release.set()
    await settled(stage)
    assert stage.told == ["late", "left"]


async def test_at_the_stop_a_body_behind_a_live_request_does_not_end_it(stage):
    peer = await stage.connect()
    first = head("/live?max=8&late", "POST", "Transfer-Encoding: chunked") + chunk(b"x") + END
    await peer.send(first + head("/body", "POST", "Content-Length: 100") + b"x")
    await until(lambda: stage.told == ["late"])
    await stage.begin_stop()
    stage.clock.advance(0.3)
    assert len(stage.connections) == 1
    stage.release.set()
    await peer.read_until(b"stopped;\r\n0\r\n\r\n")
    assert await peer.is_closed()
    await stage.returned()


async def test_what_comes_before_it_is_read_is_bounded(stage):
    peer = await stage.connect()
    await peer.send(head("/live?late", "POST", "Transfer-Encoding: chunked"))
    await until(lambda: stage.told == ["late"])
    sending = asyncio.ensure_future(peer.send(chunk(b"x" * 1000) * 20_000 + END))
    await until(lambda: stage.connection.flow.read_paused)
    for _ in range(100):
        await asyncio.sleep(0)
    assert not sending.done()
    assert len(stage.connection.cycle.body) < 1_000_000
    stage.release.set()
    await peer.read_until(b"end;")
    await sending
