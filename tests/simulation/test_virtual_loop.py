"""The loop in virtual time."""

import asyncio
from contextlib import suppress

import pytest

from antiphon.testing.virtual import StalledError, VirtualClock, VirtualLoop


@pytest.fixture
def loop():
    loop = VirtualLoop(start=0.0)
    yield loop
    loop.close()


def test_an_hour_passes_at_once_and_exactly(loop):
    loop.run(asyncio.sleep(3600))
    assert loop.time() == 3600


def test_timers_of_one_moment_fire_in_the_order_in_which_they_were_made(loop):
    fired = []

    async def main():
        for name in "abc":
            VirtualClock(loop).call_at(5, lambda name=name: fired.append(name))
        VirtualClock(loop).call_at(4, lambda: fired.append("first"))
        await asyncio.sleep(5)

    loop.run(main())
    assert fired == ["first", "a", "b", "c"]


def test_a_timer_that_was_taken_back_neither_fires_nor_moves_the_time(loop):
    async def main():
        VirtualClock(loop).call_at(5, lambda: pytest.fail("it was taken back")).cancel()
        await asyncio.sleep(1)

    loop.run(main())
    assert loop.time() == 1


def test_what_can_never_end_is_told(loop):
    async def main():
        with suppress(asyncio.CancelledError):
            await loop.create_future()

    with pytest.raises(StalledError):
        loop.run(main())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.settle()


def test_time_does_not_pass_while_something_is_ready(loop):
    async def main():
        for _ in range(100):
            await asyncio.sleep(0)

    loop.run(main())
    assert loop.time() == 0
