"""Reconfiguration as one transaction: refused whole with the old pool at work, or committed whole."""

import asyncio
from dataclasses import replace

import pytest

from antiphon.runtime.wiring import ResidencyLimits
from antiphon.vocabulary.errors import InsufficientMemory, InvalidRequest, LoadFailed, ServerBusy
from antiphon.vocabulary.states import ModelState
from runtime_stage import left, until

READY, UNLOADED, RECONFIGURING = ModelState.READY, ModelState.UNLOADED, ModelState.RECONFIGURING


def steps(checkpoint, *names):
    return [event.step for event in checkpoint.events() if event.step in names]


async def refused(stage, registration, fault=InvalidRequest):
    """The attempt fails, and everything is as it was: pool, registration, residency, capacity and counters."""
    pool, before = stage.pool(), stage.runtime.view("a")
    with pytest.raises(fault) as caught:
        await stage.register(registration)
    after = stage.runtime.view("a")
    assert stage.pool() is pool
    assert replace(after, last_error=None) == replace(before, last_error=None)
    assert after.state is READY
    await asyncio.gather(*stage.fill())
    return caught.value


async def test_an_unchanged_registration_keeps_the_pool_and_its_sessions(stage):
    checkpoint = stage.model()
    await stage.bring("a")
    pool = stage.pool()
    assert (await stage.register(stage.runtime.view("a").registration)).loaded
    assert stage.pool() is pool
    assert steps(checkpoint, "load", "open", "destroy") == ["load", "open"]


async def test_an_unchanged_registration_loads_a_model_that_is_not_in_memory(stage):
    stage.model()
    assert (await stage.register(stage.runtime.view("a").registration)).loaded


async def test_what_is_mere_policy_is_committed_without_a_teardown_after_the_earlier_work(stage):
    checkpoint = stage.model()
    await stage.bring("a")
    pool = stage.pool()
    with checkpoint.held("run"):
        running = stage.fill()
        await checkpoint.await_for("run", stage.kind.slots)
        registration = replace(stage.runtime.view("a").registration, busy_timeout_ms=7, pinned=True)
        registering = stage.register(registration)
        await stage.waiting(1)
        assert stage.runtime.view("a").registration.busy_timeout_ms is None
    await asyncio.gather(*running)
    assert (await registering).registration == registration
    assert stage.pool() is pool


async def test_another_path_is_loaded_in_the_place_of_the_old_one(stage):
    old, new = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    view = await stage.register(stage.registration("a", "new"))
    assert (view.loaded, view.registration.spec.path) == (True, str(new.path))
    assert (await stage.say("hello")).startswith("new|")
    assert steps(old, "closed") == ["closed"]
    assert steps(new, "load") == ["load"]


async def test_requests_before_it_run_on_the_old_model_and_those_after_it_on_the_new_one(stage):
    old, _ = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    old.hold("run")
    before = [*stage.fill(), stage.say("queued")]
    await old.await_for("run", stage.kind.slots)
    await stage.waiting(1)
    registering = stage.register(stage.registration("a", "new"))
    await stage.waiting(2)
    after = stage.say("after")
    await stage.waiting(3)
    old.release("run")
    texts = await asyncio.gather(*before, after)
    await registering
    assert [text.split("|")[0] for text in texts] == ["a"] * (stage.kind.slots + 1) + ["new"]


async def test_the_difference_is_taken_under_the_lease_not_before_it(stage):
    old, _ = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    original = stage.runtime.view("a").registration
    with old.held("run"):
        running = stage.say("hello")
        await old.await_for("run")
        there = stage.register(stage.registration("a", "new"))
        await stage.waiting(1)
        back = stage.register(original)  # equal to what is registered now, and not to what will be
        await stage.waiting(2)
    await asyncio.gather(running, there, back)
    assert stage.runtime.view("a").registration == original
    assert (await stage.say("hello")).startswith("a|")
    assert steps(old, "load") == ["load", "load"]


