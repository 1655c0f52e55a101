"""Cold models: one shared attempt, a pool published whole, and what a failure leaves."""

import asyncio

import pytest

from antiphon.runtime.wiring import ResidencyLimits
from antiphon.testing.controlled import ControlledModel
from antiphon.vocabulary.errors import ConfigError, EngineError, LoadFailed, ShuttingDown
from antiphon.vocabulary.states import ModelState
from runtime_stage import order, until


async def outcomes(tasks):
    return await asyncio.gather(*tasks, return_exceptions=True)


def steps(checkpoint, *names):
    return [event.step for event in checkpoint.events() if event.step in names]


async def test_a_registered_model_is_not_loaded_before_it_is_asked_for(stage):
    checkpoint = stage.model()
    assert stage.state() is ModelState.UNLOADED
    assert checkpoint.events() == []


async def test_cold_requests_at_once_load_exactly_once(stage):
    checkpoint = stage.model()
    checkpoint.hold("load")
    tasks = [stage.say(f"cold{number}") for number in range(8)]
    await checkpoint.await_for("load")
    assert stage.state() is ModelState.LOADING
    checkpoint.release("load")
    assert sorted(text.split("|")[2] for text in await outcomes(tasks)) == [f"cold{number}" for number in range(8)]
    assert steps(checkpoint, "load", "open", "clone") == ["load", "open"] + ["clone"] * (stage.kind.slots - 1)
    assert stage.state() is ModelState.READY


async def test_every_slot_has_a_session_of_its_own(wide):
    checkpoint = wide.model()
    with checkpoint.held("run"):
        tasks = wide.fill()
        await checkpoint.await_for("run", wide.kind.slots)
    sessions = {text.split("|")[1] for text in await outcomes(tasks)}
    assert len(sessions) == wide.kind.slots


async def test_nothing_is_published_before_the_last_clone(wide):
    checkpoint = wide.model()
    checkpoint.hold("clone")
    task = wide.say("hello")
    await checkpoint.await_for("clone")
    view = wide.runtime.view("a")
    assert (view.state, view.loaded, view.max_parallel_slots) == (ModelState.LOADING, False, None)
    assert checkpoint.events("run") == []
    checkpoint.release("clone")
    await task
    assert wide.runtime.view("a").loaded


async def test_a_failed_load_gives_each_who_waited_an_exception_of_his_own(wide):
    checkpoint = wide.model()
    checkpoint.hold("load")
    tasks = wide.fill()
    await checkpoint.await_for("load")
    checkpoint.fail("load", "BufferError")
    checkpoint.release("load")
    faults = await outcomes(tasks)
    assert {type(fault) for fault in faults} == {LoadFailed}
    assert len({id(fault) for fault in faults}) == len(faults)
    assert {fault.message for fault in faults} == {"the model could not be loaded: the engine failed (BufferError)"}
    cause = faults[0]
    while cause.__cause__ is not None:
        cause = cause.__cause__
    assert isinstance(cause, BufferError)


async def test_the_request_after_a_failed_load_tries_again(stage):
    checkpoint = stage.model()
    checkpoint.fail("load")
    with pytest.raises(LoadFailed):
        await stage.say("hello")
    assert stage.state() is ModelState.UNLOADED
    assert "RuntimeError" in stage.runtime.view("a").last_error
    checkpoint.unset("load.fail")
    assert (await stage.say("hello")).endswith("|hello")
    assert stage.runtime.view("a").last_error is None


async def test_an_engine_that_opens_no_session_is_a_load_failure(stage):
    checkpoint = stage.model()
    checkpoint.set("session.null")
    with pytest.raises(LoadFailed, match="no session"):
        await stage.say("hello")
    assert steps(checkpoint, "destroy", "closed") == ["destroy", "closed"]
    assert stage.state() is ModelState.UNLOADED


