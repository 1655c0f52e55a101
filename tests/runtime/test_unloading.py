"""Unloading: a barrier in the model's queue, logical first, and harmless when there is nothing to free."""

import asyncio

import pytest

from antiphon.vocabulary.errors import ModelNotFound, ServerBusy
from antiphon.vocabulary.states import ModelState
from runtime_stage import left


async def test_an_unload_waits_for_earlier_requests_and_later_ones_reload(stage):
    checkpoint = stage.model()
    checkpoint.hold("run")
    running = stage.fill()
    await checkpoint.await_for("run", stage.kind.slots)
    queued = stage.say("queued")
    await stage.waiting(1)
    unload = asyncio.ensure_future(stage.runtime.unload("a"))
    await stage.waiting(2)
    later = stage.say("later")
    await stage.waiting(3)
    checkpoint.release("run")
    await asyncio.gather(*running, queued, unload, later)
    order = [(event.step, event.request) for event in checkpoint.events() if event.step in ("ran", "closed", "load")]
    assert order.index(("ran", "queued")) < order.index(("closed", None)) < order.index(("ran", "later"))
    assert [step for step, _ in order].count("load") == 2


async def test_a_request_does_not_pass_an_unload_that_was_asked_for_before_it(wide):
    checkpoint = wide.model()
    checkpoint.hold("run")
    first = wide.say("first")
    await checkpoint.await_for("run")
    unload = asyncio.ensure_future(wide.runtime.unload("a"))
    second = wide.say("second")  # in the same turn of the loop, and with a slot to spare
    await wide.waiting(2)
    assert len(checkpoint.events("run")) == 1
    checkpoint.release("run")
    await asyncio.gather(first, unload, second)
    assert len(checkpoint.events("load")) == 2


async def test_an_unload_frees_sessions_before_weights(stage):
    checkpoint = stage.model()
    await stage.runtime.load("a")
    view, _ = await stage.runtime.unload("a")
    assert (view.loaded, view.state) == (False, ModelState.UNLOADED)
    closed = [event.step for event in checkpoint.events() if event.step in ("session_closed", "closed")]
    assert closed == ["session_closed"] * stage.kind.slots + ["closed"]


async def test_an_unload_of_what_is_not_loaded_does_nothing(stage):
    checkpoint = stage.model()
    assert not (await stage.runtime.unload("a"))[0].loaded
    await stage.runtime.load("a")
    assert not (await stage.runtime.unload("a"))[0].loaded
    assert not (await stage.runtime.unload("a"))[0].loaded
    assert len(checkpoint.events("closed")) == 1


async def test_an_unload_during_the_first_load_waits_for_it(stage):
    checkpoint = stage.model()
    checkpoint.hold("load")
    cold = stage.say("cold")
    await checkpoint.await_for("load")
    unload = asyncio.ensure_future(stage.runtime.unload("a"))
    await stage.waiting(1)
    checkpoint.release("load")
    assert (await cold).endswith("|cold")
    await unload
    assert stage.state() is ModelState.UNLOADED


async def test_a_model_counts_as_unloaded_while_it_is_being_freed_and_others_work(stage):
    checkpoint = stage.model()
    stage.model("b")
    await stage.runtime.load("a")
    checkpoint.hold("destroy")
    unload = asyncio.ensure_future(stage.runtime.unload("a"))
    await checkpoint.await_for("destroy")
    view = stage.runtime.view("a")
    assert (view.state, view.loaded, view.max_parallel_slots) == (ModelState.UNLOADING, False, None)
    assert (await stage.say("hello", "b")).endswith("|hello")
    reload = stage.say("again")
    await stage.waiting(1)
    assert len(checkpoint.events("load")) == 1
    checkpoint.release("destroy")
    await asyncio.gather(unload, reload)
    assert len(checkpoint.events("load")) == 2


async def test_a_client_that_leaves_its_unload_does_not_stop_it(stage):
    checkpoint = stage.model()
    await stage.runtime.load("a")
    checkpoint.hold("destroy")
    unload = asyncio.ensure_future(stage.runtime.unload("a"))
    await checkpoint.await_for("destroy")
    await left(unload)
    again = asyncio.ensure_future(stage.runtime.unload("a"))
    await stage.waiting(1)
    checkpoint.release("destroy")
    await again
    assert len(checkpoint.events("closed")) == 1


async def test_a_destructor_that_fails_still_leaves_a_model_that_can_be_loaded_again(stage):
    checkpoint = stage.model()
    await stage.runtime.load("a")
    checkpoint.fail("destroy", "OSError")
    view, _ = await stage.runtime.unload("a")
    assert (view.loaded, view.last_error) == (False, "the engine failed (OSError)")
    assert len(checkpoint.events("destroy")) == stage.kind.slots + 1  # each was tried
    assert stage.ear.faults == [("a", "unload", "the engine failed (OSError)")]
    checkpoint.unset("destroy.fail")
    await stage.say("hello")


async def test_a_host_that_cannot_let_go_still_leaves_a_model_that_can_be_loaded_again(stage):
    stage.model()
    make_host = stage.make_host

    def stuck(spec):
        host = make_host(spec)

        async def terminate():
            raise OSError("no such process")

        host.terminate = terminate
        return host

    stage.make_host = stuck
    await stage.runtime.load("a")
    view, _ = await stage.runtime.unload("a")
    assert (view.loaded, view.last_error) == (False, "internal error")
    stage.make_host = make_host
    await stage.say("hello")


async def test_an_unload_whose_wait_ends_is_refused_and_frees_those_behind_it(wide):
    checkpoint = wide.model()
    checkpoint.hold("run")
    running = wide.say("running")
    await checkpoint.await_for("run")
    unload = asyncio.ensure_future(wide.runtime.unload("a", busy_timeout_ms=2000))
    behind = wide.say("behind")
    await wide.waiting(2)
    wide.clock.advance(2)
    with pytest.raises(ServerBusy):
        await unload
    await checkpoint.await_for("run", 2)
    checkpoint.release("run")
    await asyncio.gather(running, behind)
    assert len(checkpoint.events("load")) == 1


async def test_an_unknown_model_cannot_be_unloaded(stage):
    with pytest.raises(ModelNotFound):
        await stage.runtime.unload("nobody")


async def test_the_states_of_a_life_are_told_in_order(stage):
    stage.model()
    await stage.say("hello")
    await stage.runtime.unload("a")
    assert [state for _, state in stage.ear.states] == [
        ModelState.LOADING,
        ModelState.READY,
        ModelState.UNLOADING,
        ModelState.UNLOADED,
    ]
