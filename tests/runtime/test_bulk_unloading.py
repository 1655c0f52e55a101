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


async def test_a_caller_that_leaves_does_not_stop_it(stage):
    busy, _ = stage.model("a"), stage.model("b")
    await stage.bring("a", "b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        bulk = await begun(stage.runtime.unload_many())
        await left(bulk)
    await running
    for name in "ab":
        await stage.runtime.unload(name)  # behind the bulk's barrier: that one has ended then
    assert [stage.state(name) for name in "ab"] == [UNLOADED] * 2


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
