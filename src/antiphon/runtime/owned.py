"""Tasks that belong to the runtime: a caller may stop waiting for one, and never stops it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class OwnedTasks:
    """Keeps every task that it started until it has ended, and always retrieves its exception."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()  # any result: only the one who started it reads it

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` to its end, whoever waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def join(self) -> None:
        """Wait until nothing runs any more, also what was started meanwhile."""
        while self._running:
            await asyncio.wait(self._running)

    def __len__(self) -> int:
        return len(self._running)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # a caller that left does not hear of it; asyncio need not complain
