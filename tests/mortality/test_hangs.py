"""Engines that take too long: first they are asked to stop, then their hosts are killed; who waited is told."""

import asyncio

import pytest

from antiphon.runtime.api import Strategy
from antiphon.runtime.watch import STOP_GRACE_S
from antiphon.runtime.wiring import EngineLimits
from antiphon.testing.sim import Act, sim_spec
from antiphon.vocabulary.errors import EngineError, LoadFailed, RunTimeout, WorkerDied
from antiphon.vocabulary.spec import Registration
from antiphon.vocabulary.states import ModelState
from virtual_stage import in_virtual_time, order

two_seconds = pytest.mark.parametrize("engine_limits", [EngineLimits(run_s=2)], ids=["run 2 s"])
load_limit = pytest.mark.parametrize("engine_limits", [EngineLimits(load_s=2)], ids=["load 2 s"])
_INSPECTION_S = 0.002
"""What inspecting a model and ending the host that did it take, before its load begins."""
teardown_limit = pytest.mark.parametrize("engine_limits", [EngineLimits(teardown_s=2)], ids=["teardown 2 s"])


def elapsed(stage, since):
    return round(stage.loop.time() - since, 3)


async def loaded(stage):
    """The moment at which a model is in memory and something may begin."""
    await stage.runtime.load("a")
    return stage.loop.time()


@two_seconds
@in_virtual_time
async def test_a_run_that_hangs_is_refused_once_its_host_is_killed(stage):
    stage.model()
    begun = await loaded(stage)
    stage.hold("run")
    with pytest.raises(RunTimeout, match="2000 ms"):
        await stage.say("hello")
    assert elapsed(stage, begun) == 2 + STOP_GRACE_S


@two_seconds
@in_virtual_time
async def test_the_client_of_a_host_that_cannot_be_killed_is_refused_when_the_time_is_over(stage):
    stage.like_threads()
    stage.model()
    begun = await loaded(stage)
    held = stage.hold("run")
    with pytest.raises(RunTimeout):
        await stage.say("hello")
    assert elapsed(stage, begun) == 2
    held.set()


@two_seconds
@in_virtual_time
async def test_the_neighbours_in_the_same_host_are_told_that_it_died(stage):
    stage.model()
    begun = await loaded(stage)
    stage.hold("run")
    first = stage.say("one")
    await asyncio.sleep(1.5)
    neighbour = stage.say("two")
    with pytest.raises(RunTimeout):
        await first
    with pytest.raises(WorkerDied):
        await neighbour
    assert elapsed(stage, begun) == 2 + STOP_GRACE_S
    stage.well()
    assert await stage.say("next") == "a@0/0|next"


@two_seconds
@in_virtual_time
async def test_an_engine_that_heeds_the_cancellation_in_time_keeps_its_host(stage):
    stage.model()
    begun = await loaded(stage)
    held = stage.hold("run")
    task = stage.say("hello")
    await asyncio.sleep(2 + STOP_GRACE_S / 2)
    held.set()  # the engine looks at its flag, and ends
    with pytest.raises(RunTimeout):
        await task
    assert elapsed(stage, begun) == 2 + STOP_GRACE_S / 2
    await asyncio.sleep(2 * STOP_GRACE_S)
    assert await stage.say("next") == "a@0/0|next"
    assert stage.loads() == 1


@two_seconds
@in_virtual_time
async def test_the_engine_is_told_to_stop_when_the_time_is_over(stage):
    stage.model()
    await loaded(stage)
    stage.hold("run")
    inference = order("hello", "a")
    task = stage.ask(inference)
    await asyncio.sleep(1.9)
    assert not inference.request.cancelled()
    with pytest.raises(RunTimeout):
        await task
    assert inference.request.cancelled()


@two_seconds
@in_virtual_time
async def test_a_host_that_cannot_be_killed_keeps_the_lease_until_the_engine_ends(stage):
    stage.like_threads()
    stage.model(slots=1)
    await loaded(stage)
    held = stage.hold("run")
    with pytest.raises(RunTimeout):
        await stage.say("hello")
    waiting = stage.say("next")
    await asyncio.sleep(100)
    assert not waiting.done()
    assert stage.runtime.status()[0].gate.active_slots == 1
    stage.well()
    held.set()
    assert await waiting == "a@0/0|next"
    assert stage.loads() == 1


