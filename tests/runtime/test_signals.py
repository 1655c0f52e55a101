"""Stop signals: none is lost before somebody asks for them, and none ends the process by its own action."""

import asyncio
import os
import signal

import pytest

from antiphon.runtime.signals import STOP_SIGNALS, StopSignals


@pytest.fixture(autouse=True)
def handlers_as_before():
    """The test's own process goes on with its own."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, action in before.items():
        signal.signal(number, action)


def send(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


async def asked(signals, times):
    """Wait until it was asked to stop so many times."""
    count = asyncio.Semaphore(0)
    signals.tell(count.release)
    for _ in range(times):
        await count.acquire()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_is_told(number):
    with StopSignals() as signals:
        waiting = asyncio.ensure_future(asked(signals, 2))
        await asyncio.sleep(0)
        send(number)
        send(number)
        await waiting


async def test_the_second_hangup_of_a_terminal_that_closes_asks_for_nothing_more():
    asked_for = []
    with StopSignals() as signals:
        signals.tell(lambda: asked_for.append("stop"))
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
            send(number)
        await asyncio.sleep(0)
    assert asked_for == ["stop", "stop"]


def test_a_hangup_that_nohup_has_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with StopSignals():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


async def test_a_signal_before_anybody_asks_is_told_then():
    with StopSignals() as signals:
        send()
        await asked(signals, 1)


def test_a_signal_after_the_end_is_ignored_where_one_came_before():
    with StopSignals():
        send()
    send()
    send(signal.SIGINT)


def test_without_a_signal_all_is_as_before():
    before = [signal.getsignal(number) for number in STOP_SIGNALS]
    with StopSignals():
        pass
    assert [signal.getsignal(number) for number in STOP_SIGNALS] == before


def test_a_signal_for_a_loop_that_has_closed_is_harmless():
    with StopSignals() as signals:

        async def ask():
            signals.tell(lambda: None)

        asyncio.run(ask())
        send()
