"""Readers of streams that take their time: they may, until somebody else waits for the slot."""

import asyncio
from array import array

import pytest

from antiphon.runtime.readers import ReaderWatch
from antiphon.runtime.wiring import EngineLimits
from antiphon.testing import ManualClock
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import RequestTimeout, ServerBusy
from antiphon.vocabulary.tasks import AudioDelta, Final, TaskResult
from virtual_stage import in_virtual_time

GRACE_S = 30
LOOK_S = 1
limited = pytest.mark.parametrize("engine_limits", [EngineLimits(reader_s=GRACE_S)], ids=["reader 30 s"])
TEXT = " ".join(["word"] * 20)


def elapsed(stage, since):
    return round(stage.loop.time() - since, 3)


async def begun(stage):
    """A stream of which one piece was taken, on the only slot."""
    stage.model(slots=1)
    stream = await stage.open(TEXT)
    await anext(stream)
    return stream


@limited
@in_virtual_time
async def test_a_reader_that_keeps_nobody_waiting_may_take_forever(stage):
    stream = await begun(stage)
    await asyncio.sleep(100_000)
    assert isinstance([it async for it in stream][-1], Final)
    await stream.aclose()


@limited
@in_virtual_time
async def test_a_reader_that_takes_nothing_loses_its_slot_to_whoever_waits(stage):
    stream, since = await begun(stage), stage.loop.time()
    assert (await stage.say("hello")).endswith("|hello")
    assert GRACE_S < elapsed(stage, since) < GRACE_S + 0.1
    with pytest.raises(RequestTimeout, match="slow_reader_timeout_ms"):
        await anext(stream)
    await stream.aclose()


@limited
@in_virtual_time
async def test_a_reader_that_has_used_up_its_time_loses_its_slot_soon_after_somebody_comes(stage):
    stream = await begun(stage)
    await asyncio.sleep(1000)
    since = stage.loop.time()
    await stage.say("hello")
    assert elapsed(stage, since) <= LOOK_S + 0.1
    with pytest.raises(RequestTimeout):
        await anext(stream)
    await stream.aclose()


@limited
@in_virtual_time
async def test_who_is_refused_at_once_behind_a_reader_finds_the_slot_free_soon_after(stage):
    stage.model(slots=1, busy_timeout_ms=15_000)
    stream = await stage.open(TEXT)
    await anext(stream)
    await asyncio.sleep(1000)
    with pytest.raises(ServerBusy):  # the reader is older than anyone would wait
        await stage.say("hello")
    await asyncio.sleep(LOOK_S + 0.1)
    assert (await stage.say("hello")).endswith("|hello")
    await stream.aclose()


@limited
@in_virtual_time
async def test_a_reader_that_drips_has_no_more_time_than_one_that_takes_nothing(stage):
    stream = await begun(stage)
    waiting = stage.say("hello")
    for _ in range(2):
        await asyncio.sleep(10)
        await anext(stream)
    await asyncio.sleep(11)
    with pytest.raises(RequestTimeout):
        await anext(stream)
    await waiting
    await stream.aclose()


@in_virtual_time
async def test_without_a_limit_a_reader_keeps_its_slot(stage):
    stream = await begun(stage)
    waiting = stage.say("hello")
    await asyncio.sleep(100_000)
    assert not waiting.done()
    await stream.aclose()
    await waiting


@limited
@in_virtual_time
async def test_a_stream_that_is_dropped_leaves_no_timer(stage):
    stream, since = await begun(stage), stage.loop.time()
    del stream
    await stage.settled()
    assert elapsed(stage, since) < GRACE_S
    assert stage.runtime.status()[0].gate.active_slots == 0


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def ended():
    """Filled once the reader was too slow."""
    return []


@pytest.fixture
def reader(clock, ended):
    """Of a stream that somebody else always waits for."""
    return ReaderWatch(clock, GRACE_S, lambda: True, lambda: ended.append(clock.now()))


def sound(seconds):
    return Pcm.from_bytes(array("f", bytes(4 * 1000 * seconds)).tobytes(), rate=1000)


@pytest.mark.parametrize("item", [AudioDelta(sound(10)), (0, TaskResult(audio=sound(10)))], ids=["stream", "batch"])
def test_a_player_is_never_too_slow(clock, ended, reader, item):
    for _ in range(1000):
        reader.give(item)
        clock.advance(15)  # it stalls now and then
        reader.asked()
    assert ended == []
    assert clock.statistics().pending == ()


def test_a_reader_has_twice_the_time_of_what_it_was_given(clock, ended, reader):
    reader.give(AudioDelta(sound(10)))
    clock.advance(GRACE_S + 19.9)
    assert ended == []
    clock.advance(0.2)
    assert ended == [1000 + GRACE_S + 20]  # the clock begins at 1,000 s
    reader.asked()
    reader.give(AudioDelta(sound(10)))
    clock.advance(1000)
    assert len(ended) == 1


def test_the_time_of_the_engine_is_not_the_readers(clock, ended, reader):
    for _ in range(100):
        reader.give("a text")
        clock.advance(0.2)
        reader.asked()
        clock.advance(1000)
    assert ended == []