@in_virtual_time
async def test_no_limit_is_kept_where_none_is_set(stage):
    stage.model()
    await loaded(stage)
    held = stage.hold("run")
    task = stage.say("hello")
    await asyncio.sleep(10_000)
    held.set()
    assert await task == "a@0/0|hello"


@pytest.mark.parametrize(
    ("model_ms", "request_ms", "limit_s"),
    [(None, 500, 0.5), (None, 5000, 2), (None, 0, 2), (700, None, 0.7), (700, 5000, 0.7), (0, 3000, 3)],
)
@two_seconds
@in_virtual_time
async def test_the_shorter_of_the_requests_limit_and_its_models_counts(stage, model_ms, request_ms, limit_s):
    stage.model(run_timeout_ms=model_ms)
    begun = await loaded(stage)
    stage.hold("run")
    with pytest.raises(RunTimeout):
        await stage.say("hello", run_timeout_ms=request_ms)
    assert elapsed(stage, begun) == limit_s + STOP_GRACE_S


@two_seconds
@in_virtual_time
async def test_a_client_that_left_does_not_keep_a_hanging_engine(stage):
    stage.model(slots=1)
    await loaded(stage)
    stage.hold("run")
    task = stage.say("hello")
    await asyncio.sleep(1)
    task.cancel()
    waiting = stage.say("next")
    await asyncio.sleep(1.5)
    stage.well()
    assert await waiting == "a@0/0|next"
    assert stage.loads() == 2


@two_seconds
@in_virtual_time
async def test_each_event_of_a_stream_starts_the_time_anew(stage):
    stage.model()
    stream = await stage.open("one two three four")
    held = stage.hold("step")
    for _ in range(4):
        stage.loop.call_later(1.5, held.set)
        await anext(stream)
        held.clear()
    with pytest.raises(RunTimeout):
        await anext(stream)
    await stream.aclose()
    assert stage.state() is ModelState.UNLOADED


@two_seconds
@in_virtual_time
async def test_the_time_in_which_the_reader_keeps_the_engine_waiting_does_not_count(stage):
    stage.model()
    stream = await stage.open("one two three")
    events = [await anext(stream)]
    await asyncio.sleep(100)
    events += [event async for event in stream]
    await stream.aclose()
    assert len(events) == 4
    assert stage.state() is ModelState.READY


@two_seconds
@in_virtual_time
async def test_a_stream_whose_reader_has_left_does_not_keep_a_hanging_engine(stage):
    stage.model(slots=1)
    stream = await stage.open("one two three")
    stage.hold("reset")
    begun = stage.loop.time()
    await stream.aclose()
    assert elapsed(stage, begun) == 2 + STOP_GRACE_S
    stage.well()
    await stage.say("next")


@two_seconds
@in_virtual_time
async def test_a_stream_that_hangs_before_its_first_event_fails_before_it_is_opened(stage):
    stage.model(slots=1)
    await loaded(stage)
    stage.hold("stream")
    with pytest.raises(RunTimeout):
        await stage.open("one two")
    stage.well()
    await stage.say("next")
    assert stage.loads() == 2


@two_seconds
@in_virtual_time
async def test_a_stream_that_begins_after_its_time_is_closed_and_refused(stage):
    stage.model(slots=1)
    await loaded(stage)
    held = stage.hold("stream")
    stage.loop.call_later(2 + STOP_GRACE_S / 2, held.set)
    with pytest.raises(RunTimeout):
        await stage.open("one two")
    assert await stage.say("next") == "a@0/0|next"
    assert stage.loads() == 1


@two_seconds
@in_virtual_time
async def test_a_batch_is_timed_as_a_stream_is(stage):
    stage.model(slots=1)
    await loaded(stage)
    stage.hold("step")
    batch = await stage.batch("one", "two")
    with pytest.raises(RunTimeout):
        await anext(batch)
    await batch.aclose()


