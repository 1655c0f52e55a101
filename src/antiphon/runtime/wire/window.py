"""How far a producer may be ahead of whoever takes what it makes."""

import threading

WINDOW = 8
"""Events that an engine may be ahead of the reader of its stream."""


class Window:
    """Credits of one stream; the producer, a thread, waits in `take`, the others call from anywhere."""

    def __init__(self) -> None:
        self._credits = threading.Semaphore(WINDOW)
        self.left = False

    def take(self) -> bool:
        """Wait for a credit; False once nobody takes any more."""
        self._credits.acquire()
        return not self.left

    def give(self, count: int = 1) -> None:
        """Let the producer go on."""
        self._credits.release(count)

    def leave(self) -> None:
        """Take no more, and wake the producer so that it hears of it."""
        self.left = True
        self._credits.release()
