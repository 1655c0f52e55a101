"""An event loop whose time is virtual: when nothing is ready it jumps to the next timer. It has no selector.

So a history of an hour takes milliseconds, and is the same each time: nothing but the loop's own order decides. What
needs a thread, a socket or a subprocess cannot run on it.
"""

import asyncio
import contextvars
import heapq
from asyncio.events import _set_running_loop  # what asyncio offers to loops that are not its own
from collections import deque
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, TypeVar, TypeVarTuple

from antiphon.ports.clock import Timer

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class StalledError(Exception):
    """Nothing is ready and no timer is set, and what was to be run has not ended: it waits for ever."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in order, and moves its time on only when there are none. Units: seconds.

    `before_step` is called before each callback: a test may look at the world there, or intervene.
    """

    def __init__(self, start: float = 1000.0) -> None:
        super().__init__()
        self._moment = start
        self._due: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._order = count()
        self.before_step: Callable[[], None] | None = None
        self.complaints: list[str] = []
        self.set_exception_handler(lambda _loop, context: self.complaints.append(repr(context)))

    def time(self) -> float:
        """The virtual moment."""
        return self._moment

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Call back after those that are due already."""
        handle = asyncio.Handle(callback, args, self, context)
        self._due.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """The same: a finaliser may call it, and there is no other thread."""
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at that moment; timers of one moment fire in the order in which they were made."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; what it leaves running is closed with the loop.

        Raises StalledError where it can never end.
        """
        _set_running_loop(self)
        try:
            task = self.create_task(main)
            while not task.done():
                self._step()
            return task.result()
        finally:
            _set_running_loop(None)

    def settle(self) -> None:
        """Run what is due, and leave the time where it is; to be called outside `run`."""
        _set_running_loop(self)
        try:
            while self._due:
                self._step()
        finally:
            _set_running_loop(None)

    def _step(self) -> None:
        while not self._due:
            self._jump()
        handle = self._due.popleft()
        if not handle.cancelled():
            if self.before_step is not None:
                self.before_step()
            handle._run()  # noqa: SLF001 (as every loop does)

    def _jump(self) -> None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            raise StalledError("nothing is ready, and no timer is set")
        self._moment = max(self._moment, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._moment:
            self._due.append(heapq.heappop(self._timers)[2])

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Leave a cancelled timer where it is: it is skipped when its moment comes."""


class VirtualClock:
    """A `Clock` that tells the time of a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        """The loop's moment, in seconds."""
        return self._loop.time()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back on the loop at that moment."""
        return self._loop.call_at(when, callback)