@two_seconds
@in_virtual_time
async def test_the_wait_for_the_slot_and_the_load_are_no_part_of_the_run(stage):
    stage.model(slots=1)
    held = stage.hold("load")
    first, second = stage.say("one"), stage.say("two")
    await asyncio.sleep(10)
    held.set()
    assert await first == "a@0/0|one"
    assert await second == "a@0/0|two"


@two_seconds
@in_virtual_time
async def test_a_run_that_took_too_long_is_told_to_the_observer_and_shown(stage):
    stage.model()
    await loaded(stage)
    stage.hold("run")
    with pytest.raises(RunTimeout) as caught:
        await stage.say("hello")
    assert [what for _, what, _ in stage.faults] == ["run", "run"]
    assert stage.faults[-1] == ("a", "run", caught.value.message)
    assert stage.runtime.view("a").last_error == caught.value.message


@load_limit
@in_virtual_time
async def test_a_load_that_hangs_is_killed_and_fails_for_all_who_wait(stage):
    stage.model()
    begun = stage.loop.time()
    stage.hold("load")
    faults = await asyncio.gather(stage.say("one"), stage.say("two"), return_exceptions=True)
    assert {type(it) for it in faults} == {LoadFailed}
    assert "load_timeout_ms" in faults[0].message
    assert elapsed(stage, begun) == 2
    stage.well()
    await stage.say("hello")


@load_limit
@in_virtual_time
async def test_loads_that_were_killed_are_never_delayed(stage):
    stage.model()
    stage.hold("clone")
    for _ in range(5):
        with pytest.raises(LoadFailed):
            await stage.say("hello")
    stage.well()
    await stage.say("hello")


@load_limit
@in_virtual_time
async def test_a_load_that_cannot_be_killed_keeps_its_leases_and_lets_its_callers_go(stage):
    stage.like_threads()
    stage.model()
    held = stage.hold("load")
    request = stage.say("one")
    manager = asyncio.ensure_future(stage.runtime.load("a"))
    with pytest.raises(LoadFailed):
        await request
    assert stage.runtime.status()[0].gate.active_slots == 1
    assert not manager.done()
    held.set()
    assert (await manager).loaded
    assert await stage.say("hello") == "a@0/0|hello"
    assert stage.loads() == 1


@load_limit
@in_virtual_time
async def test_who_registers_is_let_go_from_an_inspection_that_cannot_be_killed(stage):
    stage.like_threads()
    begun, held = stage.loop.time(), stage.hold("inspect", "new")
    with pytest.raises(LoadFailed, match="load_timeout_ms"):
        await stage.runtime.register(Registration(sim_spec("new", 1), lazy=True))
    assert elapsed(stage, begun) == 2
    held.set()
    await stage.settled()
    assert not stage.runtime.views()


@load_limit
@in_virtual_time
async def test_a_manager_is_let_go_from_a_load_that_cannot_be_killed(stage):
    stage.like_threads()
    stage.model()
    held = stage.hold("load")
    with pytest.raises(LoadFailed):
        await stage.runtime.load("a")
    held.set()
    await stage.say("hello")
    assert stage.loads() == 1


@pytest.mark.parametrize("ms", [500, 0])
@load_limit
@in_virtual_time
async def test_a_models_own_load_limit_replaces_the_servers(stage, ms):
    stage.model(load_timeout_ms=ms)
    held = stage.hold("load")
    task = stage.say("hello")
    await asyncio.sleep(10)
    assert task.done() == bool(ms)
    held.set()
    await asyncio.gather(task, return_exceptions=True)


