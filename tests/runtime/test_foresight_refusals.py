"""Dry runs foretell refusals: what is told is what the real call is then refused with, word for word."""

from dataclasses import replace

import pytest

from antiphon.runtime.api import Strategy
from antiphon.runtime.wiring import ResidencyLimits
from antiphon.vocabulary.errors import InsufficientMemory, InvalidRequest, ServerBusy, UnsupportedSlots
from antiphon.vocabulary.states import ModelState

BESIDE = Strategy.SIDE_BY_SIDE
two = pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=2)], ids=["two"])
patient = pytest.mark.parametrize(
    "limits", [ResidencyLimits(max_loaded_models=1, residency_wait_s=5)], ids=["one, 5 s"]
)
guarded = pytest.mark.parametrize("limits", [ResidencyLimits(min_free_memory_bytes=100)], ids=["100 free"])


async def told_and_refused(stage, kind, registration, strategy=Strategy.REPLACE):
    """The dry run of a registration, once the real call was refused with just that."""
    foreseen = await stage.runtime.foresee_load(registration.spec.id, registration, strategy)
    with pytest.raises(kind) as caught:
        await stage.register(registration, strategy=strategy)
    same_refusal(foreseen, caught.value)
    return foreseen


async def told_and_not_loaded(stage, kind, model):
    """The same for a load of what is registered."""
    foreseen = await stage.runtime.foresee_load(model)
    with pytest.raises(kind) as caught:
        await stage.runtime.load(model)
    same_refusal(foreseen, caught.value)
    return foreseen


def same_refusal(foreseen, real):
    told = foreseen.refusal
    assert (type(told), told.message, told.param) == (type(real), real.message, real.param)
    assert foreseen.loads == ()


def changes(foreseen):
    return foreseen.loads, foreseen.unloads, foreseen.evicts


@two
async def test_that_no_idle_model_can_leave_is_told(stage):
    busy = stage.model("a")
    for name in "bc":
        stage.model(name, pinned=name == "b")
    await stage.bring("a", "b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        foreseen = await told_and_not_loaded(stage, ServerBusy, "c")
        assert changes(foreseen) == ((), (), ())
        await told_and_refused(stage, ServerBusy, stage.registration("new"))
    await running


@patient
async def test_a_load_that_may_wait_for_room_is_not_told_to_be_refused(stage):
    busy = stage.model("a")
    stage.model("b")
    await stage.bring("a")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        foreseen = await stage.runtime.foresee_load("b")
        assert (foreseen.refusal, foreseen.loads, foreseen.evicts) == (None, ("b",), ())
    await running


@guarded
async def test_too_little_memory_is_told_with_those_that_leave_in_vain(stage):
    stage.model("a")
    stage.model("b", weight_bytes=50)
    await stage.bring("a")
    stage.free_bytes = 120
    foreseen = await told_and_not_loaded(stage, InsufficientMemory, "b")
    assert changes(foreseen) == ((), (), ("a",))
    assert stage.state("a") is ModelState.UNLOADED


@guarded
async def test_a_replacement_that_no_memory_is_left_for_is_told_to_leave_nothing_loaded(stage):
    stage.model("a", weight_bytes=10, slots=1)
    await stage.bring("a")
    stage.checkpoint("new").set("bytes", "90")
    stage.free_bytes = 120
    foreseen = await told_and_refused(stage, InsufficientMemory, stage.registration("a", "new", slots=1))
    assert changes(foreseen) == ((), ("a",), ())
    assert stage.state("a") is ModelState.UNLOADED


@guarded
async def test_no_memory_to_try_new_weights_beside_the_old_is_told(wide):
    wide.model("a")
    await wide.bring("a")
    wide.checkpoint("new").set("bytes", "90")
    wide.free_bytes = 120
    foreseen = await told_and_refused(wide, InsufficientMemory, wide.registration("a", "new"))
    assert changes(foreseen) == ((), (), ())
    assert wide.state("a") is ModelState.READY


async def test_more_slots_than_the_live_sessions_serve_are_told(parallel):
    slots = parallel.kind.slots
    parallel.model("a").set("capacity", str(slots))
    await parallel.bring("a")
    foreseen = await told_and_refused(parallel, InvalidRequest, parallel.registration("a", slots=slots + 1))
    assert (foreseen.refusal.param, changes(foreseen)) == ("slots", ((), (), ()))


@pytest.mark.parametrize(
    ("limits", "model", "strategy"),
    [
        (ResidencyLimits(max_loaded_models=1), "a", Strategy.REPLACE),
        (ResidencyLimits(max_loaded_models=1), "new", Strategy.REPLACE),
        (ResidencyLimits(max_loaded_models=2), "a", BESIDE),
    ],
    ids=["the same", "another", "beside"],
)
async def test_more_slots_than_the_audit_list_allows_are_told_and_drive_nobody_out(parallel, model, strategy):
    parallel.model("a")
    await parallel.bring("a")
    parallel.audit = lambda spec: parallel.kind.slots
    registration = parallel.registration(model, slots=parallel.kind.slots + 1)
    foreseen = await told_and_refused(parallel, InvalidRequest, registration, strategy)
    assert (foreseen.refusal.param, changes(foreseen)) == ("slots", ((), (), ()))
    assert parallel.state("a") is ModelState.READY


async def test_a_model_that_is_registered_with_too_many_slots_is_told_as_its_load_is_refused(parallel):
    checkpoint = parallel.model("a", slots=parallel.kind.slots + 1, max_slots=parallel.kind.slots)
    await told_and_not_loaded(parallel, UnsupportedSlots, "a")
    assert checkpoint.events() == []
    assert parallel.runtime.view("a").last_error


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (ResidencyLimits(max_loaded_models=1), ServerBusy),
        (ResidencyLimits(min_free_memory_bytes=100), InsufficientMemory),
    ],
    ids=["one", "100 free"],
)
async def test_no_room_beside_is_told(stage, kind):
    stage.model("a")
    await stage.bring("a")
    stage.checkpoint("new").set("bytes", "90")
    stage.free_bytes = 120
    foreseen = await told_and_refused(stage, kind, stage.registration("a", "new"), BESIDE)
    assert changes(foreseen) == ((), (), ())
    assert stage.state("a") is ModelState.READY


@two
async def test_a_replacement_beside_the_first_is_told_to_evict_nobody(stage):
    stage.model("a")
    await stage.bring("a")
    registration = stage.registration("a", "new")
    foreseen = await stage.runtime.foresee_load("a", registration, BESIDE)
    assert (foreseen.refusal, changes(foreseen)) == (None, (("a",), ("a",), ()))
    assert (await stage.register(registration, strategy=BESIDE)).loaded


async def test_a_policy_that_changes_is_refused_nothing(stage):
    stage.model("a")
    await stage.bring("a")
    stage.audit = lambda spec: 0
    registration = replace(stage.runtime.view("a").registration, pinned=True)
    assert (await stage.runtime.foresee_load("a", registration)).refusal is None
    assert (await stage.register(registration)).loaded
