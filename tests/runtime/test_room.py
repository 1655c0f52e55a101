"""Loads that wait for room: first come first served, and never in the queue of the model that is to leave."""

import asyncio

import pytest

from antiphon.runtime.room import WaitingRoom
from antiphon.runtime.wiring import ResidencyLimits
from antiphon.testing import ManualClock
from antiphon.vocabulary.errors import ServerBusy
from antiphon.vocabulary.states import ModelState

patient = pytest.mark.parametrize(
    "limits", [ResidencyLimits(max_loaded_models=1, residency_wait_s=5)], ids=["one, waiting"]
)


class Room:
    """A room with so many places, and who took one."""

    def __init__(self, wait_s=5.0):
        self.clock = ManualClock()
        self.room = WaitingRoom(self.clock, wait_s)
        self.places = 0
        self.seated = []

    def enter(self, name):
        return asyncio.ensure_future(self.room.enter(lambda: self._sit(name), lambda: ServerBusy("full")))

    def _sit(self, name):
        if self.places:
            self.places -= 1
            self.seated.append(name)
            return True
        return False


async def turn():
    for _ in range(3):
        await asyncio.sleep(0)


async def test_who_finds_room_enters_at_once():
    room = Room()
    room.places = 1
    await room.enter("a")
    assert room.seated == ["a"]
    assert room.clock.statistics().pending == ()


async def test_without_a_wait_who_finds_none_is_refused_at_once():
    with pytest.raises(ServerBusy):
        await Room(wait_s=0).enter("a")


async def test_who_came_first_is_served_first_as_far_as_the_room_goes():
    room = Room()
    tasks = [room.enter(name) for name in "abc"]
    await turn()
    room.places = 2
    room.room.retry()
    await asyncio.gather(*tasks[:2])
    assert room.seated == ["a", "b"]
    assert not tasks[2].done()
    room.places = 1
    room.room.retry()
    await tasks[2]


async def test_a_newcomer_does_not_pass_those_who_wait_although_there_is_room():
    room = Room()
    first = room.enter("a")
    await turn()
    room.places = 1
    second = room.enter("b")
    await turn()
    assert room.seated == []
    room.room.retry()
    await first
    assert room.seated == ["a"]
    room.places = 1
    room.room.retry()
    await second


async def test_a_wait_ends_when_its_time_is_over_and_the_next_waits_on():
    room = Room()
    first = room.enter("a")
    await turn()
    room.clock.advance(2)
    second = room.enter("b")
    await turn()
    room.clock.advance(3)
    with pytest.raises(ServerBusy, match="full"):
        await first
    assert not second.done()
    room.places = 1
    room.room.retry()
    await second
    assert room.clock.statistics().pending == ()


async def test_no_room_is_taken_for_one_who_was_cancelled_in_the_same_turn():
    room = Room()
    first, second = room.enter("a"), room.enter("b")
    await turn()
    first.cancel()
    room.places = 1
    room.room.retry()
    await second
    assert first.cancelled()
    assert room.seated == ["b"]


async def test_a_wait_that_ends_in_the_turn_of_its_cancellation_leaves_nothing():
    room = Room()
    first = room.enter("a")
    await turn()
    first.cancel()
    room.clock.advance(5)
    await turn()
    assert first.cancelled()
    room.places = 1
    await room.enter("b")


async def test_what_a_reservation_raises_is_told_to_the_one_who_waits_for_it():
    def fail():
        if tried:
            raise LookupError
        tried.append(1)
        return False

    tried = []
    room = Room()
    broken = asyncio.ensure_future(room.room.enter(fail, lambda: ServerBusy("full")))
    behind = room.enter("b")
    await turn()
    room.places = 1
    room.room.retry()
    with pytest.raises(LookupError):
        await broken
    await behind


@patient
async def test_a_load_waits_for_a_model_to_become_idle_outside_its_queue(stage):
    busy, _ = stage.model("a"), stage.model("b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        waiting = stage.say("hello", "b")
        await turn()
        assert stage.state("b") is ModelState.UNLOADED
        assert stage.runtime._desk.view("a").waiting == 0
    await running
    assert (await waiting).endswith("|hello")
    assert [stage.runtime.view(name).loaded for name in "ab"] == [False, True]


@patient
async def test_loads_that_wait_are_served_in_their_order(stage):
    busy, *_ = (stage.model(name) for name in "abc")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        waiting = [stage.say("hello", name) for name in "cb"]
        await turn()
    await asyncio.gather(running, *waiting)
    loads = [model for model, state in stage.ear.states if state is ModelState.LOADING]
    assert loads == ["a", "c", "b"]


@patient
async def test_a_load_whose_wait_is_over_is_refused_and_the_model_can_be_asked_for_again(stage):
    busy, _ = stage.model("a"), stage.model("b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        waiting = stage.say("hello", "b")
        await turn()
        stage.clock.advance(5)
        with pytest.raises(ServerBusy, match="max_loaded_models"):
            await waiting
        assert stage.state("b") is ModelState.UNLOADED
    await running
    await stage.say("hello", "b")


@patient
async def test_a_load_that_waits_goes_on_as_soon_as_a_model_is_retired_whatever_its_teardown_takes(stage):
    leaving, _ = stage.model("a"), stage.model("b")
    leaving.hold("run")
    leaving.hold("destroy")
    running = stage.say("hello", "a")
    await leaving.await_for("run")
    unload = asyncio.ensure_future(stage.runtime.unload("a"))
    await stage.waiting(1)
    waiting = stage.say("hello", "b")
    await turn()
    leaving.release("run")
    await running
    await waiting
    assert [stage.state(name) for name in "ab"] == [ModelState.UNLOADING, ModelState.READY]
    leaving.release("destroy")
    await unload


@patient
async def test_a_load_that_waits_goes_on_when_another_load_fails(stage):
    broken, _ = stage.model("a"), stage.model("b")
    broken.fail("load")
    with broken.held("load"):
        failing = stage.say("hello", "a")
        await broken.await_for("load")
        waiting = stage.say("hello", "b")
        await turn()
    assert len(await asyncio.gather(failing, return_exceptions=True)) == 1
    await waiting


@patient
async def test_a_runtime_that_closes_waits_for_the_loads_that_wait(stage):
    busy, _ = stage.model("a"), stage.model("b")
    with busy.held("run"):
        running = stage.say("hello", "a")
        await busy.await_for("run")
        waiting = stage.say("hello", "b")
        await turn()
        closing = asyncio.ensure_future(stage.runtime.close())
        await turn()
    await asyncio.gather(running, waiting, closing)