@load_limit
@in_virtual_time
async def test_a_request_that_is_granted_a_slot_while_a_load_is_overdue_is_released_at_once(stage):
    stage.like_threads()
    stage.model()
    held = stage.hold("load")
    with pytest.raises(LoadFailed):
        await stage.say("first")
    begun = stage.loop.time()
    with pytest.raises(LoadFailed, match="load_timeout_ms"):
        await stage.say("second")
    assert elapsed(stage, begun) == 0
    (status,) = stage.runtime.status()
    assert (status.view.state, status.gate.active_slots) == (ModelState.LOADING, 2)
    held.set()
    await stage.settled()
    (status,) = stage.runtime.status()
    assert (status.view.state, status.gate.leases) == (ModelState.READY, ())
    assert stage.calls("run") == []  # nobody waits for an answer any more
    assert await stage.say("third") == "a@0/0|third"
    assert stage.loads() == 1


@load_limit
@in_virtual_time
async def test_a_client_that_registers_a_new_model_is_released_from_a_load_that_cannot_be_killed(stage):
    stage.like_threads()
    begun, held = stage.loop.time(), stage.hold("load", "new")
    with pytest.raises(LoadFailed, match="load_timeout_ms"):
        await stage.runtime.register(Registration(sim_spec("new", 2), lazy=True))
    assert elapsed(stage, begun) == 2 + _INSPECTION_S
    assert stage.state("new") is ModelState.LOADING
    held.set()
    await stage.settled()
    assert stage.runtime.view("new").loaded


@pytest.mark.parametrize("change", [{"revision": 1}, {"style": 1}], ids=["weights", "options"])
@load_limit
@in_virtual_time
async def test_a_trial_that_ends_too_late_in_a_thread_leaves_the_old_model_in_place(stage, change):
    stage.like_threads()
    stage.model()
    await loaded(stage)
    before, begun = stage.runtime.view("a").registration, stage.loop.time()
    held = stage.hold("probe" if "style" in change else "load")
    with pytest.raises(LoadFailed, match="load_timeout_ms"):
        await stage.runtime.register(Registration(sim_spec("a", 2, **change), lazy=True))
    assert elapsed(stage, begun) == 2 + _INSPECTION_S
    assert stage.state() is ModelState.RECONFIGURING
    held.set()
    await stage.settled()
    (status,) = stage.runtime.status()
    assert (status.view.state, status.view.registration, status.gate.leases) == (ModelState.READY, before, ())
    assert await stage.say("hello") == "a@0/0|hello"
    assert len(stage.world.hosts) == 1


@load_limit
@in_virtual_time
async def test_a_second_pool_that_is_built_too_late_in_a_thread_is_given_up(stage):
    stage.like_threads()
    stage.model()
    await loaded(stage)
    begun, held = stage.loop.time(), stage.hold("load")
    with pytest.raises(LoadFailed, match="load_timeout_ms"):
        await stage.runtime.register(
            Registration(sim_spec("a", 2, revision=1), lazy=True), strategy=Strategy.SIDE_BY_SIDE
        )
    assert elapsed(stage, begun) == 2 + _INSPECTION_S
    assert await stage.say("meanwhile") == "a@0/0|meanwhile"
    held.set()
    await stage.settled()
    assert await stage.say("after") == "a@0/0|after"
    assert len(stage.world.hosts) == 1


@pytest.mark.parametrize("like_threads", [False, True], ids=["killable", "threads"])
@load_limit
@in_virtual_time
async def test_weights_and_clones_share_one_budget(stage, like_threads):
    if like_threads:
        stage.like_threads()
    stage.model()
    stage.acts["a", "load"], stage.acts["a", "clone"] = Act(takes_ms=1500), Act(takes_ms=1500)
    begun = stage.loop.time()
    with pytest.raises(LoadFailed, match="2000 ms"):
        await stage.say("hello")
    assert elapsed(stage, begun) == 2


@load_limit
@in_virtual_time
async def test_a_load_that_was_begun_beside_the_old_pool_keeps_its_budget(stage):
    """The teardown of the old pool comes between the two parts, and costs nothing of it."""
    stage.model()
    await loaded(stage)
    stage.acts["a", "load"], stage.acts["a", "close"] = Act(takes_ms=1500), Act(takes_ms=5000)
    stage.acts["a", "clone"] = Act(takes_ms=1500)
    begun = stage.loop.time()
    with pytest.raises(LoadFailed, match="2000 ms"):
        await stage.runtime.register(Registration(sim_spec("a", 2, revision=1), lazy=True))
    teardown_s = 5.001  # closing the old pool, and ending its host
    assert elapsed(stage, begun) == round(_INSPECTION_S + 2 + teardown_s, 3)
    assert stage.runtime.view("a").registration.spec == sim_spec("a", 2, revision=1)