async def test_the_old_registration_is_shown_until_the_new_one_is_committed_whole(stage):
    old, new = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    old.hold("destroy")
    new.hold("load")
    registering = stage.register(stage.registration("a", "new", slots=1))
    await old.await_for("destroy")
    view = stage.runtime.view("a")
    assert (view.state, view.loaded, view.registration.spec.path) == (RECONFIGURING, False, str(old.path))
    old.release("destroy")
    await new.await_for("load")
    view = stage.runtime.view("a")
    assert (view.state, view.registration.spec.path) == (RECONFIGURING, str(new.path))
    new.release("load")
    await registering


async def test_a_count_that_the_live_sessions_do_not_allow_is_refused_and_nothing_is_opened(wide):
    checkpoint = wide.model()
    await wide.bring("a")
    fault = await refused(wide, wide.registration("a", slots=5))
    assert fault.param == "slots"
    assert steps(checkpoint, "load", "open") == ["load", "open"]


async def test_a_count_that_the_audit_list_does_not_allow_is_refused(wide):
    wide.model(max_slots=wide.kind.slots)
    await wide.bring("a")
    await refused(wide, wide.registration("a", slots=wide.kind.slots + 1))


async def test_a_count_that_is_allowed_resizes_the_model(parallel):
    checkpoint = parallel.model()
    await parallel.bring("a")
    for slots in (3, 1, 4):
        await parallel.register(parallel.registration("a", slots=slots))
        assert parallel.runtime.view("a").slots == slots
        before = len(checkpoint.events("run"))
        with checkpoint.held("run"):
            tasks = [parallel.say("hello") for _ in range(slots + 1)]
            await checkpoint.await_for("run", before + slots)
            await parallel.waiting(1)
        await asyncio.gather(*tasks)


async def test_other_session_options_are_probed_over_the_loaded_weights(wide):
    checkpoint = wide.model()
    await wide.bring("a")
    fault = await refused(wide, wide.registration("a", capacity=1))
    assert fault.param == "slots"
    assert steps(checkpoint, "load", "open", "closed") == ["load", "open", "open"]
    assert len(checkpoint.events("session_closed")) == 1
    view = await wide.register(wide.registration("a", capacity=9))
    assert view.max_parallel_slots == 9


async def test_a_probe_that_gives_no_session_preserves_what_works(wide):
    checkpoint = wide.model()
    await wide.bring("a")
    checkpoint.set("session.null")
    await refused(wide, wide.registration("a", capacity=9), LoadFailed)


async def test_new_weights_are_tried_beside_the_old_ones_and_used_if_they_do(wide):
    old, new = wide.model(), wide.checkpoint("new")
    await wide.bring("a")
    with old.held("destroy"):
        registering = wide.register(wide.registration("a", "new"))
        await old.await_for("destroy")
        assert steps(new, "loaded", "open", "clone") == ["loaded", "open"]
    await registering
    assert steps(new, "load", "open") == ["load", "open"]
    assert (await wide.say("hello")).startswith("new|")


async def test_new_weights_that_serve_too_few_slots_are_freed_and_nothing_else_changes(wide):
    wide.model()
    new = wide.checkpoint("new")
    await wide.bring("a")
    new.set("capacity", "1")
    await refused(wide, wide.registration("a", "new"))
    assert steps(new, "load", "session_closed", "closed") == ["load", "session_closed", "closed"]


async def test_new_weights_that_cannot_be_loaded_for_the_trial_change_nothing(wide):
    wide.model()
    new = wide.checkpoint("new")
    await wide.bring("a")
    new.fail("load")
    await refused(wide, wide.registration("a", "new"), LoadFailed)


@pytest.mark.parametrize("limits", [ResidencyLimits(min_free_memory_bytes=100)], ids=["100 free"])
async def test_a_trial_of_new_weights_evicts_nobody(wide):
    wide.model("a")
    wide.model("b")
    await wide.bring("a", "b")
    wide.checkpoint("new").set("bytes", "50")
    wide.free_bytes = 100
    await refused(wide, wide.registration("a", "new"), InsufficientMemory)
    assert wide.state("b") is READY


