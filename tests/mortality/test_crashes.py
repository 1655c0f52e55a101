"""A host dies: who is told, what becomes of the model, and that everything goes on."""

import asyncio

import pytest

from antiphon.runtime.api import Strategy
from antiphon.testing.sim import Act, sim_spec
from antiphon.vocabulary.errors import LoadFailed, WorkerDied
from antiphon.vocabulary.spec import Registration
from antiphon.vocabulary.states import ModelState
from virtual_stage import in_virtual_time

READY, UNLOADED, UNLOADING = ModelState.READY, ModelState.UNLOADED, ModelState.UNLOADING


async def running(stage, *texts):
    """Requests that are in the engine's hands."""
    stage.hold("run")
    tasks = [stage.say(text) for text in texts]
    await stage.settled()
    return tasks


@in_virtual_time
async def test_all_that_ran_in_a_host_that_dies_is_refused_and_told_when_to_come_back(stage):
    stage.model()
    tasks = await running(stage, "one", "two")
    stage.host().kill()
    faults = await asyncio.gather(*tasks, return_exceptions=True)
    assert [(type(it), it.retry_after_s) for it in faults] == [(WorkerDied, 1.0)] * 2


@in_virtual_time
async def test_a_model_whose_host_dies_is_unloaded_at_once_and_says_why(stage):
    stage.model()
    tasks = await running(stage, "one")
    stage.host().kill()
    view = stage.runtime.view("a")
    assert (view.state, view.loaded, view.max_parallel_slots) == (UNLOADED, False, None)
    assert "ended unexpectedly" in view.last_error
    assert stage.states[-3:] == [("a", READY), ("a", UNLOADING), ("a", UNLOADED)]
    assert stage.faults[0][:2] == ("a", "run")
    await asyncio.gather(*tasks, return_exceptions=True)


@in_virtual_time
async def test_the_queue_goes_on_in_its_order_in_a_new_host(stage):
    stage.model(slots=1)
    (first,) = await running(stage, "one")
    waiting = [stage.say(text) for text in ("two", "three")]
    stage.well()
    stage.host().kill()
    assert await asyncio.gather(*waiting) == ["a@0/0|two", "a@0/0|three"]
    assert [call.text for call in stage.calls("run")] == ["one", "two", "three"]
    assert stage.loads() == 2
    assert isinstance(first.exception(), WorkerDied)


@in_virtual_time
async def test_a_neighbour_is_not_touched(stage):
    stage.model()
    stage.model("b")
    held = stage.hold("run", "b")
    neighbour = stage.say("hello", "b")
    (task,) = await running(stage, "one")
    stage.host().kill()
    await asyncio.gather(task, return_exceptions=True)
    held.set()
    assert await neighbour == "b@0/0|hello"
    assert stage.loads("b") == 1


@in_virtual_time
async def test_an_idle_model_whose_host_dies_is_loaded_by_the_next_request(stage):
    stage.model()
    await stage.runtime.load("a")
    stage.host().kill()
    assert stage.state() is UNLOADED
    assert await stage.say("hello") == "a@0/0|hello"
    assert stage.loads() == 2


@pytest.mark.parametrize("step", ["load", "open", "clone"])
@in_virtual_time
async def test_a_death_in_the_load_fails_those_who_wait_for_it_and_the_next_tries_again(stage, step):
    stage.model()
    stage.dies(step)
    faults = await asyncio.gather(stage.say("one"), stage.say("two"), return_exceptions=True)
    assert {type(it) for it in faults} == {WorkerDied}
    assert stage.state() is UNLOADED
    stage.well()
    await stage.say("hello")


@in_virtual_time
async def test_a_death_between_the_last_clone_and_the_publication_publishes_nothing(stage):
    stage.model()
    opened = stage.hold("open")
    task = stage.say("hello")
    await stage.settled()
    host, clone = stage.host(), stage.host().clone

    async def clone_and_die(slot):
        facts = await clone(slot)
        host.kill()
        return facts

    host.clone = clone_and_die
    opened.set()
    with pytest.raises(WorkerDied):
        await task
    assert READY not in [state for _, state in stage.states]


