"""Takes turns: of all connections that have sent more than is worked on at once, one goes on in each round of the loop.

A read brings up to 256 KiB, which may be tens of thousands of frames or chunks, and takes seconds to work through. A
limit for each connection alone would not do: what twenty of them do in one round is twenty times as much.
"""

import asyncio
from collections import deque
from collections.abc import Callable


class Turns:
    """The work that waits, in the order in which it came. A piece of work that is not done queues up again."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def queue(self, work: Callable[[], None]) -> None:
        """Have a piece of work done in a later round of the loop; it takes a few milliseconds at most."""
        self._waiting.append(work)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._take_one)

    def _take_one(self) -> None:
        work = self._waiting[0]  # it stays in the queue while it runs, so that what it queues makes no second round
        try:
            work()
        finally:
            self._waiting.popleft()
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._take_one)
