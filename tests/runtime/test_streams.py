"""Streams at the runtime: each holds its lease until its engine is quiescent, whatever its reader does."""

import asyncio
import gc
import threading
from contextvars import ContextVar
from dataclasses import replace

import pytest

from antiphon.vocabulary.errors import EngineError, InvalidRequest
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import AudioDelta, Final, Interface
from runtime_stage import drained, order, until, words_of


async def unload_behind(stage):
    """An unload that waits behind what is there."""
    unload = asyncio.ensure_future(stage.runtime.unload("a"))
    await stage.waiting(1)
    assert stage.state() is not ModelState.UNLOADED
    return unload


def steps(checkpoint, *names):
    return [event.step for event in checkpoint.events() if event.step in names]


async def test_a_stream_gives_its_pieces_and_then_the_whole_result(stage):
    stage.model()
    events = await drained(await stage.open("hello"))
    assert [type(event) for event in events] == [AudioDelta] * 3 + [Final]
    assert words_of(events).endswith("|hello")


async def test_a_stream_keeps_its_slot_after_its_last_event_until_it_is_closed(stage):
    stage.model()
    stream = await stage.open("hello")
    assert len([event async for event in stream]) == 4
    unload = await unload_behind(stage)
    await stream.aclose()
    await unload


async def test_streams_fill_the_slots_and_the_next_waits(stage):
    stage.model()
    streams = [await stage.open(f"stream{number}") for number in range(stage.kind.slots)]
    late = stage.say("late")
    await stage.waiting(1)
    await streams[0].aclose()
    await late
    for stream in streams:
        await stream.aclose()


async def test_a_reader_that_leaves_in_mid_flight_ends_the_engine_and_has_its_session_reset(stage):
    checkpoint = stage.model()
    with checkpoint.held("stream"):
        stream = await stage.open("hello")
        await anext(stream)
        await checkpoint.await_for("stream")
        unload = await unload_behind(stage)
        closing = asyncio.ensure_future(stream.aclose())
        await until(lambda: stream._ending.events._flow._window.left)
        assert not closing.done()
        assert checkpoint.events("reset") == []
    await asyncio.gather(closing, unload)
    assert steps(checkpoint, "ran", "reset", "destroy")[:3] == ["ran", "reset", "destroy"]


async def test_a_closer_that_is_cancelled_does_not_cut_the_end_short(stage):
    checkpoint = stage.model()
    with checkpoint.held("stream"):
        stream = await stage.open("hello")
        await checkpoint.await_for("stream")
        unload = await unload_behind(stage)
        closing = asyncio.ensure_future(stream.aclose())
        await until(lambda: stream._ending.events._flow._window.left)
        closing.cancel()
        assert isinstance((await asyncio.gather(closing, return_exceptions=True))[0], asyncio.CancelledError)
        assert not unload.done()
    await unload
    assert steps(checkpoint, "reset", "destroy")[:2] == ["reset", "destroy"]


async def test_a_stream_closed_twice_is_released_once(stage):
    checkpoint = stage.model()
    stream = await stage.open("hello")
    await asyncio.gather(stream.aclose(), stream.aclose())
    await stream.aclose()
    await asyncio.gather(*stage.fill())
    assert len(checkpoint.events("reset")) == 1


async def test_a_closed_stream_has_no_more_events(stage):
    stage.model()
    stream = await stage.open("hello")
    await stream.aclose()
    assert [event async for event in stream] == []


async def test_a_reader_that_waits_when_its_stream_is_closed_reads_its_end(stage):
    checkpoint = stage.model()
    with checkpoint.held("stream"):
        stream = await stage.open("hello")
        await anext(stream)
        reading = asyncio.ensure_future(anext(stream, None))
        await checkpoint.await_for("stream")
        closing = asyncio.ensure_future(stream.aclose())
        await until(lambda: stream._ending.events._flow._window.left)
    assert await reading is None
    await closing


async def test_a_stream_that_is_dropped_gives_its_slot_back_without_the_cycle_collector(stage):
    checkpoint = stage.model()
    stream = await stage.open("hello")
    unload = await unload_behind(stage)
    gc.disable()
    try:
        del stream
        await unload
    finally:
        gc.enable()
    assert steps(checkpoint, "reset", "destroy")[:2] == ["reset", "destroy"]


async def test_a_stream_that_another_thread_drops_gives_its_slot_back(stage):
    stage.model()
    dropped = [await stage.open("hello")]
    unload = await unload_behind(stage)
    thread = threading.Thread(target=dropped.clear)
    thread.start()
    await unload
    thread.join()


