"""Room for one more model: the least recently used idle one leaves for it, in the step in which it takes its place."""

import asyncio

import pytest

from antiphon.runtime.wiring import ResidencyLimits
from antiphon.vocabulary.errors import LoadFailed, ServerBusy
from antiphon.vocabulary.states import ModelState
from runtime_stage import drained, until

UNLOADED, UNLOADING, LOADING = ModelState.UNLOADED, ModelState.UNLOADING, ModelState.LOADING
one = pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=1)], ids=["one"])
two = pytest.mark.parametrize("limits", [ResidencyLimits(max_loaded_models=2)], ids=["two"])


def models(stage, names="abc"):
    return [stage.model(name) for name in names]


def loaded(stage):
    """The models in use, in one word; what left may still be being freed."""
    return "".join(view.registration.spec.id for view in stage.runtime.views() if view.loaded)


def most_in_memory(stage):
    """The highest number of models that were in memory or on their way there at once."""
    now, most = {}, 0
    for model, state in stage.ear.states:
        now[model] = state
        most = max(most, sum(it not in (UNLOADED, UNLOADING) for it in now.values()))
    return most


@two
async def test_the_least_recently_used_model_leaves_for_a_new_one(stage):
    models(stage)
    await stage.bring("a", "b")
    stage.clock.advance(1)
    await stage.say("hello", "a")
    await stage.say("hello", "c")
    assert loaded(stage) == "ac"


@two
async def test_a_victim_leaves_in_the_step_in_which_the_newcomer_takes_its_place(stage):
    models(stage)
    await stage.bring("a", "b")
    await stage.bring("c")
    assert stage.ear.states[4:6] == [("a", UNLOADING), ("c", LOADING)]


@two
async def test_loads_at_once_never_go_over_the_limit(stage):
    models(stage, "abcdef")
    await asyncio.gather(*(stage.say("hello", name) for name in "ab"))
    outcomes = await asyncio.gather(*(stage.say("hello", name) for name in "cdef"), return_exceptions=True)
    assert [isinstance(it, ServerBusy) for it in outcomes] == [False, False, True, True]
    assert most_in_memory(stage) == 2


@two
async def test_a_busy_model_is_passed_over(stage):
    busy, *_ = models(stage)
    await stage.bring("a", "b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        await stage.say("hello", "c")
        assert loaded(stage) == "ac"
    await running


@two
async def test_a_model_whose_stream_is_open_is_passed_over(stage):
    models(stage)
    stream = await stage.open("hello", "a")
    await stage.bring("b", "c")
    assert loaded(stage) == "ac"
    await drained(stream)


@two
async def test_a_pinned_model_is_never_a_victim(stage):
    stage.model("a", pinned=True)
    models(stage, "bc")
    await stage.bring("a", "b", "c")
    assert loaded(stage) == "ac"


@one
async def test_a_pinned_model_can_be_unloaded(stage):
    stage.model("a", pinned=True)
    stage.model("b")
    await stage.bring("a")
    with pytest.raises(ServerBusy):
        await stage.say("hello", "b")
    await stage.runtime.unload("a")
    await stage.say("hello", "b")


@one
async def test_a_load_that_finds_no_idle_model_is_refused_and_takes_no_place(stage):
    busy, refused = models(stage, "ab")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        with pytest.raises(ServerBusy, match="max_loaded_models"):
            await stage.say("hello", "b")
        assert loaded(stage) == "a"
        assert refused.events() == []
    await running
    await stage.say("hello", "a")
    assert len(busy.events("load")) == 1
    await stage.say("hello", "b")
    assert loaded(stage) == "b"


@one
async def test_a_refusal_tells_when_a_model_will_probably_be_idle(stage):
    busy, _ = models(stage, "ab")
    busy.hold("run")
    first = stage.say("hello", "a")
    await busy.await_for("run")
    stage.clock.advance(8)
    busy.release("run")
    await first
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run", 2)
        stage.clock.advance(3)
        with pytest.raises(ServerBusy) as caught:
            await stage.say("hello", "b")
        assert caught.value.retry_after_s == 5
    await running


@two
async def test_a_model_that_is_being_freed_does_not_count_and_its_place_is_taken_at_once(stage):
    leaving, _, _ = models(stage)
    await stage.bring("a", "b")
    with leaving.held("destroy"):
        unload = asyncio.ensure_future(stage.runtime.unload("a"))
        await leaving.await_for("destroy")
        await stage.say("hello", "c")
        assert (stage.state("a"), loaded(stage)) == (UNLOADING, "bc")
    await unload


@one
async def test_a_newcomer_does_not_wait_for_the_end_of_its_victims_teardown(stage):
    victim, _ = models(stage, "ab")
    await stage.bring("a")
    with victim.held("destroy"):
        await stage.say("hello", "b")
        await victim.await_for("destroy")
        assert (stage.state("a"), loaded(stage)) == (UNLOADING, "b")


@one
async def test_a_victim_that_is_asked_for_waits_for_its_own_teardown_and_is_loaded_again(stage):
    victim, _ = models(stage, "ab")
    await stage.bring("a", "b")
    await stage.say("hello", "a")
    assert [event.step for event in victim.events() if event.step in ("load", "closed")] == ["load", "closed", "load"]


@one
async def test_a_load_that_fails_gives_its_place_back(stage):
    broken, _ = models(stage, "ab")
    broken.fail("load")
    with pytest.raises(LoadFailed):
        await stage.say("hello", "a")
    await stage.say("hello", "b")
    assert loaded(stage) == "b"


@one
async def test_a_victim_whose_destructor_fails_can_be_loaded_again(stage):
    victim, _ = models(stage, "ab")
    await stage.bring("a")
    victim.fail("destroy")
    await stage.bring("b")
    await until(lambda: stage.ear.faults)
    victim.unset("destroy.fail")
    await stage.say("hello", "a")
    assert stage.ear.faults == [("a", "unload", "the engine failed (RuntimeError)")]


async def test_without_a_limit_nobody_leaves(stage):
    models(stage)
    await stage.bring("a", "b", "c")
    assert loaded(stage) == "abc"


@two
async def test_the_models_that_load_at_the_start_do_not_drive_each_other_out(stage):
    for name in "abcd":
        stage.model(name, lazy=name == "b")
    await stage.runtime.start()
    await stage.runtime._tasks.join()
    assert loaded(stage) == "ac"
    assert stage.checkpoint("d").events("load") == []
