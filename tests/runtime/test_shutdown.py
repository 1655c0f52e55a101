"""The two moments of an end: who is told of them, in which order, and when the second comes by itself."""

import asyncio

import pytest

from antiphon.runtime.shutdown import Shutdown
from antiphon.testing import ManualClock
from antiphon.vocabulary.errors import ShuttingDown


@pytest.fixture
def shutdown(stage):
    return Shutdown(stage.runtime, stage.clock, drain_timeout_s=30)


def moments(shutdown):
    return shutdown.order.begun.is_set(), shutdown.order.cut.is_set()


async def test_asked_once_it_takes_nothing_new_and_lets_go_on_what_there_is(stage, shutdown):
    checkpoint = stage.model()
    with checkpoint.held("run"):
        running = [*stage.fill(), stage.say("queued")]
        await checkpoint.await_for("run", stage.kind.slots)
        shutdown.ask()
        with pytest.raises(ShuttingDown):
            await stage.say("late")
        stage.clock.advance(29)
        assert moments(shutdown) == (True, False)
    assert (await asyncio.gather(*running))[-1].endswith("|queued")
    shutdown.close()


async def test_the_cut_comes_at_the_deadline(stage, shutdown):
    checkpoint = stage.model()
    with checkpoint.held("run"):
        running = stage.fill()
        await checkpoint.await_for("run", stage.kind.slots)
        queued = stage.say("queued")
        await stage.waiting(1)
        shutdown.ask()
        stage.clock.advance(30)
        assert moments(shutdown) == (True, True)
        with pytest.raises(ShuttingDown):
            await queued
    await asyncio.gather(*running, return_exceptions=True)


async def test_asked_a_second_time_the_deadline_is_now(stage, shutdown):
    shutdown.ask()
    shutdown.ask()
    assert moments(shutdown) == (True, True)
    shutdown.ask()
    shutdown.close()


async def test_begun_by_a_fault_it_is_still_cut_by_the_second_asking_only(stage, shutdown):
    shutdown.begin()
    shutdown.begin()
    assert moments(shutdown) == (True, False)
    shutdown.ask()
    assert moments(shutdown) == (True, True)
    shutdown.close()


async def test_without_a_drain_timeout_there_is_no_deadline(stage):
    shutdown = Shutdown(stage.runtime, stage.clock, drain_timeout_s=0)
    shutdown.ask()
    stage.clock.advance(1_000_000)
    assert moments(shutdown) == (True, False)
    shutdown.ask()
    assert moments(shutdown) == (True, True)


async def test_who_waits_is_refused_before_the_listeners_are_told_to_cut(stage, shutdown):
    checkpoint = stage.model()
    with checkpoint.held("run"):
        running = stage.fill()
        await checkpoint.await_for("run", stage.kind.slots)
        queued = stage.say("queued")
        await stage.waiting(1)
        order = []
        queued.add_done_callback(lambda task: order.append("refused"))
        cut = asyncio.ensure_future(shutdown.order.cut.wait())
        cut.add_done_callback(lambda task: order.append("cut"))
        await asyncio.sleep(0)
        shutdown.cut()
        await asyncio.gather(queued, cut, return_exceptions=True)
        assert order[0] == "refused"
    await asyncio.gather(*running, return_exceptions=True)
    shutdown.close()


def test_a_closed_shutdown_leaves_no_timer(serial):
    clock = ManualClock()
    shutdown = Shutdown(serial.runtime, clock, drain_timeout_s=30)
    shutdown.close()
    shutdown.begin()
    shutdown.close()
    assert clock.statistics().pending == ()
