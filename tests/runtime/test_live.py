"""Live audio under a lease: how it reaches the engine, and each way in which it ends."""

import asyncio
from dataclasses import replace

import pytest

from antiphon.testing.answers import RATE
from antiphon.vocabulary.errors import ClientLeft, InvalidRequest, RequestTimeout, RunTimeout, ShuttingDown
from antiphon.vocabulary.tasks import Final, Interface, SpeechStarted, SpeechStopped, Task, TextDelta
from live_speaker import LiveSpeaker
from runtime_stage import drained, order, until, words_of


async def live(stage, speaker, text="live", run_timeout_ms=None):
    inference = order(text, interface=Interface.STREAMING)
    return await stage.runtime.open_stream(replace(inference, live=speaker, run_timeout_ms=run_timeout_ms))


@pytest.fixture
def echo(stage):
    """A model that answers every 100 ms of live audio, and without any what it is asked."""
    checkpoint = stage.model()
    checkpoint.set("live.echo", "1600")
    return checkpoint


async def test_an_engine_answers_while_its_client_still_speaks(stage, echo):
    speaker = LiveSpeaker()
    stream = await live(stage, speaker)
    speaker.say(2000)
    heard = [await anext(stream) for _ in range(3)]
    assert heard == [SpeechStarted(0), TextDelta("1 ", 1600), SpeechStopped(1600)]
    speaker.say(1200)
    speaker.end()
    assert words_of(await drained(stream)) == "1 2 "


async def test_nothing_is_taken_from_the_client_before_its_slot_is_granted(stage, echo):
    speaker = LiveSpeaker()
    speaker.say(1600)
    with echo.held("run", "slot0"):
        held = stage.fill()
        waiting = asyncio.ensure_future(live(stage, speaker))
        await stage.waiting(1)
        assert speaker.asked == 0
        for task in held:
            task.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    speaker.end()
    assert words_of(await drained(await waiting)) == "1 "


async def test_an_engine_is_given_no_more_than_it_asks_for(stage):
    stage.model(task=Task.ASR).hold("run")
    speaker = LiveSpeaker()
    stream = await live(stage, speaker)
    for _ in range(5):
        speaker.say(1600)
    await stage.checkpoint("a").await_for("run")
    assert speaker.asked == 0
    stage.hold_nothing()
    speaker.end()
    await drained(stream)
    assert speaker.asked == 6


async def test_audio_is_converted_as_it_comes_and_no_frame_is_lost(stage):
    stage.model(task=Task.ASR)
    speaker = LiveSpeaker(rate=48_000, channels=2)
    for frames in (1, 4799, 43_199, 1, 96_000):
        speaker.say(frames)
    speaker.end()
    events = await drained(await live(stage, speaker))
    assert isinstance(events[-1], Final)
    assert events[-1].result.segments[0].end_sample == 3 * RATE


async def test_a_client_that_said_nothing_gets_an_empty_answer(stage, echo):
    speaker = LiveSpeaker(rate=48_000)
    speaker.end()
    assert words_of(await drained(await live(stage, speaker))) == ""


@pytest.mark.parametrize("fault", [RequestTimeout("no audio came"), ClientLeft("it is gone")], ids=["stall", "gone"])
async def test_audio_that_ends_in_a_fault_ends_its_stream_in_that(stage, echo, fault):
    speaker = LiveSpeaker()
    stream = await live(stage, speaker)
    speaker.say(1600)
    speaker.end(fault)
    with pytest.raises(type(fault), match=fault.message):
        await drained(stream)
    await stream.aclose()
    await asyncio.gather(*stage.fill())


async def test_an_engine_that_takes_a_fault_for_an_end_is_not_believed(stage):
    stage.model(task=Task.ASR)
    speaker = LiveSpeaker()
    stream = await live(stage, speaker)
    source = stream._ending.events._flow._source
    await until(lambda: speaker.asked == 1)
    source.fault = RequestTimeout("no audio came")
    speaker.end()
    with pytest.raises(RequestTimeout):
        await drained(stream)
    await stream.aclose()


async def test_a_source_that_breaks_is_an_error_of_its_stream(stage, echo, caplog):
    async def broken():
        raise ZeroDivisionError
        yield

    stream = await live(stage, broken())
    with pytest.raises(Exception, match="could not be read"):
        await drained(stream)
    await stream.aclose()
    assert "live audio could not be read" in caplog.text


async def test_a_reader_that_leaves_frees_an_engine_that_waits_for_audio(stage, echo):
    speaker = LiveSpeaker()
    stream = await live(stage, speaker)
    await until(lambda: speaker.asked == 1)
    await stream.aclose()
    assert len(echo.events("reset")) == 1
    await asyncio.gather(*stage.fill())


async def test_live_audio_ends_when_the_server_begins_to_stop_and_other_work_goes_on(stage, echo):
    speaker = LiveSpeaker()
    stream = await live(stage, speaker)
    await until(lambda: speaker.asked == 1)
    stage.runtime.refuse()
    with pytest.raises(ShuttingDown):
        await drained(stream)
    await stream.aclose()


async def test_live_audio_that_was_admitted_before_a_stop_ends_at_its_beginning(stage, echo):
    with echo.held("load"):
        waiting = asyncio.ensure_future(live(stage, LiveSpeaker()))
        await echo.await_for("load")
        stage.runtime.refuse()
    stream = await waiting
    with pytest.raises(ShuttingDown):
        await drained(stream)
    await stream.aclose()


async def test_the_time_in_which_the_client_is_silent_does_not_count(stage, echo):
    speaker = LiveSpeaker()
    stream = await live(stage, speaker, run_timeout_ms=2000)
    reading = asyncio.ensure_future(drained(stream))
    await until(lambda: speaker.asked == 1)
    stage.clock.advance(100)
    speaker.say(1600)
    await until(lambda: speaker.asked == 2)
    stage.clock.advance(100)
    speaker.end()
    assert words_of(await reading) == "1 "


async def test_the_time_that_the_engine_takes_over_audio_counts(stage):
    checkpoint = stage.model(task=Task.ASR)
    speaker = LiveSpeaker()
    with checkpoint.held("stream"):
        stream = await live(stage, speaker, run_timeout_ms=2000)
        speaker.say(1600)
        speaker.end()
        await anext(stream)
        late = asyncio.ensure_future(anext(stream))
        await until(lambda: stage.clock.statistics().pending)
        stage.clock.advance(2)
        with pytest.raises(RunTimeout):
            await late
        closing = asyncio.ensure_future(stream.aclose())
    await closing


async def test_a_request_without_audio_that_is_not_live_is_refused(stage):
    stage.model(task=Task.ASR)
    stream = await stage.open("")
    with pytest.raises(InvalidRequest):
        await drained(stream)
    await stream.aclose()
