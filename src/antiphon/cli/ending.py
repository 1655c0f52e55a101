"""How a command that starts processes ends when it is told to: as one that is interrupted does. It knows no process."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Have SIGTERM leave the block by SystemExit, so that whatever it has opened is closed; for the main thread.

    Without it the command would be gone at once, and what it has started would not. A second one changes nothing.
    """
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)
