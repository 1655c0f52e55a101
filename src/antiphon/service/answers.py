"""What answers that come piece by piece have in common; what a piece is, each of them says itself."""

from typing import Generic, Self, TypeVar

from antiphon.runtime.api import OpenStream, Timing
from antiphon.vocabulary.tasks import Task

T = TypeVar("T")


class LeasedAnswer(Generic[T]):
    """An answer over a stream of the runtime's. It holds a lease: close it."""

    def __init__(self, stream: OpenStream[T]) -> None:
        self._stream = stream

    @property
    def timing(self) -> Timing:
        """Where the time went so far."""
        return self._stream.timing

    @property
    def sample_rate(self) -> int:
        """The rate of the audio that comes, and of positions and spans, in Hz."""
        return self._stream.facts.sample_rate

    @property
    def task(self) -> Task:
        """What the model that answers is for."""
        return self._stream.facts.task

    def __aiter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        """Stop the engine and give the slot back."""
        await self._stream.aclose()
