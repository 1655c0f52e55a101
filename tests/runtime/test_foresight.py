"""Dry runs: what is told is what the real call then does, and telling it changes nothing."""

import asyncio
from dataclasses import replace

import pytest

from antiphon.runtime.wiring import ResidencyLimits
from antiphon.vocabulary.errors import InvalidRequest, ModelNotFound, ServerBusy, ShuttingDown, WorkerDied
from antiphon.vocabulary.states import ModelState
from runtime_stage import until

two = pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=2)], ids=["two"])


def told(stage):
    """What the observer has heard so far, in numbers."""
    return len(stage.ear.states), len(stage.ear.faults)


async def since(stage, mark):
    """Who began to load and who began to leave since then, once nothing moves any more."""
    await until(lambda: not len(stage.runtime._tasks))
    heard = stage.ear.states[mark[0] :]
    leaving = (ModelState.UNLOADING,)
    loads = tuple(model for model, state in heard if state in (ModelState.LOADING, ModelState.RECONFIGURING))
    return loads, tuple(model for model, state in heard if state in leaving)


@two
async def test_a_load_that_evicts_is_told_and_then_done(stage):
    for name in "abc":
        stage.model(name)
    await stage.bring("a", "b")
    mark = told(stage)
    foreseen = await stage.runtime.foresee_load("c")
    assert told(stage) == mark
    assert (foreseen.loads, foreseen.evicts, foreseen.unloads, foreseen.waits_for) == (("c",), ("a",), (), ())
    await stage.runtime.load("c")
    assert await since(stage, mark) == (foreseen.loads, foreseen.evicts)


@two
async def test_a_new_model_that_evicts_is_told_and_then_done(stage):
    for name in "ab":
        stage.model(name)
    await stage.bring("b", "a")
    mark = told(stage)
    registration = stage.registration("new")
    foreseen = await stage.runtime.foresee_load("new", registration)
    with pytest.raises(ModelNotFound):
        stage.runtime.view("new")
    assert (foreseen.loads, foreseen.evicts) == (("new",), ("b",))
    await stage.register(registration)
    assert await since(stage, mark) == (foreseen.loads, foreseen.evicts)


