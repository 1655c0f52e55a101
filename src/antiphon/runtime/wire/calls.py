"""One call to a process: who waits for its answers, and which cancellations are told to it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from antiphon.runtime.wire.faults import Failed, error_of
from antiphon.runtime.wire.parcels import Parcel
from antiphon.vocabulary.errors import WorkerDied
from antiphon.vocabulary.tasks import Cancellation

Told = TypeVar("Told")
Told_contra = TypeVar("Told_contra", contravariant=True)


class Listener(Protocol[Told_contra]):
    """Whoever waits for the answers to one call."""

    def hear(self, answer: Told_contra, parcel: Parcel) -> None: ...
    def lose(self, death: str) -> None:
        """There will be no more answers: the process has ended, as the words say."""
        ...


class Question(Generic[Told]):
    """A call with one answer, and the sounds beside it; a `Failed` is raised as the error that it is."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[tuple[Told, Parcel]] = asyncio.get_running_loop().create_future()

    def hear(self, answer: Told, parcel: Parcel) -> None:
        """Take the answer."""
        if self.answer.done():
            parcel.close()
        elif isinstance(answer, Failed):
            self.answer.set_exception(error_of(answer))
        else:
            self.answer.set_result((answer, parcel))

    def lose(self, death: str) -> None:
        """Fail."""
        if not self.answer.done():
            self.answer.set_exception(worker_died(death))


class Following:
    """Cancellations that are followed until this is closed."""

    def __init__(self, cancellations: Sequence[Cancellation], followers: Sequence[Callable[[], None]]) -> None:
        self._pairs = tuple(zip(cancellations, followers, strict=True))
        for cancellation, follower in self._pairs:
            cancellation.follow(follower)

    def close(self) -> None:
        """Follow no more; harmless when done twice."""
        for cancellation, follower in self._pairs:
            cancellation.unfollow(follower)
        self._pairs = ()


def worker_died(death: str) -> WorkerDied:
    """What those are told who wait for a process that has ended."""
    return WorkerDied(f"the model's worker process has ended: {death}")
