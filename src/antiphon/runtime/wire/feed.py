"""Live audio on its way into an engine's thread, which waits for it. It knows no event loop and no wire."""

from collections.abc import Callable
from queue import SimpleQueue
from typing import Self

from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import AntiphonError


class Feed:
    """The iterator that a session gets: each step calls `ask` and waits until something is put in, from any thread."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._inbox: SimpleQueue[AudioChunk | AntiphonError | None] = SimpleQueue()
        self._is_over = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AudioChunk:
        """The next piece; raises the fault that the audio ended in, once."""
        if self._is_over:
            raise StopIteration
        self._ask()
        arrived = self._inbox.get()
        if isinstance(arrived, AudioChunk):
            return arrived
        self._is_over = True
        if arrived is None:
            raise StopIteration
        try:
            raise arrived
        finally:
            del arrived  # or it would refer to itself through this frame

    def put(self, chunk: AudioChunk) -> None:
        """Give the engine what it asked for."""
        self._inbox.put(chunk)

    def end(self, fault: AntiphonError | None = None) -> None:
        """There is no more; a fault says that there should be."""
        self._inbox.put(fault)