async def test_one_slot_needs_no_trial_and_its_failure_comes_after_the_commit(stage):
    stage.model(slots=1)
    new = stage.checkpoint("new")
    await stage.bring("a")
    new.fail("load")
    with pytest.raises(LoadFailed):
        await stage.register(stage.registration("a", "new", slots=1))
    view = stage.runtime.view("a")
    assert (view.state, view.registration.spec.path) == (UNLOADED, str(new.path))
    new.unset("load.fail")
    assert (await stage.say("hello")).startswith("new|")


async def test_a_clone_that_fails_after_the_commit_leaves_the_new_registration_unloaded(wide):
    wide.model()
    new = wide.checkpoint("new")
    await wide.bring("a")
    new.fail("clone")
    with pytest.raises(LoadFailed):
        await wide.register(wide.registration("a", "new"))
    view = wide.runtime.view("a")
    assert (view.state, view.registration.spec.path) == (UNLOADED, str(new.path))
    assert steps(new, "closed") == ["closed"]
    new.unset("clone.fail")
    assert (await wide.say("hello")).startswith("new|")


async def test_a_model_that_is_not_in_memory_is_reconfigured_too(stage):
    old, _ = stage.model(), stage.checkpoint("new")
    assert (await stage.register(stage.registration("a", "new"))).loaded
    assert old.events() == []


async def test_an_old_destructor_that_fails_does_not_stop_the_replacement(stage):
    old, _ = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    old.fail("destroy")
    assert (await stage.register(stage.registration("a", "new"))).loaded
    assert (await stage.say("hello")).startswith("new|")


async def test_files_that_are_no_model_change_nothing(stage):
    stage.model()
    await stage.bring("a")
    registration = stage.registration("a")
    fault = await refused(stage, replace(registration, spec=replace(registration.spec, path="/nowhere")))
    assert fault.param == "path"


async def test_a_wait_that_is_over_changes_nothing(stage):
    checkpoint = stage.model()
    await stage.bring("a")
    pool = stage.pool()
    with checkpoint.held("run"):
        running = stage.say("hello")
        await checkpoint.await_for("run")
        registering = stage.register(stage.registration("a", "new"), busy_timeout_ms=1000)
        await stage.waiting(1)
        stage.clock.advance(1)
        with pytest.raises(ServerBusy):
            await registering
    await running
    assert stage.pool() is pool


async def test_a_client_that_leaves_does_not_stop_its_reconfiguration(stage):
    stage.model()
    new = stage.checkpoint("new")
    await stage.bring("a")
    with new.held("load"):
        registering = stage.register(stage.registration("a", "new"))
        await new.await_for("load")
        await left(registering)
    await until(lambda: stage.state() is READY)
    assert (await stage.say("hello")).startswith("new|")


@pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=2)], ids=["two"])
async def test_a_model_keeps_its_place_while_it_is_reconfigured(stage):
    old, _, _ = (stage.model(name) for name in "abc")
    await stage.bring("a", "b")
    with old.held("destroy"):
        registering = stage.register(stage.registration("a", "new", slots=1))
        await old.await_for("destroy")
        await stage.bring("c")  # in the place of b, which is idle
        assert stage.state("a") is RECONFIGURING
    await registering
    assert [stage.runtime.view(name).loaded for name in "abc"] == [True, False, True]


async def test_what_the_audit_list_allows_the_new_registration_is_what_it_may_use(wide):
    wide.audit = lambda spec: 16 if spec.session_options else wide.kind.slots
    wide.model()
    await wide.bring("a")
    assert wide.runtime.view("a").max_parallel_slots == wide.kind.slots
    await wide.register(wide.registration("a", capacity=9))
    assert wide.runtime.view("a").max_parallel_slots == 9
