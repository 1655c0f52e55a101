"""A server with a Wyoming listener is told to stop: what was begun ends, whoever stands still is let go of (DIS-03)."""

import asyncio
import os
import signal
import socket
from contextlib import suppress

import pytest
from wyoming.audio import AudioChunk, AudioStart
from wyoming.ping import Ping
from wyoming.tts import Synthesize, SynthesizeStart

from conformance_client import HANG_GUARD_S, eventually
from listener_stop import assert_ended, begin_stop
from wyoming_stage import HEARD, types_of, wyoming_server


async def test_a_stop_waits_for_what_is_being_said_and_lets_go_of_the_others(tmp_path):
    with wyoming_server(tmp_path) as server, server.voice.held("run"):
        async with server.client() as speaking, server.client() as idle, server.client() as stalled:
            await idle.ask(Ping(), until="pong")
            await stalled.ask(SynthesizeStart(), Ping(), until="pong")
            await speaking.send(Synthesize("under way"))
            await server.voice.await_for("run")
            begin_stop(server.process)
            assert await idle.next() is None
            assert [event.data["code"] for event in await stalled.until("error")] == ["shutting_down"]
            assert await stalled.next() is None
            assert server.process.process.poll() is None
            assert server.voice.events("destroy") == []
            server.voice.release("run")
            assert types_of(await speaking.until("audio-stop")) == ["audio-start", "audio-chunk", "audio-stop"]
            assert await speaking.next() is None
        assert_ended(server.process)
    steps = [event.step for event in server.voice.events()]
    assert steps.index("ran") < steps.index("destroy")


async def test_nobody_is_accepted_and_no_request_taken_after_the_stop(tmp_path):
    with wyoming_server(tmp_path) as server, server.voice.held("run"):
        async with server.client() as client:
            await client.send(Synthesize("under way"), Synthesize("too late"))
            await server.voice.await_for("run")
            begin_stop(server.process)
            eventually(lambda: accepts(server.path), lambda open_: not open_, "a closed socket")
            server.voice.release("run")
            events = await client.until("error")
        assert_ended(server.process)
    assert types_of(events) == ["audio-start", "audio-chunk", "audio-stop"]
    assert server.voice.events("run", "too late") == []


def accepts(path):
    with socket.socket(socket.AF_UNIX) as peer:
        try:
            peer.connect(path)
        except (FileNotFoundError, ConnectionError):
            return False
    return True


async def test_a_second_signal_cuts_what_is_being_said(tmp_path):
    with wyoming_server(tmp_path) as server, server.voice.held("run"):
        server.voice.set("run.cancellable")
        async with server.client() as client:
            await client.send(Synthesize("cut"))
            await server.voice.await_for("run")
            begin_stop(server.process)
            os.kill(server.process.process.pid, signal.SIGTERM)
            events = await client.until("error")
            assert events[-1].data["code"] == "shutting_down"
        assert server.process.process.wait(HANG_GUARD_S) == 0
    assert len(server.voice.events("closed")) == 1


async def test_an_audio_that_goes_on_after_the_stop_is_told_so_while_others_drain(tmp_path):
    with wyoming_server(tmp_path) as server, server.voice.held("run"):
        async with server.client() as speaking, server.client() as client:
            await speaking.send(Synthesize("under way"))
            await server.voice.await_for("run")
            await client.send(AudioStart(**HEARD))
            os.kill(server.process.process.pid, signal.SIGTERM)
            events = await speak_on(client)
            server.voice.release("run")
            assert (await speaking.until("audio-stop"))[-1].type == "audio-stop"
        assert_ended(server.process)
    assert events[-1].data["code"] == "shutting_down"


@pytest.mark.parametrize("begun", ["an event", "an audio", "a text"])
@pytest.mark.parametrize("drain_timeout_ms", [0, 60_000])
async def test_a_peer_that_trickles_does_not_hold_the_stop_up(tmp_path, begun, drain_timeout_ms):
    with wyoming_server(tmp_path, drain_timeout_ms=drain_timeout_ms, header_timeout_ms=0) as server:
        async with server.client() as client:
            await client.ask(Ping(), until="pong")
            if begun == "an audio":
                await client.send(AudioStart(**HEARD))
            elif begun == "a text":
                await client.send(SynthesizeStart())
            await client.send_bytes(b'{"type": "ping"')
            begin_stop(server.process)
            assert [event.data["code"] for event in await trickle(client)] == ["shutting_down"]
        assert_ended(server.process)


async def trickle(client):
    """Send a byte every tenth of a second until the server ends it; what it said."""
    reading = asyncio.ensure_future(client.until("error"))
    with suppress(ConnectionError):
        while not (await asyncio.wait({reading}, timeout=0.1))[0]:
            await client.send_bytes(b" ")
    return await reading


async def speak_on(client):
    """Send sound until the server ends it; what it said."""
    reading = asyncio.ensure_future(client.until("error"))
    with suppress(ConnectionError):
        while not reading.done():
            await client.send(AudioChunk(**HEARD, audio=bytes(320)))
            await asyncio.sleep(0)
    return await reading