@teardown_limit
@in_virtual_time
async def test_callers_are_released_from_a_teardown_in_a_thread_that_cannot_be_killed(stage):
    stage.like_threads()
    stage.model()
    begun = await loaded(stage)
    held = stage.hold("close")
    with pytest.raises(EngineError, match="teardown_timeout_ms"):
        await stage.runtime.unload("a")
    assert elapsed(stage, begun) == 2
    (status,) = stage.runtime.status()
    assert (status.view.state, len(status.gate.leases)) == (ModelState.UNLOADING, 1)
    assert [what for _, what, _ in stage.faults] == ["unload"]
    held.set()
    await stage.settled()
    assert stage.state() is ModelState.UNLOADED
    assert await stage.say("hello") == "a@0/0|hello"


@teardown_limit
@in_virtual_time
async def test_a_bulk_unload_is_released_from_a_teardown_in_a_thread_and_the_others_are_freed(stage):
    stage.like_threads()
    for name in "ab":
        stage.model(name)
        await stage.runtime.load(name)
    held = stage.hold("close", "a")
    with pytest.raises(EngineError, match="teardown_timeout_ms"):
        await stage.runtime.unload_many()
    assert [stage.state(name) for name in "ab"] == [ModelState.UNLOADING, ModelState.UNLOADED]
    held.set()
    await stage.settled()
    assert stage.state("a") is ModelState.UNLOADED


@teardown_limit
@in_virtual_time
async def test_a_teardown_that_hangs_is_ended_by_the_hosts_death(stage):
    stage.model()
    begun = await loaded(stage)
    stage.hold("close")
    view, _ = await stage.runtime.unload("a")
    assert not view.loaded
    assert elapsed(stage, begun) == 2
    assert not stage.world.hosts
    stage.well()
    await stage.say("hello")


@teardown_limit
@in_virtual_time
async def test_a_bulk_unload_waits_for_no_teardown_longer_than_its_limit(stage):
    for name in "ab":
        stage.model(name)
        await stage.runtime.load(name)
    stage.hold("close", "a")
    unloaded = await stage.runtime.unload_many()
    assert unloaded.unloaded == ("a", "b")
    assert not stage.world.hosts


@in_virtual_time
async def test_a_cut_ends_whatever_the_engines_do_and_nothing_is_loaded_any_more(stage):
    for name in "abc":
        stage.model(name)
    await stage.runtime.load("a")
    await stage.runtime.load("b")
    stage.hold("run", "a")
    stage.hold("close", "b")
    stage.hold("load", "c")
    work = [stage.say("one", "a"), stage.say("two", "c"), asyncio.ensure_future(stage.runtime.unload("b"))]
    await stage.settled()
    waiting = stage.say("three", "c")
    stage.runtime.cut()
    faults = await asyncio.gather(*work, waiting, return_exceptions=True)
    assert [type(it).__name__ for it in faults] == ["ShuttingDown", "ShuttingDown", "tuple", "ShuttingDown"]
    with pytest.raises(Exception, match="shutting down"):
        await stage.say("late", "a")


cancel_limit = pytest.mark.parametrize("engine_limits", [EngineLimits(cancel_s=2)], ids=["cancel 2 s"])


async def left(task):
    """The client of a request that runs leaves."""
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@cancel_limit
@in_virtual_time
async def test_an_engine_that_ignores_that_its_client_left_is_killed(stage):
    stage.model(slots=1)
    begun = await loaded(stage)
    stage.hold("run")
    await left(stage.say("hello"))
    stage.well()
    waiting = stage.say("next")
    assert await waiting == "a@0/0|next"
    assert elapsed(stage, begun) == pytest.approx(2.5, abs=0.1)
    assert stage.loads() == 2
    assert [fault for fault in stage.faults if "cancel_timeout_ms" in fault[2]] == [
        ("a", "run", "the engine went on with a cancelled request for more than 2000 ms (cancel_timeout_ms)")
    ]
    assert stage.faults[-1][2].endswith("(cancel_timeout_ms)")  # not that its process ended unexpectedly


