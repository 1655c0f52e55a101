"""Time behind a seam: it tells the time and it schedules, so that a test can own both."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that was scheduled and can be taken back."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Monotonic seconds."""

    def now(self) -> float:
        """The present moment, in monotonic seconds."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back on the event loop once `when` has come, never before."""
        ...
