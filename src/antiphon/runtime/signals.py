"""The signals that ask a process to stop. What comes of it is not known here."""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Protocol, Self

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSource(Protocol):
    """Where a server is asked to stop."""

    def tell(self, ask: Callable[[], None]) -> None:
        """Have the running loop call `ask`, once or twice, as people press Ctrl-C."""
        ...


class StopSignals:
    """Takes SIGINT and SIGTERM for the length of a block; to be entered in the main thread.

    Enter it first of all: as process 1, where no signal has a default action, one that comes before would be lost.
    Once one has come they are ignored after the block, which the process is to leave with its own exit code.
    """

    def __init__(self) -> None:
        self._heard = 0
        self._ask: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._hear) for number in STOP_SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, action in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._heard else action)

    def tell(self, ask: Callable[[], None]) -> None:
        """Have the running loop call `ask` for every signal, also for those that have come already."""
        self._loop, self._ask = asyncio.get_running_loop(), ask
        for _ in range(self._heard):
            self._loop.call_soon(ask)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        """Runs between two steps of the main thread, so all that it does is schedule."""
        del number, frame
        self._heard += 1
        if self._loop is not None and self._ask is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ask)
