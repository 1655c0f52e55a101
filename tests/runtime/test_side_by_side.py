"""A replacement that is built beside the working model, which nothing touches before the two are swapped."""

import asyncio
from dataclasses import replace

import pytest

from antiphon.runtime.api import Strategy
from antiphon.runtime.wiring import ResidencyLimits
from antiphon.vocabulary.errors import InsufficientMemory, InvalidRequest, LoadFailed, ServerBusy, ShuttingDown
from antiphon.vocabulary.states import ModelState
from runtime_stage import left, until

READY, UNLOADED = ModelState.READY, ModelState.UNLOADED


def beside(stage, registration=None, busy_timeout_ms=None):
    """Begin to replace the model `a`."""
    return stage.register(registration or stage.registration("a", "new"), busy_timeout_ms, Strategy.SIDE_BY_SIDE)


def steps(checkpoint, *names):
    return [event.step for event in checkpoint.events() if event.step in names]


async def test_the_old_model_works_until_the_new_one_is_whole(stage):
    old, new = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    last = "clone" if stage.kind.slots > 1 else "open"
    with new.held(last):
        replacing = beside(stage)
        await new.await_for(last)
        assert (await stage.say("hello")).startswith("a|")
        assert stage.state() is READY
    assert (await replacing).registration.spec.path == str(new.path)
    assert (await stage.say("hello")).startswith("new|")
    assert steps(old, "closed") == ["closed"]
    assert steps(new, "load", "open") == ["load", "open"]


async def test_the_swap_waits_for_earlier_requests_and_comes_before_later_ones(stage):
    old, new = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    old.hold("run")
    before = [*stage.fill(), stage.say("queued")]
    await old.await_for("run", stage.kind.slots)
    replacing = beside(stage)
    await stage.waiting(2)
    after = stage.say("after")
    await stage.waiting(3)
    assert steps(new, "loaded") == ["loaded"]
    old.release("run")
    texts = await asyncio.gather(*before, after)
    await replacing
    assert [text.split("|")[0] for text in texts] == ["a"] * (stage.kind.slots + 1) + ["new"]


async def test_the_new_model_is_in_use_while_the_old_one_is_being_freed_under_the_lease(stage):
    old, _ = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    with old.held("destroy"):
        replacing = beside(stage)
        await old.await_for("destroy")
        assert stage.state() is READY
        assert not replacing.done()
    await replacing


@pytest.mark.parametrize("step", ["load", "open", "session.null"])
async def test_a_build_that_fails_leaves_the_old_model_as_it_was(stage, step):
    stage.model()
    new = stage.checkpoint("new")
    await stage.bring("a")
    pool, registration = stage.pool(), stage.runtime.view("a").registration
    if step == "session.null":
        new.set(step)
    else:
        new.fail(step)
    with pytest.raises(LoadFailed):
        await beside(stage)
    assert stage.pool() is pool
    assert stage.runtime.view("a").registration == registration
    assert len(steps(new, "closed")) == len(steps(new, "loaded"))
    await asyncio.gather(*stage.fill())


async def test_a_count_that_the_new_model_cannot_serve_leaves_the_old_model_as_it_was(wide):
    wide.model()
    new = wide.checkpoint("new")
    await wide.bring("a")
    pool = wide.pool()
    new.set("capacity", "1")
    with pytest.raises(InvalidRequest) as caught:
        await beside(wide)
    assert caught.value.param == "slots"
    assert wide.pool() is pool
    assert steps(new, "closed") == ["closed"]


async def test_a_build_is_given_up_where_the_registration_changed_meanwhile(stage):
    old, new = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    with new.held("load"):
        replacing = beside(stage)
        await new.await_for("load")
        await stage.register(replace(stage.runtime.view("a").registration, pinned=True))
    view = await replacing
    assert (view.loaded, view.registration.spec.path) == (True, str(new.path))
    assert steps(new, "loaded", "closed") == ["loaded", "closed", "loaded"]  # never both in memory
    assert steps(old, "closed") == ["closed"]


async def test_a_pool_that_was_built_is_used_although_the_model_was_unloaded_meanwhile(stage):
    old, new = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    with new.held("load"):
        replacing = beside(stage)
        await new.await_for("load")
        await stage.runtime.unload("a")
        assert stage.state() is UNLOADED
    view = await replacing
    assert (view.state, view.loaded, view.registration.spec.path) == (READY, True, str(new.path))
    assert (await stage.say("hello")).startswith("new|")
    assert steps(new, "loaded", "closed") == ["loaded"]  # the weights are read once
    assert steps(old, "loaded", "closed") == ["loaded", "closed"]


@pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=2)], ids=["two"])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
async def test_a_pool_that_outlives_the_first_one_takes_one_place_and_no_other_models(stage, busy):
    stage.model("a")
    neighbour = stage.model("b")
    new = stage.checkpoint("new")
    await stage.bring("a")
    running = None
    with new.held("load"):
        replacing = beside(stage)
        await new.await_for("load")
        await stage.runtime.unload("a")
        if busy:
            neighbour.hold("run")
            running = stage.say("hello", "b")
            await neighbour.await_for("run")
        else:
            await stage.bring("b")
    assert (await replacing).loaded
    assert [stage.state(name) for name in "ab"] == [READY, READY]
    assert steps(neighbour, "loaded", "closed") == ["loaded"]
    if running is not None:
        neighbour.release("run")
        await running


@pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=2)], ids=["two"])
async def test_a_second_pool_that_is_given_up_leaves_its_place_to_the_load_that_follows(stage):
    """The registration changes and the first pool is unloaded, so the replacement is loaded in the ordinary way."""
    stage.model("a")
    neighbour = stage.model("b")
    new, other = stage.checkpoint("new"), stage.checkpoint("other")
    await stage.bring("a")
    with new.held("load"):
        replacing = beside(stage)
        await new.await_for("load")
        await stage.register(stage.registration("a", "other"))
        await stage.runtime.unload("a")
        await stage.bring("b")
    view = await replacing
    assert (view.loaded, view.registration.spec.path) == (True, str(new.path))
    assert stage.state("b") is READY
    assert steps(neighbour, "loaded", "closed") == ["loaded"]
    assert steps(other, "loaded", "closed") == ["loaded", "closed"]
    assert steps(new, "loaded", "closed") == ["loaded", "closed", "loaded"]


async def test_a_wait_for_the_swap_that_is_over_frees_what_was_built(stage):
    old, new = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    with old.held("run"):
        running = stage.say("hello")
        await old.await_for("run")
        replacing = beside(stage, busy_timeout_ms=1000)
        await stage.waiting(1)
        stage.clock.advance(1)
        with pytest.raises(ServerBusy):
            await replacing
    assert steps(new, "loaded", "closed") == ["loaded", "closed"]
    assert (await running).startswith("a|")


async def test_a_model_that_is_not_in_memory_is_replaced_in_the_ordinary_way(stage):
    stage.model()
    assert (await beside(stage)).loaded
    assert steps(stage.checkpoint("new"), "load") == ["load"]


async def test_a_new_id_is_registered_in_the_ordinary_way(stage):
    assert (await beside(stage)).loaded


async def test_an_unchanged_registration_builds_nothing(stage):
    checkpoint = stage.model()
    await stage.bring("a")
    pool = stage.pool()
    await beside(stage, stage.runtime.view("a").registration)
    assert stage.pool() is pool
    assert steps(checkpoint, "load") == ["load"]


async def test_a_client_that_leaves_does_not_stop_it(stage):
    stage.model()
    new = stage.checkpoint("new")
    await stage.bring("a")
    with new.held("load"):
        replacing = beside(stage)
        await new.await_for("load")
        await left(replacing)
    await until(lambda: not len(stage.runtime._tasks))
    assert (await stage.say("hello")).startswith("new|")


@pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=2)], ids=["two"])
async def test_the_second_pool_counts_and_nobody_leaves_for_it(stage):
    stage.model("a")
    stage.model("b")
    await stage.bring("a", "b")
    with pytest.raises(ServerBusy, match="max_loaded_models"):
        await beside(stage)
    assert [stage.state(name) for name in "ab"] == [READY, READY]
    assert stage.checkpoint("new").events() == []


@pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=3)], ids=["three"])
async def test_a_model_that_is_built_beside_takes_a_place_until_the_swap_is_over(stage):
    for name in "abc":
        stage.model(name)
    new = stage.checkpoint("new")
    await stage.bring("a", "b")
    with new.held("load"):
        replacing = beside(stage)
        await new.await_for("load")
        await stage.bring("c")
        assert [stage.runtime.view(name).loaded for name in "abc"] == [True, False, True]
    await replacing
    await stage.bring("b")
    assert [stage.runtime.view(name).loaded for name in "abc"] == [True, True, True]


@pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=2)], ids=["two"])
async def test_a_model_is_not_evicted_while_its_replacement_is_built(stage):
    for name in "ab":
        stage.model(name)
    new = stage.checkpoint("new")
    await stage.bring("a")
    with new.held("load"):
        replacing = beside(stage)
        await new.await_for("load")
        with pytest.raises(ServerBusy):
            await stage.say("hello", "b")
        assert stage.state() is READY
    await replacing
    await stage.say("hello", "b")


@pytest.mark.parametrize("limits", [ResidencyLimits(min_free_memory_bytes=100)], ids=["100 free"])
async def test_without_the_memory_for_both_nothing_is_built_and_nobody_leaves(stage):
    stage.model("a")
    stage.model("b")
    new = stage.checkpoint("new")
    await stage.bring("a", "b")
    new.set("bytes", "50")
    stage.free_bytes = 149
    with pytest.raises(InsufficientMemory):
        await beside(stage)
    assert [stage.state(name) for name in "ab"] == [READY, READY]
    assert new.events() == []
    stage.free_bytes = 150
    await beside(stage)


@pytest.mark.parametrize("limits", [ResidencyLimits(idle_unload_s=10)], ids=["10 s"])
async def test_a_model_is_not_retired_for_being_idle_while_its_replacement_is_built(stage):
    stage.model()
    new = stage.checkpoint("new")
    await stage.bring("a")
    with new.held("load"):
        replacing = beside(stage)
        await new.await_for("load")
        stage.clock.advance(30)
        assert stage.state() is READY
    await replacing
    stage.clock.advance(9.999)
    assert stage.state() is READY
    stage.clock.advance(0.001)
    await until(lambda: stage.state() is UNLOADED)


async def test_a_runtime_that_closes_swaps_nothing_any_more_and_frees_what_was_built(stage):
    stage.model()
    new = stage.checkpoint("new")
    await stage.bring("a")
    with new.held("load"):
        replacing = beside(stage)
        await new.await_for("load")
        closing = asyncio.ensure_future(stage.runtime.close())
        await asyncio.sleep(0)
    with pytest.raises(ShuttingDown):
        await replacing
    await closing
    assert steps(new, "loaded", "closed") == ["loaded", "closed"]
