"""How a command that starts processes ends when it is told to: as one that is interrupted does. It knows no process."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Have SIGTERM and SIGHUP leave the block by SystemExit, so that it closes all it has opened; for the main thread.

    Without it the command would be gone at once, and what it has started would not. A second signal changes nothing,
    and SIGHUP stays ignored if it is, as under nohup.
    """
    heeded = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heeded.append(signal.SIGHUP)
    before = {number: signal.signal(number, _leave) for number in heeded}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    for ignored in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    raise SystemExit(128 + number)
