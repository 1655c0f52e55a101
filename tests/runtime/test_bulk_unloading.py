"""Bulk unloads: a barrier on every model in one step, each freed at its own grant, none for another's sake."""

import asyncio

import pytest

from antiphon.runtime.api import Unloaded
from antiphon.vocabulary.errors import ShuttingDown
from antiphon.vocabulary.states import ModelState
from runtime_stage import left

READY, UNLOADED, UNLOADING = ModelState.READY, ModelState.UNLOADED, ModelState.UNLOADING


async def begun(work):
    """Work that has made its first step."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    return task


async def test_every_known_id_is_listed_once_loaded_or_not_and_every_other_apart(stage):
    for name in "abc":
        stage.model(name)
    await stage.bring("a")
    done = await stage.runtime.unload_many(["b", "x", "a", "b", "x"])
    assert done == Unloaded(("b", "a"), ("x",))
    assert stage.state("a") is UNLOADED


async def test_without_ids_every_model_is_meant(stage):
    for name in "abc":
        stage.model(name)
    await stage.bring("a", "c")
    assert await stage.runtime.unload_many() == Unloaded(("a", "b", "c"), ())
    assert [stage.state(name) for name in "abc"] == [UNLOADED] * 3


async def test_no_id_at_all_unloads_nothing(stage):
    stage.model()
    await stage.bring("a")
    assert await stage.runtime.unload_many([]) == Unloaded((), ())
    assert stage.state() is READY


async def test_the_idle_are_out_of_use_in_the_same_step_and_the_busy_after_their_work(stage):
    busy, *_ = (stage.model(name) for name in "abc")
    await stage.bring("a", "b", "c")
    busy.hold("run")
    running = stage.say("hello", "a")
    await busy.await_for("run")
    bulk = await begun(stage.runtime.unload_many())
    assert [stage.state(name) for name in "abc"] == [READY, UNLOADING, UNLOADING]
    later = stage.say("later", "a")
    await stage.waiting(2)
    busy.release("run")
    await asyncio.gather(running, bulk, later)
    assert len(busy.events("load")) == 2


async def test_the_idle_are_freed_before_the_busy_are_done(stage):
    busy, idle = stage.model("a"), stage.model("b")
    await stage.bring("a", "b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        bulk = asyncio.ensure_future(stage.runtime.unload_many())
        await idle.await_for("closed")
        assert not bulk.done()
    await asyncio.gather(running, bulk)


async def test_slow_teardowns_do_not_wait_for_each_other(stage):
    slow, quick = stage.model("a"), stage.model("b")
    await stage.bring("a", "b")
    with slow.held("destroy"):
        bulk = asyncio.ensure_future(stage.runtime.unload_many())
        await quick.await_for("closed")
        await stage.say("hello", "b")
        assert not bulk.done()
    await bulk


async def test_a_teardown_that_fails_strands_nobody(stage):
    broken, _ = stage.model("a"), stage.model("b")
    await stage.bring("a", "b")
    broken.fail("destroy")
    assert (await stage.runtime.unload_many()).unloaded == ("a", "b")
    broken.unset("destroy.fail")
    assert [stage.state(name) for name in "ab"] == [UNLOADED] * 2
    await asyncio.gather(*(stage.say("hello", name) for name in "ab"))


async def test_a_caller_that_leaves_withdraws_the_barriers_that_wait(stage):
    busy, also_busy = stage.model("a"), stage.model("b")
    await stage.bring("a", "b")
    with busy.held("run"), also_busy.held("run"):
        running = [stage.say("hello", "a"), stage.say("hello", "b")]
        await busy.await_for("run")
        await also_busy.await_for("run")
        bulk = await begun(stage.runtime.unload_many())
        await stage.waiting(1)
        await left(bulk)
        assert [status.gate.queue for status in stage.runtime.status()] == [(), ()]
    await asyncio.gather(*running)
    await stage.say("later", "a")
    assert [stage.state(name) for name in "ab"] == [READY] * 2
    assert [it.events("destroy") for it in (busy, also_busy)] == [[], []]


async def test_an_unload_that_was_granted_finishes_although_its_caller_leaves(stage):
    busy, idle = stage.model("a"), stage.model("b")
    await stage.bring("a", "b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        with idle.held("destroy"):
            bulk = await begun(stage.runtime.unload_many())
            await idle.await_for("destroy")
            await left(bulk)
            assert [stage.state(name) for name in "ab"] == [READY, UNLOADING]
        await idle.await_for("closed")
    await running
    await stage.runtime.unload("b")  # behind the bulk's lease, which has been released
    assert [stage.state(name) for name in "ab"] == [READY, UNLOADED]


async def test_a_caller_that_leaves_before_any_unload_has_run_leaves_nothing_detached(stage):
    idle = stage.model("a")
    await stage.bring("a")
    bulk = await begun(stage.runtime.unload_many())
    assert stage.state() is UNLOADING
    await left(bulk)
    await idle.await_for("closed")
    await stage.say("hello", "a")


async def test_a_task_that_cannot_be_started_leaves_no_barrier_and_loses_no_pool(stage):
    """The task of the second model cannot be made: an allocation that fails in the middle of publishing."""
    checkpoints = [stage.model(name) for name in "abc"]
    await stage.bring("a", "b", "c")
    loop, made = asyncio.get_running_loop(), 0

    def factory(loop, work, **options):
        nonlocal made
        if work.__qualname__.endswith("_free_in_bulk"):
            made += 1
            if made == 3:
                work.close()
                raise MemoryError
        return asyncio.Task(work, loop=loop, **options)

    with checkpoints[0].held("run"):
        running = stage.say("hello", "a")
        await checkpoints[0].await_for("run")
        loop.set_task_factory(factory)
        with pytest.raises(MemoryError):
            await stage.runtime.unload_many(["a", "b", "c"])
        loop.set_task_factory(None)
        stage.hung = True  # the end of the stage would wait for ever for a lease or a barrier that is left
        assert [status.gate.queue for status in stage.runtime.status()] == [()] * 3
        assert stage.runtime.status()[2].gate.leases == ()  # it was granted too, and no task would give it back
        stage.hung = False
        await checkpoints[1].await_for("closed")  # it was granted, and its task was there
    await running
    for name in "abc":
        await stage.runtime.load(name)
    assert [stage.state(name) for name in "abc"] == [READY] * 3
    assert [len(it.events("load")) for it in checkpoints] == [1, 2, 1]


async def test_bulks_of_reversed_selections_end(stage):
    busy, _ = stage.model("a"), stage.model("b")
    await stage.bring("a", "b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        bulks = [asyncio.ensure_future(stage.runtime.unload_many(ids)) for ids in (["a", "b"], ["b", "a"])]
        await stage.waiting(2)
    done = await asyncio.gather(*bulks)
    assert [it.unloaded for it in done] == [("a", "b"), ("b", "a")]
    await running


async def test_a_bulk_waits_without_a_bound(stage):
    busy = stage.model(busy_timeout_ms=1)
    await stage.bring("a")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        stage.clock.advance(60)
        bulk = asyncio.ensure_future(stage.runtime.unload_many())
        await stage.waiting(1)
        stage.clock.advance(60)
        await stage.waiting(1)
    await asyncio.gather(running, bulk)


async def test_what_is_registered_after_it_began_is_not_touched(stage):
    busy = stage.model("a")
    await stage.bring("a")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        bulk = await begun(stage.runtime.unload_many())
        await stage.register(stage.registration("new"))
    await asyncio.gather(running, bulk)
    assert (await bulk).unloaded == ("a",)
    assert stage.state("new") is READY


async def test_the_parallel_runtime_waits_for_a_first_load_and_unloads_it(parallel):
    cold = parallel.model()
    with cold.held("load"):
        loading = parallel.say("hello")
        await cold.await_for("load")
        bulk = asyncio.ensure_future(parallel.runtime.unload_many())
        await parallel.waiting(1)
    await loading
    assert await bulk == Unloaded(("a",), ())
    assert parallel.state() is UNLOADED


async def test_the_serial_runtime_skips_a_first_load(serial):
    cold, _ = serial.model("a"), serial.model("b")
    await serial.bring("b")
    with cold.held("load"):
        loading = serial.say("hello", "a")
        await cold.await_for("load")
        assert await serial.runtime.unload_many() == Unloaded(("b",), ())
    await loading
    assert [serial.state(name) for name in "ab"] == [READY, UNLOADED]


async def test_nothing_is_unloaded_in_bulk_once_the_runtime_closes(stage):
    stage.model()
    await stage.runtime.close()
    with pytest.raises(ShuttingDown):
        await stage.runtime.unload_many()
