"""The event loop's own time."""

import asyncio
import time
from collections.abc import Callable

from antiphon.ports.clock import Timer

_EARLY_S = 0.002
"""How far before its time a loop may fire: uvloop rounds to milliseconds, twice."""


class LoopClock:
    """Tells `time.monotonic`, which is what asyncio's loops count in, and schedules on the running loop."""

    def now(self) -> float:
        """The present moment, in monotonic seconds."""
        return time.monotonic()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back on the running loop once `when` has come, and a little after it."""
        loop = asyncio.get_running_loop()
        return loop.call_later(max(0.0, when - time.monotonic()) + _EARLY_S, callback)
