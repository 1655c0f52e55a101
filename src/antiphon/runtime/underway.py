"""What runs for a caller, and how it is given up: requests at their engines, streams, live audio. No queue."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from antiphon.admission.gate import Lease
from antiphon.runtime.live import LiveSource
from antiphon.runtime.owned import AbandonedError, OwnedTasks
from antiphon.runtime.resident import Resident, unloaded_by_force
from antiphon.runtime.streams import StreamEnding
from antiphon.runtime.watch import RunWatch
from antiphon.vocabulary.errors import AntiphonError, InvariantError, ShuttingDown

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Admission:
    """A request's lease, the model that it is on, and when it was asked for, in monotonic seconds."""

    resident: Resident
    lease: Lease
    asked: float

    @property
    def queue_s(self) -> float:
        return self.lease.since - self.asked

    @property
    def slot(self) -> int:
        if self.lease.slot is None:
            raise InvariantError(f"{self.lease} has no slot to run in")
        return self.lease.slot


class Underway:
    """The work that has its lease. Once it is cut all of it is told to end, and nothing more begins."""

    def __init__(self, tasks: OwnedTasks) -> None:
        self._tasks = tasks
        self._watches: dict[RunWatch, Resident] = {}
        self._streams: dict[Lease, StreamEnding[Any]] = {}  # of events, or of a batch's results
        self._live: set[LiveSource] = set()
        self._refuses = False
        self._is_cut = False

    async def attend(self, resident: Resident, work: Coroutine[Any, Any, T], watch: RunWatch) -> T:
        """Await owned work on a model; a caller that is cancelled detaches and lets the engine know (rule 1).

        Whatever fails after the cut failed of it, and raises ShuttingDown; so it is with `stop`, and ServerBusy.
        """
        try:
            return await self._tasks.attend(self._reachable(resident, work, watch), watch.told)
        except asyncio.CancelledError:
            watch.cancel()
            raise
        except (AntiphonError, AbandonedError) as fault:
            if watch.told is not None and watch.told.done():
                watch.cancel()  # its caller has its error, so a load that ends late must not be followed by a run
            if self._is_cut:
                raise ShuttingDown from fault
            if watch.was_stopped:
                raise unloaded_by_force(resident.entry.id) from fault
            raise

    @property
    def is_cut(self) -> bool:
        """Whether all of it has been told to end."""
        return self._is_cut

    def require_uncut(self) -> None:
        """Raise AbandonedError where nothing is to begin any more."""
        if self._is_cut:
            raise AbandonedError

    def add_stream(self, lease: Lease, stream: StreamEnding[Any]) -> None:
        """Count an open stream, which holds this lease."""
        self._streams[lease] = stream

    def drop_stream(self, lease: Lease) -> None:
        """The stream is over."""
        del self._streams[lease]

    @contextmanager
    def hearing(self, source: LiveSource) -> Iterator[Callable[[], None]]:
        """Count live audio until what this yields is called, or until the block fails."""
        self._live.add(source)
        if self._refuses:
            source.fail(ShuttingDown())
        drop = partial(self._live.discard, source)
        try:
            yield drop
        except BaseException:
            drop()
            raise

    def refuse(self) -> None:
        """End live audio, which has no end of its own that could be waited for; all else goes on."""
        self._refuses = True
        for source in self._live:
            source.fail(ShuttingDown())

    def cut(self) -> None:
        """Tell every engine that nobody waits any more, and every caller that the server ends."""
        self._is_cut = True
        for watch in self._watches:
            watch.cancel()
        for stream in self._streams.values():
            stream.cut(ShuttingDown())

    def stop(self, resident: Resident) -> None:
        """Tell a model's engine that nobody waits any more, and every caller that the model is unloaded by force."""
        for watch, model in self._watches.items():
            if model is resident:
                watch.stop(partial(unloaded_by_force, resident.entry.id))
        for lease, stream in self._streams.items():
            if lease.waiter.gate == resident.entry.id:
                stream.cut(unloaded_by_force(resident.entry.id))

    async def _reachable(self, resident: Resident, work: Coroutine[Any, Any, T], watch: RunWatch) -> T:
        """Let `cut` and `stop` reach what runs, whoever still waits for it."""
        self._watches[watch] = resident
        try:
            return await work
        finally:
            del self._watches[watch]
