"""The free-memory guard: a load comes only when it fits, idle models leave for it, and its refusals say why."""

import asyncio

import pytest

from antiphon.runtime.api import Strategy
from antiphon.runtime.wiring import ResidencyLimits
from antiphon.vocabulary.errors import EngineError, InsufficientMemory, LoadFailed
from antiphon.vocabulary.states import ModelState
from runtime_stage import until

READY, UNLOADED = ModelState.READY, ModelState.UNLOADED
guarded = pytest.mark.parametrize("limits", [ResidencyLimits(min_free_memory_bytes=100)], ids=["100 free"])
strict = pytest.mark.parametrize(
    "limits", [ResidencyLimits(max_loaded_models=1, min_free_memory_bytes=100)], ids=["one, 100 free"]
)


@guarded
async def test_a_load_that_leaves_enough_free_memory_is_carried_out(stage):
    stage.model(weight_bytes=50)
    stage.free_bytes = 150
    await stage.say("hello")


@guarded
async def test_a_load_that_would_leave_too_little_is_refused_before_it_begins(stage):
    checkpoint = stage.model(weight_bytes=50)
    stage.free_bytes = 149
    with pytest.raises(InsufficientMemory, match="min_free_memory_mb"):
        await stage.say("hello")
    assert checkpoint.events() == []
    assert stage.state() is UNLOADED
    stage.free_bytes = 150
    await stage.say("hello")


@guarded
async def test_idle_models_leave_one_after_another_until_there_is_enough(stage):
    first, second, _, newcomer = (stage.model(name, weight_bytes=50) for name in "abcd")
    await stage.bring("a", "b", "c")
    stage.free_bytes = 60
    first.hold("destroy")
    second.hold("destroy")
    loading = stage.say("hello", "d")
    await first.await_for("destroy")
    stage.free_bytes = 110
    first.release("destroy")
    await second.await_for("destroy")
    assert newcomer.events() == []
    stage.free_bytes = 160
    second.release("destroy")
    await loading
    assert [stage.state(name) for name in "abcd"] == [UNLOADED, UNLOADED, READY, READY]


@guarded
async def test_a_load_that_fits_does_not_wait_for_the_teardown_that_another_load_waits_for(stage):
    victim, _, _ = stage.model("a"), stage.model("b", weight_bytes=50), stage.model("c")
    await stage.bring("a")
    stage.free_bytes = 100
    with victim.held("destroy"):
        large = stage.say("hello", "b")
        await victim.await_for("destroy")
        await stage.say("hello", "c")
        assert not large.done()
        stage.free_bytes = 150
    await large


@guarded
async def test_a_load_that_does_not_fit_anyway_is_refused_and_what_left_for_it_is_gone(stage):
    stage.model("a")
    stage.model("b", weight_bytes=50)
    await stage.bring("a")
    stage.free_bytes = 100
    with pytest.raises(InsufficientMemory):
        await stage.say("hello", "b")
    assert [stage.state(name) for name in "ab"] == [UNLOADED, UNLOADED]


@strict
async def test_a_model_that_left_for_the_limit_stays_away_when_the_memory_is_refused(stage):
    stage.model("a")
    stage.model("b", weight_bytes=50)
    await stage.bring("a")
    stage.free_bytes = 100
    with pytest.raises(InsufficientMemory):
        await stage.say("hello", "b")
    await until(lambda: stage.state("a") is UNLOADED)
    await stage.say("hello", "a")


