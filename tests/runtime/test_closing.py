"""The end of a runtime: what was admitted is joined, then everything is freed, and nothing new begins."""

import asyncio

import pytest

from antiphon.runtime.wiring import ResidencyLimits
from antiphon.vocabulary.errors import ShuttingDown
from antiphon.vocabulary.states import ModelState
from runtime_stage import drained, until


async def closing(stage):
    """A close that has begun."""
    task = asyncio.ensure_future(stage.runtime.close())
    await asyncio.sleep(0)
    return task


async def test_a_close_waits_for_what_runs_and_for_what_is_queued(stage):
    checkpoint = stage.model()
    checkpoint.hold("run")
    tasks = [*stage.fill(), stage.say("queued")]
    await checkpoint.await_for("run", stage.kind.slots)
    close = await closing(stage)
    checkpoint.release("run")
    texts = await asyncio.gather(*tasks)
    await close
    assert texts[-1].endswith("|queued")
    steps = [event.step for event in checkpoint.events() if event.step in ("ran", "destroy")]
    assert steps.index("destroy") == stage.kind.slots + 1
    assert stage.state() is ModelState.UNLOADED


async def test_a_close_waits_for_an_open_stream(stage):
    checkpoint = stage.model()
    stream = await stage.open("hello")
    close = await closing(stage)
    await stage.waiting(1)
    assert checkpoint.events("destroy") == []
    assert len(await drained(stream)) == 4
    await close
    steps = [event.step for event in checkpoint.events() if event.step in ("reset", "destroy")]
    assert steps[:2] == ["reset", "destroy"]


async def test_a_close_waits_for_a_load_and_frees_what_it_built(stage):
    checkpoint = stage.model(lazy=False)
    stage.model("b", lazy=False)
    checkpoint.hold("load")
    await stage.runtime.start()
    await checkpoint.await_for("load")
    close = await closing(stage)
    checkpoint.release("load")
    await close
    assert len(checkpoint.events("closed")) == 1
    assert stage.state("b") is ModelState.UNLOADED


async def test_new_work_is_refused_once_it_closes(stage):
    checkpoint = stage.model()
    with checkpoint.held("run"):
        running = stage.say("running")
        await checkpoint.await_for("run")
        close = await closing(stage)
        for begin in (stage.say("late"), stage.open("late"), stage.runtime.load("a"), stage.runtime.unload("a")):
            with pytest.raises(ShuttingDown):
                await begin
        assert [view.registration.spec.id for view in stage.runtime.views()] == ["a"]
    await asyncio.gather(running, close)


async def test_a_close_frees_every_model_also_when_one_destructor_fails(stage):
    broken, sound = stage.model("a"), stage.model("b")
    await stage.runtime.load("a")
    await stage.runtime.load("b")
    broken.fail("destroy")
    await stage.runtime.close()
    assert len(sound.events("closed")) == 1
    assert [fault[:2] for fault in stage.ear.faults] == [("a", "unload")]


async def test_a_close_that_waits_for_one_model_frees_the_others_meanwhile(stage):
    busy, idle = stage.model("a"), stage.model("b")
    await stage.runtime.load("b")
    with busy.held("run"):
        running = stage.say("running")
        await busy.await_for("run")
        close = await closing(stage)
        await idle.await_for("closed")
    await asyncio.gather(running, close)


async def test_a_second_close_is_harmless(stage):
    checkpoint = stage.model()
    await stage.runtime.load("a")
    await asyncio.gather(stage.runtime.close(), stage.runtime.close())
    await stage.runtime.close()
    assert len(checkpoint.events("closed")) == 1


# The cut: what has not ended by the deadline is given up