@pytest.mark.parametrize(
    "fault", ["clone.null", "clone.fail", *(f"clone.differs={it}" for it in ("family", "task", "mode", "interfaces"))]
)
async def test_a_clone_that_fails_or_differs_publishes_nothing_and_closes_sessions_before_weights(wide, fault):
    checkpoint = wide.model()
    name, _, text = fault.partition("=")
    checkpoint.set(name, text)
    with pytest.raises(LoadFailed):
        await wide.say("hello")
    opened = len(steps(checkpoint, "open")) + (name == "clone.differs")
    assert steps(checkpoint, "session_closed", "closed") == ["session_closed"] * opened + ["closed"]
    assert wide.state() is ModelState.UNLOADED
    assert checkpoint.events("run") == []
    checkpoint.unset(name)
    await wide.say("hello")


async def test_the_last_clone_that_fails_takes_the_earlier_ones_with_it(wide):
    checkpoint = wide.model()
    checkpoint.fail("clone", f"{wide.kind.slots - 1} BufferError")
    with pytest.raises(LoadFailed, match="BufferError"):
        await wide.say("hello")
    assert steps(checkpoint, "session_closed", "closed") == ["session_closed"] * (wide.kind.slots - 1) + ["closed"]


async def test_a_fault_of_the_engine_while_a_failed_load_is_undone_hides_nothing(wide):
    checkpoint = wide.model()
    checkpoint.fail("clone", "BufferError")
    checkpoint.fail("destroy")
    with pytest.raises(LoadFailed, match="BufferError"):
        await wide.say("hello")
    assert wide.state() is ModelState.UNLOADED


async def test_more_slots_than_the_session_serves_are_a_load_failure(wide):
    checkpoint = wide.model()
    checkpoint.set("capacity", str(wide.kind.slots - 1))
    with pytest.raises(LoadFailed, match=f"can serve {wide.kind.slots - 1} slots, not {wide.kind.slots}"):
        await wide.say("hello")
    assert steps(checkpoint, "closed") == ["closed"]


async def test_the_audit_list_caps_what_the_session_advertises(wide):
    wide.model(max_slots=wide.kind.slots - 1)
    with pytest.raises(LoadFailed, match=f"can serve {wide.kind.slots - 1} slots"):
        await wide.say("hello")


async def test_a_host_that_cannot_be_made_is_a_load_failure_with_its_cause(stage):
    def no_thread(spec):
        raise RuntimeError("can't start new thread")

    stage.model()
    make_host, stage.make_host = stage.make_host, no_thread
    with pytest.raises(LoadFailed, match="internal error"):
        await stage.say("hello")
    assert stage.state() is ModelState.UNLOADED
    stage.make_host = make_host
    await stage.say("hello")


async def test_a_session_that_cannot_say_what_it_is_is_a_load_failure_and_is_closed(stage, monkeypatch):
    class Dumb:
        """A session without facts."""

        closed = False

        def close(self):
            self.closed = True

    dumb = Dumb()
    stage.model()
    with monkeypatch.context() as patch:
        patch.setattr(ControlledModel, "open_session", lambda self: dumb)
        with pytest.raises(LoadFailed, match="AttributeError"):
            await stage.say("hello")
    assert dumb.closed
    await stage.say("hello")


async def test_models_that_are_not_lazy_begin_to_load_after_the_start_in_their_order(stage):
    stage.model("a", lazy=False)
    lazy = stage.model("b")
    stage.model("c", lazy=False)
    await stage.runtime.start()
    await until(lambda: not len(stage.runtime._tasks))
    loading = [model for model, state in stage.ear.states if state is ModelState.LOADING]
    assert loading == ["a", "c"]
    assert [stage.state(model) for model in "abc"] == [ModelState.READY, ModelState.UNLOADED, ModelState.READY]
    assert lazy.events() == []


async def test_an_eager_load_that_hangs_keeps_no_later_one_waiting(stage):
    stuck = stage.model("a", lazy=False)
    stage.model("b", lazy=False)
    with stuck.held("load"):
        await stage.runtime.start()
        await stuck.await_for("load")
        await until(lambda: stage.state("b") is ModelState.READY)
        assert stage.state("a") is ModelState.LOADING


@pytest.mark.parametrize("limits", [ResidencyLimits(min_free_memory_bytes=100)], ids=["100 free"])
async def test_eager_loads_that_do_not_fit_beside_each_other_take_turns(stage):
    stage.free_bytes = 190
    first, second = (stage.model(name, lazy=False, weight_bytes=50) for name in "ab")
    with first.held("load"):
        await stage.runtime.start()
        await first.await_for("load")
        assert second.events() == []
    await second.await_for("loaded")