@guarded
async def test_busy_and_pinned_models_stay_and_go_on(stage):
    busy, _, _ = stage.model("a"), stage.model("b", pinned=True), stage.model("c", weight_bytes=50)
    await stage.bring("a", "b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        stage.free_bytes = 100
        with pytest.raises(InsufficientMemory):
            await stage.say("hello", "c")
        assert [stage.state(name) for name in "abc"] == [READY, READY, UNLOADED]
    assert (await running).endswith("|hello")


@guarded
async def test_cold_loads_that_fit_beside_each_other_do_not_wait(stage):
    first, _ = stage.model("a", weight_bytes=50), stage.model("b", weight_bytes=50)
    stage.free_bytes = 200
    with first.held("load"):
        loading = stage.say("hello", "a")
        await first.await_for("load")
        await stage.say("hello", "b")
    await loading


@guarded
async def test_a_load_that_fits_only_without_those_under_way_waits_for_them_and_warm_requests_do_not(stage):
    _, first, second = stage.model("a"), stage.model("b", weight_bytes=50), stage.model("c", weight_bytes=50)
    await stage.bring("a")
    stage.free_bytes = 199
    with first.held("load"):
        loading = stage.say("hello", "b")
        await first.await_for("load")
        waiting = stage.say("hello", "c")
        await stage.say("hello", "a")
        assert second.events() == []
        assert stage.state("a") is READY
    await asyncio.gather(loading, waiting)


@guarded
async def test_loads_that_wait_for_memory_come_in_their_order(stage):
    first, large, small = (stage.model(name, weight_bytes=size) for name, size in (("a", 50), ("b", 90), ("c", 10)))
    stage.free_bytes = 199
    with first.held("load"):
        loading = stage.say("hello", "a")
        await first.await_for("load")
        waiting = [stage.say("hello", "b"), stage.say("hello", "c")]
        await until(lambda: len(stage.runtime._residents.memory.guard._waiting) == 2)
        large.hold("load")
    await large.await_for("load")
    assert small.events() == []
    large.release("load")
    await asyncio.gather(loading, *waiting)


@guarded
async def test_a_load_that_fails_gives_its_memory_back(stage):
    broken, _ = stage.model("a", weight_bytes=50), stage.model("b", weight_bytes=90)
    stage.free_bytes = 199
    broken.fail("load")
    with pytest.raises(LoadFailed):
        await stage.say("hello", "a")
    await stage.say("hello", "b")


@guarded
async def test_a_second_pool_beside_the_first_has_its_memory_reserved(stage):
    stage.model("a", weight_bytes=50)
    stage.model("b", weight_bytes=50)
    await stage.bring("a")
    new = stage.checkpoint("new")
    new.set("bytes", "50")
    stage.free_bytes = 199
    with new.held("load"):
        replacing = stage.register(stage.registration("a", "new"), strategy=Strategy.SIDE_BY_SIDE)
        await new.await_for("load")
        waiting = stage.say("hello", "b")
        await until(lambda: stage.runtime._residents.memory.guard._waiting)
    await asyncio.gather(replacing, waiting)


async def test_without_the_guard_cold_loads_do_not_wait_for_each_other(stage):
    first, _ = stage.model("a"), stage.model("b")
    with first.held("load"):
        loading = stage.say("hello", "a")
        await first.await_for("load")
        await stage.say("hello", "b")
    await loading


@pytest.mark.parametrize("step", ["load", "open"])
async def test_an_engine_that_runs_out_of_memory_in_its_load_is_told_as_that_to_each_who_waited(stage, step):
    checkpoint = stage.model()
    checkpoint.hold("load")
    tasks = stage.fill()
    await checkpoint.await_for("load")
    checkpoint.fail(step, "MemoryError")
    checkpoint.release("load")
    faults = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(it) for it in faults} == {InsufficientMemory}
    assert len({id(it) for it in faults}) == len(faults)
    assert {it.message for it in faults} == {"the engine ran out of memory"}
    assert stage.state() is UNLOADED
    assert len(checkpoint.events("closed")) == len(checkpoint.events("loaded"))
    checkpoint.unset(f"{step}.fail")
    await stage.say("hello")


async def test_a_clone_without_memory_leaves_nothing_of_the_load(wide):
    checkpoint = wide.model()
    checkpoint.fail("clone", "MemoryError")
    with pytest.raises(InsufficientMemory):
        await wide.say("hello")
    closed = [event.step for event in checkpoint.events() if event.step in ("session_closed", "closed")]
    assert closed == ["session_closed", "closed"]
    checkpoint.unset("clone.fail")
    await wide.say("hello")


async def test_a_run_without_memory_is_no_fault_of_the_engine_and_costs_no_slot(stage):
    checkpoint = stage.model()
    checkpoint.fail("run", "MemoryError")
    with pytest.raises(InsufficientMemory) as caught:
        await stage.say("hello")
    assert not isinstance(caught.value, EngineError)
    checkpoint.unset("run.fail")
    await asyncio.gather(*stage.fill())
    assert len(checkpoint.events("load")) == 1


@strict
async def test_what_left_for_the_limit_is_freed_before_the_memory_is_called_too_little(stage):
    victim, newcomer = stage.model("a"), stage.model("b", weight_bytes=50)
    await stage.bring("a")
    stage.free_bytes = 100
    with victim.held("destroy"):
        loading = stage.say("hello", "b")
        await victim.await_for("destroy")
        assert newcomer.events() == []
        stage.free_bytes = 150
    assert (await loading).endswith("|hello")
