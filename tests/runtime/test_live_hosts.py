"""Live audio and the hosts, threads or a process: it reaches the engine as that asks, and ends with its stream."""

import asyncio
from dataclasses import replace

import pytest

from antiphon.testing.answers import RATE
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import AntiphonError, RequestTimeout, TooLarge
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Final, Task, TaskRequest, TextDelta
from coroutine_tests import Ending
from host_stage import Opened

LIVE = TaskRequest(live=True)


@pytest.fixture(params=list(Isolation), ids=str)
def listening(request, checkpoint):
    checkpoint.set("live.echo", "1600")
    made = Opened(checkpoint, request.param, Task.ASR)
    assert isinstance(made, Ending)
    return made


async def spoken(*pieces):
    """Live audio: chunks of so many frames, then a fault where one is named."""
    offset = 0
    for piece in pieces:
        if isinstance(piece, AntiphonError):
            raise piece
        yield AudioChunk(Pcm.from_bytes(bytes(4 * piece), RATE), offset)
        offset += piece


async def test_live_audio_reaches_the_engine_and_its_answers_come_meanwhile(listening):
    await listening.slots()
    audio = spoken(800, 800, 1600)
    stream = await listening.host.stream(0, LIVE, audio)
    events = [event async for event in stream]
    await stream.aclose()
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["1 ", "2 "]
    assert events[-1].result.segments[0].end_sample == 3200


async def test_live_audio_that_fails_fails_the_engine_in_that_way(listening):
    await listening.slots()
    for fault in (RequestTimeout("no audio came"), TooLarge("too much audio", param="audio")):
        stream = await listening.host.stream(0, LIVE, spoken(1600, fault))
        with pytest.raises(type(fault), match=fault.message) as raised:
            assert [event async for event in stream] == []
        assert raised.value.param == fault.param
        await stream.aclose()
    assert len(listening.checkpoint.events("reset")) == 2


async def test_a_stream_is_closed_while_its_engine_waits_for_live_audio(listening):
    await listening.slots()
    never = asyncio.get_running_loop().create_future()

    async def silent():
        yield await never

    stream = await listening.host.stream(0, LIVE, silent())
    await listening.checkpoint.await_for("run")
    await stream.aclose()
    assert len(listening.checkpoint.events("reset")) == 1


async def test_a_slot_that_heard_live_audio_takes_a_request_without_any(listening):
    await listening.slots()
    stream = await listening.host.stream(0, LIVE, spoken(1600))
    await stream.aclose()
    sound = Pcm.from_bytes(bytes(4 * 1600), RATE)
    stream = await listening.host.stream(0, replace(LIVE, live=False, audio=sound), None)
    assert isinstance([event async for event in stream][-1], Final)
    await stream.aclose()