async def test_a_failed_eager_load_leaves_a_model_that_loads_on_the_next_request(stage):
    broken, sound = stage.model("a", lazy=False), stage.model("b", lazy=False)
    broken.fail("load")
    await stage.runtime.start()
    await until(lambda: not len(stage.runtime._tasks))
    assert len(sound.events("loaded")) == 1
    assert stage.state("a") is ModelState.UNLOADED
    assert "RuntimeError" in stage.runtime.view("a").last_error
    assert [fault[:2] for fault in stage.ear.faults] == [("a", "load")]
    broken.unset("load.fail")
    await stage.say("hello", "a")


async def test_a_request_waits_for_the_eager_load_that_came_before_it(stage):
    checkpoint = stage.model(lazy=False)
    checkpoint.hold("load")
    await stage.runtime.start()
    task = stage.say("hello")
    await stage.waiting(1)
    checkpoint.release("load")
    await task
    assert len(checkpoint.events("load")) == 1


async def test_an_explicit_load_of_a_loaded_model_loads_nothing(stage):
    checkpoint = stage.model()
    assert (await stage.runtime.load("a")).loaded
    assert (await stage.runtime.load("a")).loaded
    assert len(checkpoint.events("load")) == 1


async def test_a_load_that_hangs_delays_no_other_model(stage):
    checkpoint = stage.model()
    stage.model("b")
    with checkpoint.held("load"):
        cold = stage.say("hello")
        await checkpoint.await_for("load")
        assert (await stage.say("hello", "b")).endswith("|hello")
    await cold


async def test_the_configuration_is_bound_after_the_grant_and_before_the_load(stage):
    checkpoint = stage.model()
    await stage.runtime.load("a")
    bound = []

    def bind(model, request):
        bound.append(model.registration.spec.id)
        return request

    with checkpoint.held("run"):
        running = stage.fill()
        await checkpoint.await_for("run", stage.kind.slots)
        inference = order("late")
        late = stage.ask(type(inference)(inference.model_id, inference.request, bind))
        await stage.waiting(1)
        assert bound == []
    await outcomes([*running, late])
    assert bound == ["a"]


async def test_a_request_that_cannot_be_bound_loads_nothing(stage):
    def refuse(model, request):
        raise ConfigError("not this one")

    checkpoint = stage.model()
    inference = order("hello")
    with pytest.raises(ConfigError):
        await stage.ask(type(inference)(inference.model_id, inference.request, refuse))
    assert checkpoint.events() == []


@pytest.mark.parametrize("step", ["prepare", "run"])
async def test_a_fault_of_the_engine_is_told_with_its_cause_and_costs_no_slot(stage, step):
    checkpoint = stage.model()
    checkpoint.fail(step, "ZeroDivisionError")
    with pytest.raises(EngineError, match=r"the engine failed \(ZeroDivisionError\)") as caught:
        await stage.say("hello")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    checkpoint.unset(f"{step}.fail")
    await outcomes(stage.fill())
    assert len(checkpoint.events("load")) == 1


async def test_a_model_is_awaited_until_it_has_been_in_memory_once(stage):
    stuck, broken = stage.model("a", lazy=False), stage.model("b", lazy=False)
    stage.model("c")
    broken.fail("load")
    stuck.hold("load")
    await stage.runtime.start()
    await stuck.await_for("load")
    assert stage.runtime.awaited() == ("a", "b")

    stuck.release("load")
    await until(lambda: not len(stage.runtime._tasks))
    assert stage.runtime.awaited() == ("b",)

    broken.unset("load.fail")
    await stage.say("hello", "b")
    await stage.runtime.unload("b")
    assert stage.runtime.awaited() == ()


async def test_nothing_is_awaited_of_a_runtime_that_takes_no_work(stage):
    stage.model(lazy=False)
    stage.runtime.refuse()
    with pytest.raises(ShuttingDown):
        stage.runtime.awaited()
