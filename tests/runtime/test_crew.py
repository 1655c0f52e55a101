"""Blocking calls on threads of our own."""

import asyncio
import gc
import threading
import weakref
from contextlib import suppress

import pytest

from antiphon.runtime.hosts.crew import Crew, report


class Weighty:
    """Something whose end can be watched."""


async def test_a_call_returns_what_its_function_returns_from_another_thread():
    crew = Crew("test")
    assert await crew.call(threading.get_ident) != threading.get_ident()
    crew.stop()


async def test_a_crew_of_one_makes_its_calls_one_after_another():
    crew, gate, made = Crew("test"), threading.Event(), []

    def first():
        gate.wait(30)
        made.append("first")

    calls = [crew.call(first), crew.call(made.append, "second")]
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*tasks)
    crew.stop()
    assert made == ["first", "second"]


@pytest.mark.parametrize("kind", [ZeroDivisionError, SystemExit, KeyboardInterrupt])
async def test_what_a_call_raises_arrives_and_the_thread_goes_on(kind):
    def fail():
        raise kind

    async def outcome():
        try:
            await crew.call(fail)
        except BaseException as error:  # noqa: BLE001 (which one it is, is asked)
            return type(error)

    crew = Crew("test")
    # Awaited here, in no task of its own: asyncio lets SystemExit and KeyboardInterrupt of a task end the whole loop.
    assert await outcome() is kind
    assert await crew.call(len, "abc") == 3
    crew.stop()


async def test_a_call_that_raises_stop_iteration_is_an_error_like_any_other():
    crew = Crew("test")
    with pytest.raises(RuntimeError, match="StopIteration"):
        await crew.call(next, iter(()))
    crew.stop()


async def test_a_caller_that_is_cancelled_leaves_the_call_running():
    crew, begun, gate, made = Crew("test"), threading.Event(), threading.Event(), []

    def slow():
        begun.set()
        gate.wait(30)
        made.append("slow")

    task = asyncio.ensure_future(crew.call(slow))
    await asyncio.sleep(0)
    begun.wait(30)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert made == []
    gate.set()
    await crew.call(made.append, "next")
    assert made == ["slow", "next"]
    crew.stop()


async def test_a_failing_call_whose_caller_was_cancelled_is_nobodys_fault():
    crew, begun, gate = Crew("test"), threading.Event(), threading.Event()

    def fail():
        begun.set()
        gate.wait(30)
        raise ZeroDivisionError

    task = asyncio.ensure_future(crew.call(fail))
    await asyncio.sleep(0)
    begun.wait(30)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    gate.set()
    assert await crew.call(len, "") == 0
    crew.stop()


@pytest.mark.parametrize("fails", [False, True])
async def test_a_call_keeps_its_arguments_no_longer_than_it_or_its_fault_lives(fails):
    def use(weighty):
        if fails:
            raise ZeroDivisionError

    crew, weighty = Crew("test"), Weighty()
    watched = weakref.ref(weighty)
    gc.disable()
    try:
        with suppress(ZeroDivisionError):
            await crew.call(use, weighty)
        del weighty
        await crew.call(len, "")  # the thread is through with the call before
        assert watched() is None
    finally:
        gc.enable()
    crew.stop()


async def test_a_stopped_crew_ends_its_threads_after_what_was_asked_of_it():
    crew = Crew("ending", 2)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("ending/")]
    answer = asyncio.ensure_future(crew.call(len, "abc"))
    await asyncio.sleep(0)
    crew.stop()
    assert await answer == 3
    for thread in threads:
        thread.join(30)
    assert len(threads) == 2
    assert not any(thread.is_alive() for thread in threads)


def test_a_loop_that_has_closed_has_nobody_to_tell():
    loop = asyncio.new_event_loop()
    loop.close()
    report(loop, print, "nobody")
