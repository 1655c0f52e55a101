"""Time that a test owns: it stands still until `advance`, and it knows no event loop."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count


@dataclass(frozen=True, slots=True)
class ClockStatistics:
    """A snapshot of a `ManualClock`. Units: `now` and `pending` (the moments of the open timers) in seconds."""

    now: float
    pending: tuple[float, ...]
    fired: int


@dataclass(order=True, slots=True)
class ManualTimer:
    """One call to come: timers of one moment fire in the order in which they were made."""

    when: float
    order: int
    callback: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Take the call back; harmless after it was made."""
        self.cancelled = True


class ManualClock:
    """A `Clock` that moves only when it is told to. Units: seconds."""

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start
        self._timers: list[ManualTimer] = []
        self._order = count()
        self._fired = 0

    def now(self) -> float:
        """The moment at which this clock stands."""
        return self._now

    def call_at(self, when: float, callback: Callable[[], None]) -> ManualTimer:
        """Have `advance` make the call once it reaches `when`; a moment in the past waits for the next `advance`."""
        timer = ManualTimer(when, next(self._order), callback)
        heapq.heappush(self._timers, timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Move on, and make the calls that are due on the way, each at its own moment, new ones included.

        Raises ValueError for a move back. What a call raises ends the move at that call's moment.
        """
        if seconds < 0:
            raise ValueError("time does not run backwards")
        target = self._now + seconds
        while self._timers and self._timers[0].when <= target:
            timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            self._now = max(self._now, timer.when)
            self._fired += 1
            timer.callback()
        self._now = target

    def statistics(self) -> ClockStatistics:
        """What is still to come, and how many calls were made."""
        pending = tuple(sorted(timer.when for timer in self._timers if not timer.cancelled))
        return ClockStatistics(self._now, pending, self._fired)
