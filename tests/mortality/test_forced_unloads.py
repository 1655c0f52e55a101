"""Unloads by force: what holds the model is stopped, what had queued before is refused, what comes later is served."""

import asyncio

import pytest

from antiphon.testing.sim import sim_spec
from antiphon.vocabulary.errors import ServerBusy
from antiphon.vocabulary.spec import Registration
from antiphon.vocabulary.states import ModelState
from virtual_stage import in_virtual_time

FORCED = "unloaded by force"


def forced(stage, busy_timeout_ms=None):
    return stage.loop.create_task(stage.runtime.unload("a", busy_timeout_ms, force=True))


async def refused(task):
    with pytest.raises(ServerBusy, match=FORCED):
        await task


@in_virtual_time
async def test_a_run_that_hangs_is_stopped(stage):
    stage.model(slots=1)
    await stage.runtime.load("a")
    stage.hold("run")
    stuck = stage.say("stuck")
    await asyncio.sleep(1000)
    view, change = await forced(stage, busy_timeout_ms=1)  # it has run for longer than that
    assert (view.loaded, view.state, change) == (False, ModelState.UNLOADED, None)
    await refused(stuck)
    stage.well()
    assert await stage.say("next") == "a@0/0|next"
    assert (stage.loads(), stage.faults) == (2, [])


@in_virtual_time
async def test_what_had_queued_before_is_refused_in_its_turn_and_what_comes_later_is_served(stage):
    stage.model(slots=1)
    await stage.runtime.load("a")
    stage.hold("run")
    order = []
    before = [stage.say("stuck"), stage.say("one"), stage.loop.create_task(stage.runtime.load("a")), stage.say("two")]
    await stage.settled()
    unload = forced(stage)
    after = stage.say("after")
    for name, task in zip(("stuck", "one", "load", "two", "unload", "after"), (*before, unload, after), strict=True):
        task.add_done_callback(lambda _, name=name: order.append(name))
    stage.well()
    for task in before:
        await refused(task)
    assert (await unload)[0].loaded is False
    assert await after == "a@0/0|after"
    assert order == ["stuck", "one", "load", "two", "unload", "after"]
    assert [call.text for call in stage.calls("run")] == ["stuck", "after"]
    assert stage.loads() == 2


@in_virtual_time
async def test_a_load_that_hangs_is_stopped_with_all_who_wait_for_it(stage):
    stage.model(slots=2)
    stage.hold("load")
    waiting = [stage.say("one"), stage.say("two")]
    await stage.settled()
    assert (await forced(stage))[0].state is ModelState.UNLOADED
    for task in waiting:
        await refused(task)
    stage.well()
    assert await stage.say("next") == "a@0/0|next"


@in_virtual_time
async def test_a_teardown_that_hangs_is_stopped(stage):
    stage.model()
    await stage.runtime.load("a")
    stage.hold("close")
    first = stage.loop.create_task(stage.runtime.unload("a"))
    await stage.settled()
    assert not first.done()
    assert (await forced(stage))[0].state is ModelState.UNLOADED
    assert (await first)[0].state is ModelState.UNLOADED


@in_virtual_time
async def test_the_reader_of_a_stream_is_told_why_it_ends(stage):
    stage.model(slots=1)
    stream = await stage.open("one two three")
    assert (await anext(stream)).text.endswith("one")
    stage.hold("step")
    pending = stage.loop.create_task(anext(stream))
    await stage.settled()
    await forced(stage)
    await refused(pending)
    await stream.aclose()


@in_virtual_time
async def test_the_slot_of_a_reader_that_reads_nothing_is_taken_from_it(stage):
    stage.model(slots=1)
    stream = await stage.open("one two three")
    assert (await forced(stage))[0].loaded is False
    await refused(stage.loop.create_task(anext(stream)))
    await stream.aclose()


@in_virtual_time
async def test_an_idle_model_is_unloaded_in_order(stage):
    stage.model()
    await stage.runtime.load("a")
    assert (await forced(stage))[1] is not None  # the memory that it gave back
    assert len(stage.calls("close")) == 1


@in_virtual_time
async def test_forced_unloads_never_delay_the_next_load_as_crashes_do(stage):
    stage.model(slots=1)
    for _ in range(5):
        stage.hold("run")
        stuck = stage.say("stuck")
        await asyncio.sleep(0.1)
        await forced(stage)
        await refused(stuck)
    stage.well()
    begun = stage.loop.time()
    assert await stage.say("next") == "a@0/0|next"
    assert stage.loop.time() - begun < 0.1


@in_virtual_time
async def test_many_are_unloaded_by_force_and_other_models_are_not_touched(stage):
    for name in ("a", "b", "c"):
        stage.model(name)
        await stage.runtime.load(name)
        stage.hold("run", name)
    one, two, three = (stage.say("stuck", name) for name in ("a", "b", "c"))
    await stage.settled()
    assert (await stage.runtime.unload_many(["a", "b"], force=True)).unloaded == ("a", "b")
    await refused(one)
    await refused(two)
    assert not three.done()
    stage.acts.clear()
    await stage.runtime.unload("c", force=True)
    await refused(three)


@in_virtual_time
async def test_a_thread_that_does_not_stop_keeps_its_model_and_the_unload_says_so(stage):
    stage.like_threads()
    stage.model(slots=1)
    await stage.runtime.load("a")
    held = stage.hold("run")
    stuck = stage.say("stuck")
    await stage.settled()
    begun = stage.loop.time()
    with pytest.raises(ServerBusy, match=r"did not stop within 9000 ms.*cannot be killed"):
        await forced(stage, busy_timeout_ms=9000)
    assert stage.loop.time() - begun == pytest.approx(9)
    stage.well()
    held.set()
    await refused(stuck)
    assert await stage.say("next") == "a@0/0|next"  # the unload has left the queue, and nothing is refused any more


@in_virtual_time
async def test_a_thread_that_stops_when_it_is_told_to_is_unloaded(stage):
    stage.like_threads()
    stage.model(slots=1)
    await stage.runtime.load("a")
    held = stage.hold("run")
    stuck = stage.say("stuck")
    await stage.settled()
    unload = forced(stage, busy_timeout_ms=2000)
    stage.loop.call_later(1, held.set)  # the engine looks at its flag, and ends
    assert (await unload)[0].loaded is False
    await refused(stuck)


@in_virtual_time
async def test_a_registration_that_had_queued_before_leaves_the_model_as_it_was(stage):
    stage.model(slots=1)
    await stage.runtime.load("a")
    stage.hold("run")
    stuck = stage.say("stuck")
    await stage.settled()
    fresh = Registration(sim_spec("a", 2, megabytes=1), lazy=True)
    registering = stage.loop.create_task(stage.runtime.register(fresh))
    await stage.settled()
    assert (await forced(stage))[0].state is ModelState.UNLOADED
    await refused(stuck)
    await refused(registering)
    stage.well()
    assert await stage.say("next") == "a@0/0|next"
