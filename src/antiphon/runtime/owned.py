"""Tasks that belong to the runtime: a caller may stop waiting for one, and never stops it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from antiphon.vocabulary.errors import AntiphonError

T = TypeVar("T")

Told: TypeAlias = asyncio.Future[Callable[[], AntiphonError]]
"""Resolved when a caller need not wait any longer, with what makes the fault that it gets."""

log = logging.getLogger(__name__)


class AbandonedError(Exception):
    """Work ended early because its caller has left."""


class OwnedTasks:
    """Keeps every task that it started until it has ended, and always retrieves its exception."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()  # any result: only the one who started it reads it
        self._none_runs = asyncio.Event()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` to its end, whoever waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        self._none_runs.clear()
        task.add_done_callback(self._ended)
        return task

    async def attend(self, work: Coroutine[Any, Any, T], told: Told | None = None) -> T:
        """Run `work` and wait for it; a caller that is cancelled leaves it running, and its faults to the log.

        So does one that is `told` not to wait any longer, and gets the fault that this makes.
        """
        task = self.start(work)
        try:
            if told is None:
                return await asyncio.shield(task)
            await either(task, told)
            if not told.done():
                return task.result()
            task.add_done_callback(log_unheard)
            fault = told.result()
            raise fault()
        except asyncio.CancelledError:
            task.add_done_callback(log_unheard)
            raise
        finally:
            del task  # its exception must not refer to itself through this frame

    async def join(self) -> None:
        """Wait until nothing runs any more, also what was started meanwhile."""
        while self._running:
            # Not `asyncio.wait`, which keeps all of them until the last has ended: among their results may be a stream
            # that nobody takes any more, and only when that is dropped does its lease end (phase.deferred).
            await self._none_runs.wait()

    def __len__(self) -> int:
        return len(self._running)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not self._running:
            self._none_runs.set()
        if not task.cancelled():
            task.exception()  # asyncio need not complain where nobody asks for it


async def either(first: "asyncio.Future[Any]", second: "asyncio.Future[Any]") -> None:
    """Wait until one of two has ended; neither is cancelled, and neither is kept, as `asyncio.wait` would keep both."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wake = partial(_wake, ended)
    first.add_done_callback(wake)
    second.add_done_callback(wake)
    try:
        await ended
    finally:
        first.remove_done_callback(wake)
        second.remove_done_callback(wake)
        del first, second


def _wake(sleeper: "asyncio.Future[None]", _: object) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def tell(told: Told | None, fault: Callable[[], AntiphonError]) -> None:
    """Let a caller go with a fault, unless it is gone."""
    if told is not None and not told.done():
        told.set_result(fault)


async def all_of(tasks: "Sequence[asyncio.Task[None]]") -> None:
    """Wait until all have ended, then raise the first fault: no one's failure keeps another from being waited for."""
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        task.result()


def log_unheard(task: asyncio.Task[Any]) -> None:
    """Write the fault of a task that nobody waits for into the log: a done callback."""
    fault = None if task.cancelled() else task.exception()
    if fault is not None and not isinstance(fault, AbandonedError):
        log.warning("nobody waits for: %s", fault, exc_info=None if isinstance(fault, AntiphonError) else fault)