@two
async def test_a_busy_model_is_not_told_to_leave(stage):
    busy, _, _ = (stage.model(name) for name in "abc")
    await stage.bring("a", "b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        mark = told(stage)
        assert (await stage.runtime.foresee_load("c")).evicts == ("b",)
        await stage.runtime.load("c")
        assert stage.ear.states[mark[0]] == ("b", ModelState.UNLOADING)
    await running


def metered(stage, total_bytes, model_bytes, names):
    """Let the stage's memory be what its models leave of the total."""
    in_memory = (ModelState.READY, ModelState.UNLOADING)

    def available_bytes():
        return total_bytes - model_bytes * sum(stage.state(name) in in_memory for name in names)

    stage.available_bytes = available_bytes


@pytest.mark.parametrize(
    "limits", [ResidencyLimits(max_loaded_models=2, min_free_memory_bytes=100)], ids=["two, 100 free"]
)
async def test_what_leaves_for_the_limit_counts_for_the_memory(stage):
    for name in "ab":
        stage.model(name, weight_bytes=50)
    stage.model("c", weight_bytes=60)
    metered(stage, 220, 50, "ab")
    await stage.bring("a", "b")
    mark = told(stage)
    foreseen = await stage.runtime.foresee_load("c")
    assert (foreseen.free_bytes, foreseen.evicts) == (120, ("a",))
    await stage.runtime.load("c")
    assert await since(stage, mark) == (("c",), ("a",))


@pytest.mark.parametrize("limits", [ResidencyLimits(min_free_memory_bytes=100)], ids=["100 free"])
async def test_a_model_that_grows_in_its_own_place_is_told_whom_it_drives_out(stage):
    stage.model("a", weight_bytes=50, slots=1)
    stage.model("b", weight_bytes=50)
    metered(stage, 220, 50, "ab")
    await stage.bring("a", "b")
    stage.checkpoint("new").set("bytes", "90")
    registration = stage.registration("a", "new", slots=1)
    mark = told(stage)
    foreseen = await stage.runtime.foresee_load("a", registration)
    assert (foreseen.loads, foreseen.unloads, foreseen.evicts) == (("a",), ("a",), ("b",))
    await stage.register(registration)
    assert await since(stage, mark) == (("a",), ("b",))


@pytest.mark.parametrize("limits", [ResidencyLimits(min_free_memory_bytes=100)], ids=["100 free"])
async def test_the_models_that_leave_for_the_memory_are_told_and_then_leave(stage):
    for name in "abc":
        stage.model(name, weight_bytes=50)
    stage.model("d", weight_bytes=80)
    metered(stage, 270, 50, "abc")
    await stage.bring("a", "b", "c")
    mark = told(stage)
    foreseen = await stage.runtime.foresee_load("d")
    assert (foreseen.free_bytes, foreseen.needed_bytes, foreseen.evicts) == (120, 80, ("a", "b"))
    await stage.runtime.load("d")
    assert await since(stage, mark) == (("d",), ("a", "b"))


@two
async def test_what_is_loaded_and_unchanged_is_told_to_stay_and_stays(stage):
    for name in "ab":
        stage.model(name)
    await stage.bring("a", "b")
    mark = told(stage)
    for registration in (None, replace(stage.runtime.view("a").registration, pinned=True)):
        foreseen = await stage.runtime.foresee_load("a", registration)
        assert (foreseen.loads, foreseen.evicts, foreseen.unloads, foreseen.needed_bytes) == ((), (), (), 0)
        await (stage.runtime.load("a") if registration is None else stage.register(registration))
    assert await since(stage, mark) == ((), ())


async def test_a_reconfiguration_is_told_to_unload_and_load_again(stage):
    old, new = stage.model(), stage.checkpoint("new")
    await stage.bring("a")
    registration = stage.registration("a", "new")
    foreseen = await stage.runtime.foresee_load("a", registration)
    assert (foreseen.loads, foreseen.unloads, foreseen.evicts) == (("a",), ("a",), ())
    assert new.events() == []
    await stage.register(registration)
    assert (len(old.events("closed")), len(new.events("loaded"))) == (1, 1)


async def test_a_registration_that_would_be_refused_is_refused_now(stage):
    stage.model()
    registration = stage.registration("a")
    broken = replace(registration, spec=replace(registration.spec, path="/nowhere"))
    with pytest.raises(InvalidRequest) as caught:
        await stage.runtime.foresee_load("a", broken)
    assert caught.value.param == "path"


async def test_an_unload_tells_every_lease_that_is_out_and_the_last_of_the_queue(stage):
    checkpoint = stage.model()
    await stage.bring("a")
    with checkpoint.held("run"):
        running = [*stage.fill(), stage.say("queued"), stage.say("last")]
        await checkpoint.await_for("run", stage.kind.slots)
        await stage.waiting(2)
        foreseen = stage.runtime.foresee_unload("a")
        assert foreseen.waits_for == (*(f"lease:{slot}" for slot in range(stage.kind.slots)), "waiter:2")
        assert foreseen.unloads == ("a",)
        unload = asyncio.ensure_future(stage.runtime.unload("a"))
        await stage.waiting(3)
        assert stage.runtime._desk.view("a").queue[-1].waits_for == foreseen.waits_for
    await asyncio.gather(*running, unload)


async def test_a_bulk_tells_each_model_apart_and_what_is_in_memory(stage):
    busy, _, _ = (stage.model(name) for name in "abc")
    await stage.bring("a", "b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        mark = told(stage)
        foreseen, unloaded = stage.runtime.foresee_unload_many(["b", "c", "a", "x"])
        assert told(stage) == mark
        assert (foreseen.waits_for, foreseen.unloads) == (("a/lease:0",), ("b", "a"))
        bulk = asyncio.ensure_future(stage.runtime.unload_many(["b", "c", "a", "x"]))
        await stage.waiting(1)
    await running
    assert await bulk == unloaded
    assert await since(stage, mark) == ((), foreseen.unloads)


async def test_the_serial_runtime_tells_that_it_skips_a_first_load(serial):
    cold = serial.model()
    with cold.held("load"):
        loading = serial.say("hello")
        await cold.await_for("load")
        _, unloaded = serial.runtime.foresee_unload_many()
        assert unloaded == await serial.runtime.unload_many()
        assert unloaded.unloaded == ()
    await loading


async def test_how_long_it_would_wait_follows_the_measured_runs(stage):
    checkpoint = stage.model()
    await stage.bring("a")
    assert stage.runtime.foresee_unload("a").estimate_s == 0
    checkpoint.hold("run")
    first = stage.say("hello")
    await checkpoint.await_for("run")
    assert stage.runtime.foresee_unload("a").estimate_s is None
    stage.clock.advance(10)
    checkpoint.release("run")
    await first
    with checkpoint.held("run"):
        running = [*stage.fill(), stage.say("queued")]
        await checkpoint.await_for("run", 1 + stage.kind.slots)
        stage.clock.advance(4)
        assert stage.runtime.foresee_unload("a").estimate_s == 16  # 6 s of what runs, 10 s of what waits
    await asyncio.gather(*running)


async def timed(stage, checkpoint, load, takes_s):
    """Let a load take so many seconds."""
    with checkpoint.held("load"):
        loading = asyncio.ensure_future(load)
        await checkpoint.await_for("load")
        stage.clock.advance(takes_s)
    await loading


async def test_how_long_a_load_takes_follows_the_measured_loads(stage):
    checkpoint = stage.model()
    assert (await stage.runtime.foresee_load("a")).estimate_s is None
    await timed(stage, checkpoint, stage.runtime.load("a"), 3)
    assert (await stage.runtime.foresee_load("a")).estimate_s == 0  # it is there
    await stage.runtime.unload("a")
    assert (await stage.runtime.foresee_load("a")).estimate_s == 3
    assert (await stage.runtime.foresee_load("a", stage.registration("a", slots=1))).estimate_s == (
        3 if stage.kind.slots == 1 else None
    )


async def test_how_long_new_weights_take_is_not_told_from_the_old_ones(stage):
    new = stage.checkpoint("new")
    checkpoint = stage.model()
    await timed(stage, checkpoint, stage.runtime.load("a"), 3)
    registration = stage.registration("a", "new")
    assert (await stage.runtime.foresee_load("a", registration)).estimate_s is None
    await timed(stage, new, stage.register(registration), 8)
    await stage.runtime.unload("a")
    measured_s = 8 if stage.kind.slots == 1 else None  # with more slots they were tried apart, and not measured
    assert (await stage.runtime.foresee_load("a")).estimate_s == measured_s


@pytest.mark.parametrize("mean_s", [2, 30])
async def test_a_refusal_follows_the_measured_runs(stage, mean_s):
    checkpoint = stage.model()
    await stage.bring("a")
    checkpoint.hold("run")
    first = stage.say("hello")
    await checkpoint.await_for("run")
    stage.clock.advance(mean_s)
    checkpoint.release("run")
    await first
    with checkpoint.held("run"):
        running = stage.fill()
        await checkpoint.await_for("run", 1 + stage.kind.slots)
        late = stage.say("late", busy_timeout_ms=500)
        await stage.waiting(1)
        stage.clock.advance(0.5)
        with pytest.raises(ServerBusy) as caught:
            await late
        assert caught.value.retry_after_s == mean_s - 0.5
    await asyncio.gather(*running)


async def test_a_stream_is_measured_too(stage):
    stage.model()
    stream = await stage.open("hello")
    stage.clock.advance(6)
    await stream.aclose()
    assert stage.runtime._desk.run_times("a").mean_run_s == 6


async def test_a_run_that_fails_is_not_measured(stage):
    checkpoint = stage.model()
    checkpoint.fail("run")
    assert len(await asyncio.gather(stage.say("hello"), return_exceptions=True)) == 1
    assert stage.runtime._desk.run_times("a").mean_run_s is None


async def test_the_status_estimates_each_wait(stage):
    checkpoint = stage.model()
    await stage.bring("a")
    stage.runtime._desk.run_times("a").note_run(10)
    with checkpoint.held("run"):
        running = [*stage.fill(), stage.say("queued"), asyncio.ensure_future(stage.runtime.unload("a"))]
        await checkpoint.await_for("run", stage.kind.slots)
        await stage.waiting(2)
        stage.clock.advance(4)
        (status,) = stage.runtime.status()
        assert status.estimates_s == (6, 16)
    await asyncio.gather(*running)


async def test_nothing_is_foreseen_once_the_runtime_closes(stage):
    stage.model()
    await stage.runtime.close()
    with pytest.raises(ShuttingDown):
        await stage.runtime.foresee_load("a")
    with pytest.raises(ShuttingDown):
        stage.runtime.foresee_unload_many()


async def test_a_model_that_is_loading_is_one_that_will_have_been_loaded(stage):
    checkpoint = stage.model()
    with checkpoint.held("load"):
        loading = stage.say("hello")
        await checkpoint.await_for("load")
        again = await stage.runtime.foresee_load("a")
        away, (many, _) = stage.runtime.foresee_unload("a"), stage.runtime.foresee_unload_many(["a"])
        assert (again.waits_for, again.loads, again.unloads) == (("lease:0",), (), ())
        assert (away.waits_for, away.loads, away.unloads) == (("lease:0",), (), ("a",))
        bulk = (("a/lease:0",), ("a",)) if stage.runtime.parallel else ((), ())  # the serial one skips a first load
        assert (many.waits_for, many.unloads) == bulk
    await loading


async def test_what_waits_ahead_decides_what_is_loaded_by_then(stage):
    checkpoint = stage.model()
    await stage.bring("a")
    with checkpoint.held("run"):
        running = stage.say("hello")
        await checkpoint.await_for("run")
        unload = asyncio.ensure_future(stage.runtime.unload("a"))
        await stage.waiting(1)
        foreseen = await stage.runtime.foresee_load("a")
        assert (foreseen.waits_for, foreseen.loads) == (("lease:0", "waiter:1"), ("a",))
        assert stage.runtime.foresee_unload("a").unloads == ()
        request = stage.say("behind")
        await stage.waiting(2)
        assert (await stage.runtime.foresee_load("a")).loads == ()
        assert stage.runtime.foresee_unload("a").unloads == ("a",)
    await asyncio.gather(running, unload, request)


async def test_a_replacement_is_compared_with_what_a_load_in_progress_will_leave(stage):
    checkpoint = stage.model()
    with checkpoint.held("load"):
        loading = asyncio.ensure_future(stage.runtime.load("a"))
        await checkpoint.await_for("load")
        same = await stage.runtime.foresee_load("a", stage.runtime.view("a").registration)
        other = await stage.runtime.foresee_load("a", stage.registration("a", "new"))
        assert (same.loads, same.unloads) == ((), ())
        assert (other.loads, other.unloads) == (("a",), ("a",))
    await loading


async def test_a_back_off_after_crashes_refuses_a_load_in_the_words_of_the_real_one(stage):
    stage.model()
    resident = stage.runtime._residents.find("a")
    for _ in range(3):
        resident.crashes = resident.crashes.crashed(stage.clock.now())
    foreseen = await stage.runtime.foresee_load("a")
    with pytest.raises(WorkerDied) as refused:
        await stage.runtime.load("a")
    assert isinstance(foreseen.refusal, WorkerDied)
    assert (foreseen.loads, str(foreseen.refusal)) == ((), str(refused.value))
    assert (await stage.runtime.foresee_load("a", stage.registration("a", "new"))).refusal is None
    stage.clock.advance(1)
    assert (await stage.runtime.foresee_load("a")).loads == ("a",)
    assert (await stage.runtime.load("a")).loaded


async def test_a_wait_that_is_hopeless_is_foreseen_in_the_words_of_the_real_one(stage):
    checkpoint = stage.model()
    await stage.bring("a")
    with checkpoint.held("run"):
        running = stage.say("hello")
        await checkpoint.await_for("run")
        stage.clock.advance(2)
        foreseen = [
            await stage.runtime.foresee_load("a", stage.registration("a", "new"), busy_timeout_ms=1000),
            stage.runtime.foresee_unload("a", busy_timeout_ms=1000),
        ]
        with pytest.raises(ServerBusy) as refused:
            await stage.runtime.unload("a", busy_timeout_ms=1000)
        assert [str(it.refusal) for it in foreseen] == [str(refused.value)] * 2
        assert [(it.loads, it.unloads) for it in foreseen] == [((), ())] * 2
        patient = stage.runtime.foresee_unload("a", busy_timeout_ms=3000)
        assert (patient.refusal, patient.unloads) == (None, ("a",))
    await running
