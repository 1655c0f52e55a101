"""The event loop's own time."""

import asyncio
import time
from collections.abc import Callable

from antiphon.ports.clock import Timer


class LoopClock:
    """Tells `time.monotonic`, which is what asyncio's loops count in, and schedules on the running loop."""

    def now(self) -> float:
        """The present moment, in monotonic seconds."""
        return time.monotonic()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back once `when` has come. The loop may fire early by its resolution: so it is asked again then."""
        loop = asyncio.get_running_loop()
        return loop.call_later(max(0.0, when - time.monotonic()), callback)
