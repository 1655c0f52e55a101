"""Replacing the registration of a model that is not loaded: the load that this ends in is subject to every rule."""

import asyncio
from dataclasses import replace

import pytest

from antiphon.runtime.wiring import ResidencyLimits
from antiphon.vocabulary.errors import InsufficientMemory, InvalidRequest, LoadFailed, ServerBusy
from antiphon.vocabulary.states import ModelState
from runtime_stage import until

LOADING, READY, UNLOADED = ModelState.LOADING, ModelState.READY, ModelState.UNLOADED
one = pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=1)], ids=["one"])
floor = pytest.mark.parametrize("limits", [ResidencyLimits(min_free_memory_bytes=100)], ids=["100 free"])


def steps(checkpoint):
    return [event.step for event in checkpoint.events()]


def registered(stage, model="a"):
    return stage.runtime.view(model).registration


@one
async def test_it_makes_room_before_it_reads_any_weights_and_says_that_it_loads(stage):
    stage.model("a")
    idle = stage.model("idle")
    new = stage.checkpoint("new")
    await stage.bring("idle")
    with new.held("load"):
        replacing = stage.register(stage.registration("a", "new"))
        await new.await_for("load")
        assert stage.state("a") is LOADING
        assert not stage.runtime.view("idle").loaded  # it may be freed meanwhile
    view = await replacing
    assert (view.state, view.registration.spec.path) == (READY, str(new.path))
    assert steps(idle).count("closed") == 1
    assert steps(new).count("loaded") == 1


@one
async def test_without_room_nothing_is_read_and_the_model_stays_registered_as_it_was(stage):
    stage.model("a")
    busy = stage.model("busy")
    new = stage.checkpoint("new")
    await stage.bring("busy")
    before = registered(stage)
    with busy.held("run"):
        running = stage.say("hello", "busy")
        await busy.await_for("run")
        with pytest.raises(ServerBusy, match="max_loaded_models"):
            await stage.register(stage.registration("a", "new"))
        (status, _) = stage.runtime.status()
        assert (status.view.state, status.view.registration, status.view.last_error) == (UNLOADED, before, None)
        assert (status.gate.leases, status.gate.queue) == ((), ())
        assert steps(new) == []
    await running
    assert (await stage.register(stage.registration("a", "new"))).loaded


@floor
async def test_an_idle_model_is_evicted_for_its_memory(stage):
    stage.model("a", weight_bytes=10)
    stage.model("idle", weight_bytes=1000)
    await stage.bring("idle")
    stage.checkpoint("new").set("bytes", "50")
    stage.available_bytes = lambda: 2000 if stage.state("idle") is UNLOADED else 120
    assert (await stage.register(stage.registration("a", "new"))).loaded
    assert not stage.runtime.view("idle").loaded


@floor
async def test_without_memory_nothing_is_read_and_the_model_stays_registered_as_it_was(stage):
    stage.model("a", weight_bytes=10)
    new, before = stage.checkpoint("new"), registered(stage)
    new.set("bytes", "50")
    stage.free_bytes = 149
    with pytest.raises(InsufficientMemory):
        await stage.register(stage.registration("a", "new"))
    assert (stage.state(), registered(stage), steps(new)) == (UNLOADED, before, [])
    stage.free_bytes = 150
    assert (await stage.register(stage.registration("a", "new"))).loaded


async def test_too_many_slots_for_the_new_weights_leave_it_registered_as_it_was(wide):
    wide.model("a")
    new, before = wide.checkpoint("new"), registered(wide)
    new.set("capacity", "1")
    with pytest.raises(InvalidRequest) as caught:
        await wide.register(wide.registration("a", "new"))
    assert caught.value.param == "slots"
    (status,) = wide.runtime.status()
    assert (status.view.state, status.view.registration, status.view.last_error) == (UNLOADED, before, None)
    assert (status.gate.capacity, status.gate.leases) == (before.spec.slots, ())
    assert steps(new).count("loaded") == steps(new).count("closed") == 1
    assert (await wide.say("hello")).startswith("a|")


async def test_weights_that_cannot_be_loaded_are_committed_only_if_the_count_was_known_to_fit(stage):
    """One slot always fits, so it is committed first. More are known to fit once the primary session is open."""
    stage.model("a")
    new, before = stage.checkpoint("new"), registered(stage)
    new.fail("load")
    registration = stage.registration("a", "new")
    with pytest.raises(LoadFailed):
        await stage.register(registration)
    is_committed = stage.kind.slots == 1
    view = stage.runtime.view("a")
    assert (view.state, view.registration) == (UNLOADED, registration if is_committed else before)
    assert (view.last_error is not None) is is_committed


async def test_a_clone_that_fails_leaves_the_new_registration_unloaded(wide):
    wide.model("a")
    new, registration = wide.checkpoint("new"), wide.registration("a", "new")
    new.fail("clone")
    with pytest.raises(LoadFailed):
        await wide.register(registration)
    view = wide.runtime.view("a")
    assert (view.state, view.registration, view.last_error is None) == (UNLOADED, registration, False)


async def test_requests_behind_it_run_on_the_new_weights(stage):
    stage.model("a")
    new = stage.checkpoint("new")
    with new.held("load"):
        replacing = stage.register(stage.registration("a", "new"))
        await new.await_for("load")
        behind = stage.say("hello")
        await stage.waiting(1)
    await replacing
    assert (await behind).startswith("new|")
    assert steps(new).count("load") == 1


async def test_a_back_off_of_the_old_registration_does_not_delay_the_new_one(stage):
    stage.model("a")
    resident = stage.runtime._residents.find("a")
    for _ in range(3):
        resident.crashes = resident.crashes.crashed(stage.clock.now())
    assert (await stage.register(stage.registration("a", "new"))).loaded


async def test_another_model_cannot_take_its_new_alias_while_it_loads(stage):
    stage.model("a")
    stage.model("b")
    new = stage.checkpoint("new")
    aliased = replace(stage.registration("a", "new"), aliases=("voice",))
    with new.held("load"):
        replacing = stage.register(aliased)
        await new.await_for("load")
        with pytest.raises(InvalidRequest, match="voice"):
            await stage.register(replace(registered(stage, "b"), aliases=("voice",)))
    assert (await replacing).registration.aliases == ("voice",)


async def test_a_client_that_leaves_does_not_stop_it(stage):
    stage.model("a")
    new = stage.checkpoint("new")
    with new.held("load"):
        replacing = stage.register(stage.registration("a", "new"))
        await new.await_for("load")
        replacing.cancel()
        assert isinstance((await asyncio.gather(replacing, return_exceptions=True))[0], asyncio.CancelledError)
    await until(lambda: not len(stage.runtime._tasks))
    assert (stage.state(), registered(stage).spec.path) == (READY, str(new.path))
