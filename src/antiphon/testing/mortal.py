"""The life of a simulated host: its calls wait in it, and all fail at once when it ends. It knows no model."""

import asyncio
from collections.abc import Callable

from antiphon.vocabulary.errors import WorkerDied


class Mortal:
    """The life of a host: calls wait in it, and all of them fail at once when it ends. `kill` after the end is none."""

    def __init__(self, on_death: Callable[[], None]) -> None:
        self.dead = False
        self.gone = False
        """It was let go of in order; nobody is told of a death after that."""
        self._on_death = on_death
        self._waiting: dict[asyncio.Future[None], None] = {}  # in order, so that a history is the same each time

    async def wait(self, until: float | asyncio.Event) -> None:
        """Wait so many seconds, or for an event; raises WorkerDied where the end comes first."""
        self.require_alive()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        if isinstance(until, asyncio.Event):
            waiter = loop.create_task(until.wait())
            waiter.add_done_callback(lambda _: _settle(future))
            stop: Callable[[], object] = waiter.cancel
        else:
            stop = loop.call_later(until, _settle, future).cancel
        self._waiting[future] = None
        try:
            await future
        finally:
            stop()
            self._waiting.pop(future, None)

    def die(self) -> None:
        """End: fail what waits, then tell."""
        if self.dead or self.gone:
            return
        self.dead = True
        for future in self._waiting:
            if not future.done():
                future.set_exception(_death())
        self._waiting.clear()
        self._on_death()

    def require_alive(self) -> None:
        """Raise WorkerDied after the end."""
        if self.dead:
            raise _death()


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _death() -> WorkerDied:
    return WorkerDied("the simulated engine has died")
