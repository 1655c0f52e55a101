"""Clients that leave: an offline request's lease ends with the engine's work, never with the task that waits for it."""

import asyncio
import logging
from dataclasses import replace

import pytest

from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Interface
from runtime_stage import bound_by, left, order


def ran(checkpoint):
    return [event.request for event in checkpoint.events("run")]


async def test_a_slot_whose_client_left_is_not_used_again_before_its_engine_ended(stage):
    checkpoint = stage.model()
    checkpoint.hold("run", "slot0")
    first, *others = stage.fill()
    await checkpoint.await_for("run", stage.kind.slots)
    await asyncio.gather(*others)
    await left(first)
    following = [stage.say(f"next{number}") for number in range(stage.kind.slots - 1)]
    await asyncio.gather(*following)
    with checkpoint.held("run"):
        held = [stage.say("held") for _ in range(stage.kind.slots - 1)]
        late = stage.say("late")
        await stage.waiting(1)
        assert "late" not in ran(checkpoint)
    checkpoint.release("run", "slot0")
    await asyncio.gather(late, *held)
    await stage.runtime.unload("a")
    for session in {event.session for event in checkpoint.events("run")}:
        steps = [event.step for event in checkpoint.events() if event.session == session]
        assert [step for step in steps if step in ("run", "ran")] == ["run", "ran"] * (steps.count("run"))


async def test_the_engine_hears_that_its_client_left(stage):
    checkpoint = stage.model()
    checkpoint.set("run.cancellable")
    checkpoint.hold("run")  # only the cancellation ends this run
    task = stage.say("hello")
    await checkpoint.await_for("run")
    await left(task)
    await checkpoint.await_for("ran")


async def test_an_unload_behind_a_request_whose_client_left_waits_for_its_engine(stage):
    checkpoint = stage.model()
    checkpoint.hold("run")
    task = stage.say("hello")
    await checkpoint.await_for("run")
    await left(task)
    unload = asyncio.ensure_future(stage.runtime.unload("a"))
    await stage.waiting(1)
    assert checkpoint.events("destroy") == []
    checkpoint.release("run")
    await unload
    steps = [event.step for event in checkpoint.events()]
    assert steps.index("ran") < steps.index("destroy")


async def test_a_client_that_leaves_in_the_queue_is_never_run_and_lets_the_next_advance(stage):
    checkpoint = stage.model()
    checkpoint.hold("run")
    tasks = stage.fill()
    await checkpoint.await_for("run", stage.kind.slots)
    gone, behind = stage.say("gone"), stage.say("behind")
    await stage.waiting(2)
    await left(gone)
    await stage.waiting(1)
    checkpoint.release("run")
    await asyncio.gather(behind, *tasks)
    assert "gone" not in ran(checkpoint)


async def test_a_client_that_leaves_during_the_load_keeps_its_lease_until_the_load_ended_and_runs_nothing(stage):
    checkpoint = stage.model()
    checkpoint.hold("load")
    task = stage.say("hello")
    await checkpoint.await_for("load")
    await left(task)
    unload = asyncio.ensure_future(stage.runtime.unload("a"))
    await stage.waiting(1)
    assert stage.state() is ModelState.LOADING
    checkpoint.release("load")
    await unload
    assert ran(checkpoint) == []
    assert checkpoint.events("prepare") == []
    assert [event.step for event in checkpoint.events() if event.step in ("loaded", "closed")] == ["loaded", "closed"]


@pytest.mark.parametrize("interface", [Interface.OFFLINE, Interface.STREAMING])
async def test_a_client_that_leaves_while_its_request_is_bound_has_nothing_loaded(stage, interface):
    checkpoint = stage.model()
    binding, go_on = asyncio.Event(), asyncio.Event()

    async def bind(model, request):
        binding.set()
        await go_on.wait()
        return replace(request, seed=1)

    inference = bound_by(bind, order("hello", interface=interface))
    open_it = stage.runtime.open_stream(inference) if interface is Interface.STREAMING else stage.ask(inference)
    task = asyncio.ensure_future(open_it)
    await binding.wait()
    await left(task)
    go_on.set()
    await stage.runtime.unload("a")
    assert checkpoint.events("load") == []


async def test_all_who_leave_during_a_load_leave_a_model_that_is_loaded(stage):
    checkpoint = stage.model()
    checkpoint.hold("load")
    tasks = stage.fill()
    await checkpoint.await_for("load")
    for task in tasks:
        await left(task)
    checkpoint.release("load")
    await stage.runtime.load("a")
    assert stage.state() is ModelState.READY
    assert len(checkpoint.events("load")) == 1


async def test_nothing_is_serialised_for_a_client_that_left(stage):
    checkpoint = stage.model()
    finished = []

    async def finish(result, timing):
        finished.append(result)

    checkpoint.hold("run")
    task = asyncio.ensure_future(stage.runtime.run(order("hello"), finish))
    await checkpoint.await_for("run")
    await left(task)
    checkpoint.release("run")
    await stage.runtime.unload("a")
    assert finished == []


async def test_the_slot_is_held_while_the_result_is_serialised(stage):
    stage.model()
    await stage.runtime.load("a")
    serialising, go_on = asyncio.Event(), asyncio.Event()

    async def finish(result, timing):
        serialising.set()
        await go_on.wait()

    task = asyncio.ensure_future(stage.runtime.run(order("hello"), finish))
    await serialising.wait()
    unload = asyncio.ensure_future(stage.runtime.unload("a"))
    await stage.waiting(1)
    assert stage.runtime.view("a").loaded
    go_on.set()
    await asyncio.gather(task, unload)


async def test_a_serialisation_that_fails_releases_the_slot(stage):
    stage.model()

    async def finish(result, timing):
        raise LookupError

    with pytest.raises(LookupError):
        await stage.runtime.run(order("hello"), finish)
    await asyncio.gather(*stage.fill())


async def test_a_fault_that_nobody_waits_for_is_logged(stage, caplog):
    checkpoint = stage.model()
    checkpoint.hold("run")
    task = stage.say("hello")
    await checkpoint.await_for("run")
    await left(task)
    checkpoint.fail("run", "ZeroDivisionError")
    checkpoint.release("run")
    with caplog.at_level(logging.WARNING):
        await stage.runtime.unload("a")
    assert "ZeroDivisionError" in caplog.text


async def test_a_client_that_merely_left_is_no_fault(stage, caplog):
    checkpoint = stage.model()
    checkpoint.hold("load")
    task = stage.say("hello")
    await checkpoint.await_for("load")
    await left(task)
    checkpoint.release("load")
    await stage.runtime.unload("a")
    assert caplog.text == ""


async def test_an_engine_that_never_returns_costs_its_own_slot_and_no_other(wide):
    checkpoint = wide.model("hung")
    wide.model("b")
    wide.hung = True
    checkpoint.set("run.hang.forever")
    hung = wide.say("forever", "hung")
    await checkpoint.await_for("run")
    others = [wide.say(f"a{number}", "hung") for number in range(8)] + [wide.say("b", "b")]
    await asyncio.gather(*others)
    assert wide.runtime.view("hung").active_slots == 1
    await wide.runtime.unload("b")
    hung.cancel()
    await asyncio.gather(hung, return_exceptions=True)
    assert wide.runtime.view("hung").active_slots == 1
    for task in wide.runtime._tasks._running:
        task.cancel()
    await wide.runtime._tasks.join()
