"""Models that nobody uses are retired: from the end of the last lease or load, without ever queueing for it."""

import asyncio
from dataclasses import replace

import pytest

from antiphon.runtime.wiring import ResidencyLimits
from antiphon.vocabulary.states import ModelState, Operation
from runtime_stage import drained, left, until

pytestmark = pytest.mark.parametrize("limits", [ResidencyLimits(idle_unload_s=10)], ids=["10 s"])


async def retired(stage, model="a"):
    await until(lambda: stage.state(model) is ModelState.UNLOADED)


async def test_a_model_is_retired_when_it_was_idle_for_the_whole_window(stage):
    checkpoint = stage.model()
    await stage.say("hello")
    stage.clock.advance(9.999)
    assert stage.state() is ModelState.READY
    stage.clock.advance(0.001)
    assert stage.state() is ModelState.UNLOADING
    await retired(stage)
    assert len(checkpoint.events("closed")) == 1


async def test_the_window_of_a_model_that_nobody_asked_starts_when_its_load_ends(stage):
    checkpoint = stage.model()
    with checkpoint.held("load"):
        loading = asyncio.ensure_future(stage.runtime.load("a"))
        await checkpoint.await_for("load")
        stage.clock.advance(40)  # four windows: no alarm of before may count
    await loading
    stage.clock.advance(9.999)
    assert stage.state() is ModelState.READY
    stage.clock.advance(0.001)
    await retired(stage)


async def test_the_window_starts_when_the_load_ends_also_when_its_client_has_left(stage):
    checkpoint = stage.model()
    with checkpoint.held("load"):
        loading = stage.say("hello")
        await checkpoint.await_for("load")
        stage.clock.advance(40)
        await left(loading)
    await until(lambda: not len(stage.runtime._tasks))
    assert stage.state() is ModelState.READY
    stage.clock.advance(10)
    await retired(stage)


async def test_a_use_within_the_window_gives_another_whole_one(stage):
    stage.model()
    await stage.say("hello")
    stage.clock.advance(7)
    await stage.say("again")
    stage.clock.advance(9.999)
    assert stage.state() is ModelState.READY
    stage.clock.advance(0.001)
    await retired(stage)


async def test_the_window_starts_at_the_end_of_a_long_request(stage):
    checkpoint = stage.model()
    await stage.runtime.load("a")
    with checkpoint.held("run"):
        running = stage.say("hello")
        await checkpoint.await_for("run")
        stage.clock.advance(30)
        assert stage.state() is ModelState.READY
        assert stage.runtime._desk.view("a").waiting == 0
    await running
    stage.clock.advance(9.999)
    assert stage.state() is ModelState.READY
    stage.clock.advance(0.001)
    await retired(stage)


async def test_a_model_with_an_open_stream_is_not_idle(stage):
    stage.model()
    stream = await stage.open("hello")
    stage.clock.advance(30)
    assert stage.state() is ModelState.READY
    await drained(stream)
    stage.clock.advance(10)
    await retired(stage)


async def test_a_retired_model_loads_again_and_has_a_window_again(stage):
    checkpoint = stage.model()
    for _ in range(2):
        await stage.say("hello")
        stage.clock.advance(10)
        await retired(stage)
    assert len(checkpoint.events("load")) == 2


async def test_a_request_in_the_turn_of_the_retirement_waits_for_it_and_loads_again(stage):
    checkpoint = stage.model()
    await stage.say("hello")
    stage.clock.advance(10)
    assert (await stage.say("again")).endswith("|again")
    assert len(checkpoint.events("load")) == 2


async def test_each_model_has_a_window_of_its_own(stage):
    stage.model("a")
    stage.model("b")
    await stage.say("hello", "a")
    stage.clock.advance(6)
    await stage.say("hello", "b")
    stage.clock.advance(4)
    await retired(stage, "a")
    assert stage.state("b") is ModelState.READY
    stage.clock.advance(6)
    await retired(stage, "b")


async def test_a_pinned_model_stays(stage):
    stage.model(pinned=True)
    await stage.say("hello")
    stage.clock.advance(100)
    assert stage.state() is ModelState.READY


async def test_a_model_that_was_pinned_within_its_window_stays_and_one_that_was_released_goes(stage):
    stage.model()
    await stage.say("hello")
    registration = stage.runtime.view("a").registration
    await stage.register(replace(registration, pinned=True))
    stage.clock.advance(100)
    assert stage.state() is ModelState.READY
    await stage.register(registration)
    stage.clock.advance(10)
    await retired(stage)


async def test_a_retirement_is_an_eviction_and_others_work_meanwhile(stage):
    checkpoint = stage.model("a")
    stage.model("b")
    await stage.say("hello", "a")
    with checkpoint.held("destroy"):
        stage.clock.advance(10)
        await checkpoint.await_for("destroy")
        (lease,) = stage.runtime._desk.view("a").leases
        assert lease.operation is Operation.EVICT
        await stage.say("hello", "b")


async def test_a_runtime_that_is_closed_has_no_alarm(stage):
    stage.model()
    await stage.say("hello")
    assert stage.clock.statistics().pending == (1010.0,)
    await stage.runtime.close()
    assert stage.clock.statistics().pending == ()