async def test_a_cut_refuses_all_who_wait_and_lets_what_runs_end(stage):
    checkpoint = stage.model()
    with checkpoint.held("run"):
        running = stage.fill()
        await checkpoint.await_for("run", stage.kind.slots)
        waiting = [stage.say("queued"), asyncio.ensure_future(stage.runtime.unload("a")), stage.say("behind")]
        await stage.waiting(3)
        close = await closing(stage)
        stage.runtime.cut()
        for waiter in waiting:
            with pytest.raises(ShuttingDown):
                await waiter
        assert not any(task.done() for task in (*running, close))
    outcomes = await asyncio.gather(*running, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {ShuttingDown}, "its engine ended, its answer was given up"
    await close
    assert len(checkpoint.events("run")) == stage.kind.slots
    assert stage.state() is ModelState.UNLOADED


async def test_a_cut_ends_an_engine_that_heeds_it(stage):
    checkpoint = stage.model()
    checkpoint.set("run.cancellable")
    checkpoint.hold("run")
    running = stage.say("running")
    await checkpoint.await_for("run")
    close = await closing(stage)
    stage.runtime.cut()
    with pytest.raises(ShuttingDown):
        await running
    await close


async def test_the_reader_of_a_stream_that_is_cut_is_told(stage):
    checkpoint = stage.model()
    checkpoint.set("run.cancellable")
    checkpoint.hold("stream")
    stream = await stage.open("hello")
    await anext(stream)
    reading = asyncio.ensure_future(anext(stream))
    close = await closing(stage)
    stage.runtime.cut()
    with pytest.raises(ShuttingDown):
        await reading
    with pytest.raises(ShuttingDown):
        await anext(stream)
    await stream.aclose()
    await close


async def test_a_stream_that_was_read_to_its_end_is_not_cut(stage):
    stage.model()
    stream = await stage.open("hello")
    events = [event async for event in stream]
    close = await closing(stage)
    stage.runtime.cut()
    await stream.aclose()
    await close
    assert len(events) == 4


async def test_a_request_that_waits_for_a_load_when_it_is_cut_does_not_run(stage):
    checkpoint = stage.model()
    with checkpoint.held("load"):
        waiting = stage.say("hello")
        await checkpoint.await_for("load")
        close = await closing(stage)
        stage.runtime.cut()
    with pytest.raises(ShuttingDown):
        await waiting
    await close
    assert checkpoint.events("run") == []
    assert len(checkpoint.events("closed")) == 1


async def test_a_manager_that_is_at_work_when_it_is_cut_is_joined(stage):
    checkpoint = stage.model()
    with checkpoint.held("load"):
        loading = asyncio.ensure_future(stage.runtime.load("a"))
        await checkpoint.await_for("load")
        close = await closing(stage)
        stage.runtime.cut()
    assert (await loading).loaded
    await close
    assert stage.state() is ModelState.UNLOADED


async def test_a_replacement_that_is_cut_begins_no_load(stage):
    old, new = stage.model(), stage.checkpoint("new")
    await stage.runtime.load("a")
    with old.held("destroy"):
        replacing = stage.register(stage.registration("a", "new", slots=1))
        await old.await_for("destroy")
        close = await closing(stage)
        stage.runtime.cut()
    with pytest.raises(ShuttingDown):
        await replacing
    await close
    assert new.events("load") == []


@pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=1, residency_wait_s=60)])
async def test_a_load_that_waits_for_room_is_refused_by_a_cut(stage, limits):
    busy, other = stage.model("a"), stage.model("b")
    with busy.held("run"):
        running = stage.say("running")
        await busy.await_for("run")
        waiting = [stage.say("roomless", "b"), stage.say("roomless", "b")]
        await until(lambda: stage.runtime._residents._room._waiting)
        close = await closing(stage)
        stage.runtime.cut()
        for waiter in waiting:
            with pytest.raises(ShuttingDown):
                await waiter
    await asyncio.gather(running, close, return_exceptions=True)
    assert other.events("load") == []


async def test_a_second_cut_is_harmless(stage):
    checkpoint = stage.model()
    with checkpoint.held("run"):
        running = stage.say("running")
        await checkpoint.await_for("run")
        close = await closing(stage)
        stage.runtime.cut()
        stage.runtime.cut()
    with pytest.raises(ShuttingDown):
        await running
    await close
