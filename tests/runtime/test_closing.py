"""The end of a runtime: what was admitted is joined, then everything is freed, and nothing new begins."""

import asyncio

import pytest

from antiphon.vocabulary.errors import ShuttingDown
from antiphon.vocabulary.states import ModelState
from runtime_stage import drained


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