async def test_a_stream_that_another_request_ends_is_told_of_in_the_context_of_its_own(stage, monkeypatch):
    stage.model()
    asked_by = ContextVar("asked_by")
    told = []
    monkeypatch.setattr(stage.ear, "ran", lambda *_: told.append(asked_by.get("nobody")))
    asked_by.set("mine")
    stream = await stage.open("hello")
    asked_by.set("another's")
    await stream.aclose()
    assert told == ["mine"]


async def test_a_stream_that_is_dropped_in_mid_flight_waits_for_its_engine(stage):
    checkpoint = stage.model()
    with checkpoint.held("stream"):
        stream = await stage.open("hello")
        await anext(stream)
        await checkpoint.await_for("stream")
        unload = await unload_behind(stage)
        del stream
        for _ in range(5):
            await asyncio.sleep(0)
        assert not unload.done()
    await unload


async def test_a_client_that_leaves_while_its_stream_is_prepared_leaves_no_lease(stage):
    checkpoint = stage.model()
    checkpoint.hold("prepare")
    opening = asyncio.ensure_future(stage.open("hello"))
    await checkpoint.await_for("prepare")
    unload = await unload_behind(stage)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    gc.disable()
    try:
        checkpoint.release("prepare")
        await unload
    finally:
        gc.enable()


async def test_a_client_that_leaves_in_the_turn_in_which_its_stream_is_ready_leaves_no_lease(stage):
    stage.model()
    await stage.runtime.load("a")
    opening = asyncio.ensure_future(stage.open("hello"))
    await until(lambda: any(task.done() for task in stage.runtime._tasks._running))  # and its caller still asleep
    opening.cancel()
    assert isinstance((await asyncio.gather(opening, return_exceptions=True))[0], asyncio.CancelledError)
    del opening
    await stage.runtime.unload("a")


async def test_a_request_that_the_engine_refuses_fails_before_a_stream_is_begun(stage):
    stage.model()
    with pytest.raises(InvalidRequest):
        await stage.open("")
    await asyncio.gather(*stage.fill())


async def test_a_stream_is_told_of_as_one_run_whether_it_was_begun_or_refused(stage):
    stage.model()
    with pytest.raises(InvalidRequest):
        await stage.open("")
    assert stage.ear.runs == ["a"]
    await (await stage.open("hello")).aclose()
    assert stage.ear.runs == ["a", "a"]


async def test_a_fault_in_the_first_piece_is_read_and_a_closed_stream_gives_the_slot_back(stage):
    checkpoint = stage.model()
    checkpoint.fail("run")
    stream = await stage.open("hello")
    unload = await unload_behind(stage)
    with pytest.raises(EngineError):
        await anext(stream)
    await stream.aclose()
    await unload
    assert len(checkpoint.events("reset")) == 1


async def test_a_fault_in_the_middle_arrives_after_the_pieces_before_it(stage):
    checkpoint = stage.model()
    checkpoint.fail("stream", "BufferError")
    stream = await stage.open("hello")
    await checkpoint.await_for("reset")  # the engine had failed before anything was read
    assert isinstance(await anext(stream), AudioDelta)
    with pytest.raises(EngineError, match="BufferError"):
        await anext(stream)
    assert await anext(stream, None) is None
    await stream.aclose()


async def test_a_session_that_cannot_reset_fails_its_stream_and_serves_the_next_request(stage):
    checkpoint = stage.model()
    checkpoint.fail("reset")
    stream = await stage.open("hello")
    assert [type(await anext(stream)) for _ in range(4)] == [AudioDelta] * 3 + [Final]
    with pytest.raises(EngineError):
        await anext(stream)
    await stream.aclose()
    checkpoint.unset("reset.fail")
    await asyncio.gather(*stage.fill())


async def test_a_fault_after_the_reader_left_is_nobodys_answer(stage):
    checkpoint = stage.model()
    with checkpoint.held("stream"):
        stream = await stage.open("hello")
        await checkpoint.await_for("stream")
        closing = asyncio.ensure_future(stream.aclose())
        await until(lambda: stream._ending.events._flow._window.left)
        checkpoint.fail("stream")
    await closing


async def test_a_session_without_streams_refuses_one_and_keeps_no_lease(stage):
    stage.model()
    await stage.runtime.load("a")
    resident = stage.runtime._residents.find("a")
    offline_only = replace(resident.pool.facts, interfaces=frozenset({Interface.OFFLINE}))
    resident.pool = replace(resident.pool, facts=offline_only)
    with pytest.raises(InvalidRequest, match="cannot be called streaming"):
        await stage.runtime.open_stream(order("hello", interface=Interface.STREAMING))
    await asyncio.gather(*stage.fill())