@cancel_limit
@in_virtual_time
async def test_an_engine_that_stops_in_time_after_its_client_left_keeps_its_host(stage):
    stage.model(slots=1)
    await loaded(stage)
    held = stage.hold("run")
    await left(stage.say("hello"))
    await asyncio.sleep(1.9)
    held.set()
    await asyncio.sleep(10)
    assert await stage.say("next") == "a@0/0|next"
    assert (stage.loads(), stage.faults) == (1, [])


@cancel_limit
@in_virtual_time
async def test_the_client_of_a_slow_engine_that_stays_is_not_affected(stage):
    stage.model(slots=1)
    await loaded(stage)
    held = stage.hold("run")
    task = stage.say("hello")
    await asyncio.sleep(1000)
    held.set()
    assert await task == "a@0/0|hello"


@cancel_limit
@in_virtual_time
async def test_a_thread_that_ignores_that_its_client_left_is_reported_once_and_its_slot_stays_taken(stage):
    stage.like_threads()
    stage.model(slots=1)
    await loaded(stage)
    held = stage.hold("run")
    await left(stage.say("hello"))
    waiting = stage.say("next")
    await asyncio.sleep(1000)
    assert not waiting.done()
    assert [fault[2] for fault in stage.faults] == [
        "the engine went on with a cancelled request for more than 2000 ms (cancel_timeout_ms)"
    ]
    stage.well()
    held.set()
    assert await waiting == "a@0/0|next"
    assert (stage.loads(), len(stage.faults)) == (1, 1)


@cancel_limit
@pytest.mark.parametrize("step", ["step", "reset"])
@in_virtual_time
async def test_a_stream_whose_engine_ignores_that_its_reader_left_is_ended(stage, step):
    stage.model(slots=1)
    await loaded(stage)
    stream = await stage.open("one two three")
    stage.hold(step)
    if step == "step":
        await left(stage.loop.create_task(anext(stream)))
    begun = stage.loop.time()
    await stream.aclose()
    assert elapsed(stage, begun) == 2
    stage.well()
    assert await stage.say("next") == "a@0/0|next"
    assert stage.loads() == 2


@pytest.mark.parametrize("engine_limits", [EngineLimits(run_s=2, cancel_s=60)], ids=["run 2 s, cancel 60 s"])
@in_virtual_time
async def test_a_run_limit_holds_for_a_cancelled_run_too(stage):
    stage.model(slots=1)
    begun = await loaded(stage)
    stage.hold("run")
    await left(stage.say("hello"))
    stage.well()
    waiting = stage.say("next")
    assert await waiting == "a@0/0|next"
    assert elapsed(stage, begun) == pytest.approx(2 + STOP_GRACE_S, abs=0.1)
    assert stage.faults[-1][2].endswith("(run_timeout_ms)")


@pytest.mark.parametrize(("model_ms", "limit_s"), [(None, 60), (5000, 5), (0, None)])
@pytest.mark.parametrize("engine_limits", [EngineLimits(cancel_s=60)], ids=["cancel 60 s"])
@in_virtual_time
async def test_the_limit_of_a_cancelled_run_is_the_models_before_the_servers(stage, model_ms, limit_s):
    policy = {} if model_ms is None else {"cancel_timeout_ms": model_ms}
    stage.model(slots=1, **policy)
    await loaded(stage)
    held = stage.hold("run")
    await left(stage.say("hello"))
    await asyncio.sleep((limit_s or 1000) - 0.1)
    assert stage.runtime.status()[0].gate.active_slots == 1
    await asyncio.sleep(0.2)
    assert stage.runtime.status()[0].gate.active_slots == (1 if limit_s is None else 0)
    held.set()
