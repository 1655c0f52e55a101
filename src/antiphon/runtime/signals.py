"""The signals that ask a process to stop. What comes of it is not known here."""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Protocol, Self

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""SIGHUP is among them because a terminal that is closed sends it, and because nothing here could be read again."""


class StopSource(Protocol):
    """Where a server is asked to stop."""

    def tell(self, ask: Callable[[], None]) -> None:
        """Have the running loop call `ask`, once or twice, as people press Ctrl-C."""
        ...


class StopSignals:
    """Takes SIGINT, SIGTERM and SIGHUP for the length of a block; to be entered in the main thread.

    Enter it first of all: as process 1, where no signal has a default action, one that comes before would be lost.
    Once one has come they are ignored after the block, which the process is to leave with its own exit code.
    """

    def __init__(self) -> None:
        self._heard = 0
        self._ask: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        heeded = [number for number in STOP_SIGNALS if not _is_nohup(number)]
        self._before = {number: signal.signal(number, self._hear) for number in heeded}
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
        del frame
        if number == signal.SIGHUP:  # a terminal that closes often sends two, and the second is not a person's hurry
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._heard += 1
        if self._loop is not None and self._ask is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ask)


def _is_nohup(number: signal.Signals) -> bool:
    """Whether the process was started by nohup or the like, to outlive its terminal."""
    return number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
