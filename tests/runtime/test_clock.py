"""The loop's own time, on both kinds of loop."""

import asyncio

import pytest
import uvloop

from antiphon.runtime.clock import LoopClock


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_call_never_comes_before_its_time(make_loop):
    async def called_at():
        clock = LoopClock()
        done = asyncio.Event()
        calls = []

        def call(when):
            calls.append(clock.now() - when)
            if len(calls) == 100:
                done.set()

        start = clock.now()
        for tenths_of_ms in range(100):
            when = start + tenths_of_ms / 10_000
            clock.call_at(when, lambda when=when: call(when))
        await done.wait()
        return calls

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert min(runner.run(called_at())) >= 0


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_call_that_was_taken_back_does_not_come(make_loop):
    async def called():
        clock = LoopClock()
        calls = []
        clock.call_at(clock.now(), lambda: calls.append("taken back")).cancel()
        done = asyncio.Event()
        clock.call_at(clock.now() + 0.001, done.set)
        await done.wait()
        return calls

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(called()) == []
