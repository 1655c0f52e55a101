"""A stream or a batch and the lease that it holds, which end together whatever becomes of its reader."""

import asyncio
import logging
import weakref
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, Self, TypeVar

from antiphon.ports.clock import Clock
from antiphon.ports.host import Flow
from antiphon.runtime.api import Timing
from antiphon.runtime.hosts.crew import report
from antiphon.runtime.owned import OwnedTasks, log_unheard
from antiphon.runtime.readers import ReaderWatch
from antiphon.vocabulary.errors import AntiphonError, RequestTimeout
from antiphon.vocabulary.spec import SessionFacts

log = logging.getLogger(__name__)

T = TypeVar("T")


class LeasedStream(Generic[T]):
    """`OpenStream` over what a host yields: events, or the results of a batch.

    Whoever holds it closes it. If it is dropped unclosed, its finaliser, which may run in any thread, has the event
    loop close it (phase.deferred).
    """

    def __init__(self, ending: "StreamEnding[T]", facts: SessionFacts, queue_s: float, load_s: float) -> None:
        self.facts = facts
        self._ending = ending
        self._queue_s = queue_s
        self._load_s = load_s
        self._backstop = weakref.finalize(self, ending.schedule)
        self._backstop.atexit = False

    @property
    def timing(self) -> Timing:
        """Where the time went so far."""
        return Timing(self._queue_s, self._load_s, self._ending.run_s())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """The next event; for a stream that was cut it raises why, so that nobody takes it for a whole one."""
        self._ending.reader.asked()
        try:
            event = await anext(self._ending.events)
        except (StopAsyncIteration, AntiphonError):  # its host may have been killed because it was cut
            self._ending.require_uncut()
            raise
        self._ending.require_uncut()
        self._ending.reader.give(event)
        return event

    async def aclose(self) -> None:
        """Stop the engine and release the lease; a caller that is cancelled here does not cut that short."""
        self._backstop.detach()
        await asyncio.shield(self._ending.begin())


class StreamEnding(Generic[T]):
    """What must happen when a stream is over; it does not refer to the `LeasedStream`, so that one can be dropped.

    `over` is called once, when the engine is quiescent, with `run_s` to ask how long it ran: it releases the lease.
    `watch` makes what limits the reader's time, of what to call once that is over.
    """

    def __init__(
        self,
        events: Flow[T],
        over: Callable[[Callable[[], float]], None],
        tasks: OwnedTasks,
        clock: Clock,
        watch: Callable[[Callable[[], None]], ReaderWatch],
    ) -> None:
        self.events = events
        self.reader = watch(self._cut_slow_reader)
        self._over = over
        self._tasks = tasks
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()  # it is this request's stream, whoever ends it, and wherever it is dropped
        self._started = clock.now()
        self._ended: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._fault: AntiphonError | None = None

    def cut(self, fault: AntiphonError) -> None:
        """End the stream before its end, also while its reader does something else; it is told why when it asks."""
        if self._ended is None:
            self._fault = fault
            self.begin()

    def _cut_slow_reader(self) -> None:
        fault = RequestTimeout("the answer was read too slowly while others waited (slow_reader_timeout_ms)")
        self._context.run(log.warning, "a stream ends early: %s", fault)
        self.cut(fault)

    def require_uncut(self) -> None:
        """Raise what the stream was cut for."""
        if self._fault is not None:
            raise self._fault

    def run_s(self) -> float:
        """How long the engine has run, in seconds."""
        return (self._clock.now() if self._ended is None else self._ended) - self._started

    def begin(self) -> "asyncio.Task[None]":
        """End the stream, once, in a task of the runtime's own."""
        if self._task is None:
            self._task = self._context.run(self._tasks.start, self._end())
            self._task.add_done_callback(log_unheard)
        return self._task

    def schedule(self) -> None:
        """Have the event loop end the stream; may be called from any thread."""
        report(self._loop, self.begin)

    async def _end(self) -> None:
        self.reader.asked()  # it has no time to keep to any more
        try:
            await self.events.aclose()
        finally:
            try:
                self._ended = self._clock.now()
            finally:
                self._over(self.run_s)
