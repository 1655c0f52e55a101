"""Requests that come one behind the other: few of them are held, none is lost, and each keeps its body."""

import asyncio

import pytest
import uvloop

from antiphon.http.server.connection import MAX_HEAD_BYTES
from listening_stage import head, until

LOOP_FACTORY = uvloop.Loop
TINY = b"GET /x HTTP/1.1\r\n\r\n"
MOST_HELD = 60
"""As many requests as fit into a slice of 1 KiB, and a few more."""


async def answers(peer, count):
    """The next answers, as they came."""
    received = b""
    while received.count(b"HTTP/1.1 ") < count or not received.endswith(b"}"):
        received += await peer.read()
    return received


async def test_a_flood_of_requests_is_held_back_while_the_first_one_runs(stage):
    peer = await stage.waiting()
    flood = asyncio.ensure_future(peer.send(TINY * 100_000))
    await until(lambda: stage.connection.pipeline)
    for _ in range(100):
        await asyncio.sleep(0)
        assert len(stage.connection.pipeline) <= MOST_HELD
    assert stage.connection.flow.read_paused
    assert len(stage.connection._unparsed) <= 256 * 1024
    flood.cancel()


async def test_a_handler_that_receives_does_not_let_more_requests_in(stage):
    peer = await stage.waiting()  # its handler watches for the client to leave, and so receives all the time
    await peer.send(TINY * 1000)
    await until(lambda: stage.connection.pipeline)
    stage.connection._running.flow.resume_reading()
    assert stage.connection.flow.read_paused
    stage.release.set()
    await until(lambda: not stage.connection.flow.read_paused)
    assert not stage.connection.pipeline
    assert not stage.connection._unparsed


async def test_every_request_of_a_pipeline_is_answered_in_order(stage):
    peer = await stage.waiting()
    bodies = [bytes(range(n % 251)) for n in range(300)]
    for body in bodies:
        await peer.send(head("/body", "POST", f"Content-Length: {len(body)}") + body)
    stage.release.set()
    received = b""
    while received.count(b"HTTP/1.1 200 ") <= len(bodies):
        received += await peer.read()
    lengths = [int(part.split(b"\r\n\r\n", 1)[1]) for part in received.split(b"HTTP/1.1 200 ")[2:]]
    assert lengths == [len(body) for body in bodies]


async def test_a_body_behind_a_waiting_request_arrives_whole(stage):
    peer = await stage.waiting()
    await peer.send(head("/body", "POST", "Content-Length: 50000") + b"x" * 20_000)
    await until(lambda: stage.connection.pipeline)
    stage.release.set()
    await peer.send(b"x" * 30_000)
    await peer.answer()
    assert (await peer.answer()).body == b"50000"


async def test_the_flood_ends_with_its_connection(stage):
    peer = await stage.waiting()
    await peer.send(TINY * 1000)
    await until(lambda: stage.connection.pipeline)
    connection = stage.connection
    peer.socket.close()
    stage.clock.advance(1)
    await until(lambda: not stage.connections)
    assert not connection.pipeline
    assert not connection._unparsed
    assert stage.told == ["hold", "left"]


@pytest.mark.parametrize("upgrade", ["h2c", "TLS/1.3", "websocket, h2c"])
async def test_an_upgrade_to_what_is_not_spoken_is_ignored_and_the_next_request_answered(stage, upgrade):
    peer = await stage.connect()
    asked = head("/body", "POST", "Connection: Upgrade", f"Upgrade: {upgrade}", "Content-Length: 0")
    await peer.send(asked + head("/nowhere"))
    received = await answers(peer, 2)
    assert received.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 404 " in received


@pytest.mark.parametrize("upgrade", ["h2c", "websocket"])
@pytest.mark.parametrize(
    ("framing", "body"),
    [("Content-Length: 5", b"hello"), ("Transfer-Encoding: chunked", b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")],
)
async def test_an_ignored_upgrade_keeps_the_body_of_its_request(stage, upgrade, framing, body):
    peer = await stage.connect()
    await peer.send(head("/body", "POST", "Connection: Upgrade", f"Upgrade: {upgrade}", framing) + body[:3])
    await until(lambda: stage.told == ["body"])
    await peer.send(body[3:])
    assert (await peer.answer()).body == b"5"
    await peer.ask("/nowhere")
    assert (await peer.answer()).status == 404


@pytest.mark.parametrize("behind", [b"2\r\n{}\r\n0\r\nX-Long: ", b"2\r\n{}\r\n2;long="])
async def test_what_comes_behind_a_body_in_the_same_packet_counts_as_a_head(stage, behind):
    peer = await stage.connect()
    await peer.send(head("/body", "POST", "Transfer-Encoding: chunked") + behind + b"x" * (MAX_HEAD_BYTES + 1024))
    answer = await peer.answer()
    assert (answer.status, answer.code) == (413, "too_large")