@in_virtual_time
async def test_a_stream_ends_in_the_fault_and_gives_its_slot_back(stage):
    stage.model(slots=1)
    stream = await stage.open("one two three")
    await anext(stream)
    stage.host().kill()
    with pytest.raises(WorkerDied):
        await anext(stream)
    await stream.aclose()
    await stage.say("hello")


@in_virtual_time
async def test_a_death_in_the_teardown_ends_it(stage):
    stage.model()
    await stage.runtime.load("a")
    stage.hold("close")
    unload = asyncio.ensure_future(stage.runtime.unload("a"))
    await stage.settled()
    stage.host().kill()
    view, _ = await unload
    assert not view.loaded
    assert stage.state() is UNLOADED


@in_virtual_time
async def test_a_working_pool_that_dies_while_its_replacement_is_checked_leaves_the_model_unloaded(stage):
    stage.model()
    await stage.runtime.load("a")
    stage.hold("probe")
    changed = Registration(sim_spec("a", 2, style=1), lazy=True)
    replacing = asyncio.ensure_future(stage.runtime.register(changed))
    await stage.settled()
    stage.host().kill()
    with pytest.raises(WorkerDied):
        await replacing
    assert stage.state() is UNLOADED
    assert await stage.say("hello") == "a@0/0|hello"


@in_virtual_time
async def test_a_pool_that_was_built_aside_and_died_does_not_take_the_place_of_the_working_one(stage):
    stage.model(slots=1)
    held = stage.hold("run")
    task = stage.say("hello")
    await stage.settled()
    changed = Registration(sim_spec("a", 1, revision=1), lazy=True)
    replacing = asyncio.ensure_future(stage.runtime.register(changed, strategy=Strategy.SIDE_BY_SIDE))
    await stage.settled()
    stage.world.hosts[1].kill()
    held.set()
    assert await task == "a@0/0|hello"
    with pytest.raises(WorkerDied):
        await replacing
    assert await stage.say("next") == "a@0/0|next"


async def crash(stage, times):
    stage.dies("run")
    for _ in range(times):
        with pytest.raises(WorkerDied):
            await stage.say("x")
    stage.well()


@in_virtual_time
async def test_two_crashes_delay_nothing_and_the_third_refuses_the_next_load_for_a_second(stage):
    stage.model()
    await crash(stage, 3)
    with pytest.raises(WorkerDied, match="3 times in a row") as caught:
        await stage.say("hello")
    assert caught.value.retry_after_s == 1.0
    assert stage.loads() == 3
    await asyncio.sleep(1)
    await stage.say("hello")


@in_virtual_time
async def test_a_success_in_between_starts_the_count_anew(stage):
    stage.model()
    await crash(stage, 2)
    await stage.say("hello")
    await crash(stage, 2)
    await stage.say("hello")


@in_virtual_time
async def test_a_load_that_is_refused_counts_as_no_crash(stage):
    stage.model()
    await crash(stage, 3)
    for _ in range(5):
        with pytest.raises(WorkerDied, match="3 times"):
            await stage.say("hello")
    await asyncio.sleep(1)
    await stage.say("hello")


@in_virtual_time
async def test_another_registration_starts_the_count_anew(stage):
    stage.model()
    await crash(stage, 3)
    await stage.runtime.register(Registration(sim_spec("a", 2, revision=1), lazy=True))
    assert await stage.say("hello") == "a@1/0|hello"


@in_virtual_time
async def test_loads_that_fail_in_order_are_never_delayed(stage):
    stage.model()
    stage.acts["a", "load"] = Act(fault=OSError())
    for _ in range(5):
        with pytest.raises(LoadFailed):
            await stage.say("x")
    stage.well()
    await stage.say("hello")
