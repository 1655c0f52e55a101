"""The last entries, in memory, and who is told of new ones. It decides nothing, and every call comes on the event loop.

What happens to a request is told by its model's gate (`JournaledGate`), all else by the runtime, as to an observer.
"""

import time
from asyncio import Future
from collections.abc import Callable
from secrets import token_hex

from antiphon.admission.gate import GateState, Lease, Waiter
from antiphon.observability.journal.entries import (
    AnyEntry,
    Changed,
    Died,
    Evicted,
    Failed,
    Held,
    Loaded,
    LoadFailed,
    Opened,
    Queued,
    Registered,
)
from antiphon.observability.records import current_id
from antiphon.ports.clock import Clock
from antiphon.ports.observer import SilentObserver
from antiphon.residency.lifecycle import TRANSITIONS
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.states import EvictionCause, ModelState, Operation

RING_ENTRIES = 20_000
"""How many entries are kept: some 5 MB."""

Head = tuple[int, float, float, str]


class Journal(SilentObserver):
    """Keeps the last `size` entries. `run` tells this run's entries from those of another run of the server."""

    def __init__(
        self, clock: Clock, size: int = RING_ENTRIES, wall: Callable[[], float] = time.time, run: str | None = None
    ) -> None:
        self.run = run or token_hex(4)
        self.last = 0
        self.ended = False
        self.hearers: list[Callable[[AnyEntry], None]] = []
        """Told of every entry; they must neither block nor raise."""
        self._clock = clock
        self._wall = wall
        self._ring: list[AnyEntry | None] = [None] * size
        self._waiting: list[Future[None]] = []
        self._gates: dict[str, Callable[[], GateState]] = {}
        self._holders: dict[str, Callable[[], tuple[Operation | None, str | None]]] = {}
        self._states: dict[str, ModelState] = {}

    @property
    def oldest(self) -> int:
        """The number of the first entry that is still there; after `last` where there is none."""
        return max(1, self.last - len(self._ring) + 1)

    @property
    def position(self) -> str:
        """Where this journal stands, as an event's id."""
        return self.id_of(self.last)

    def id_of(self, seq: int) -> str:
        """An entry's id, which no entry of another run has."""
        return f"{self.run}-{seq}"

    def head(self, model_id: str, now: float) -> Head:
        """What an entry begins with; it must be added at once."""
        self.last += 1
        return self.last, self._wall(), now, model_id

    def add(self, entry: AnyEntry) -> None:
        """Keep an entry, and tell it."""
        self._ring[entry.seq % len(self._ring)] = entry
        for hear in self.hearers:
            hear(entry)
        if self._waiting:
            self._wake()

    def between(self, after: int, limit: int) -> list[AnyEntry]:
        """The entries after this one, `limit` at most; none of them may be gone already."""
        numbers = range(after + 1, min(self.last, after + limit) + 1)
        return [entry for it in numbers if (entry := self._ring[it % len(self._ring)]) is not None]

    def news(self, woken: Future[None]) -> None:
        """Have a future resolved at the next entry, or at the end."""
        self._waiting.append(woken)

    def forget(self, woken: Future[None]) -> None:
        """Nobody waits for it any more."""
        if woken in self._waiting:
            self._waiting.remove(woken)

    def end(self) -> None:
        """Let those who follow end; entries are still kept."""
        self.ended = True
        self._wake()

    def opened(
        self,
        model_id: str,
        state: Callable[[], GateState],
        holder: Callable[[], tuple[Operation | None, str | None]],
    ) -> None:
        """A gate is new. `holder` tells what the model is held for, and by which request."""
        self._gates[model_id] = state
        self._holders[model_id] = holder
        self._states[model_id] = ModelState.UNLOADED
        self.add(Opened(*self.head(model_id, self._clock.now()), state().capacity))

    def standing(self) -> list[AnyEntry]:
        """How every model stands now, as a later file begins."""
        at, now = self._wall(), self._clock.now()
        gates = ((model_id, state()) for model_id, state in self._gates.items())
        return [
            Opened(
                *(self.last, at, now, model_id, gate.capacity, gate.entered, self._states[model_id]),
                tuple(_held(it) for it in gate.leases),
                tuple(_queued(it) for it in gate.waiting),
            )
            for model_id, gate in gates
        ]

    # The observer

    def transitioned(self, model_id: str, before: ModelState, after: ModelState) -> None:
        """A model changed its state."""
        self._states[model_id] = after
        steps = [step for (state, step), leads_to in TRANSITIONS.items() if (state, leads_to) == (before, after)]
        step = str(steps[0]) if len(steps) == 1 else None
        self.add(Changed(*self._now(model_id), before, after, step, *self._holder(model_id)))

    def registered(self, model_id: str) -> None:
        """A model is new, or something else."""
        self.add(Registered(*self._now(model_id), *self._holder(model_id)))

    def loaded(self, model_id: str, load_s: float) -> None:
        """A pool is in use."""
        self.add(Loaded(*self._now(model_id), round(load_s, 6), current_id()))

    def load_failed(self, model_id: str) -> None:
        """A load left nothing."""
        self.add(LoadFailed(*self._now(model_id), current_id()))

    def evicted(self, model_id: str, cause: EvictionCause, newcomer: str | None) -> None:
        """An idle model is out of use."""
        self.add(Evicted(*self._now(model_id), cause, newcomer, current_id()))

    def died(self, model_id: str) -> None:
        """A worker is gone."""
        self.add(Died(*self._now(model_id)))

    def failed(self, model_id: str, what: str, error: BaseException) -> None:
        """Something went wrong; what an engine says of it stays in the log."""
        told = error.message if isinstance(error, AntiphonError) else type(error).__name__
        self.add(Failed(*self._now(model_id), what, told, current_id()))

    def _now(self, model_id: str) -> Head:
        return self.head(model_id, self._clock.now())

    def _holder(self, model_id: str) -> tuple[Operation | None, str | None]:
        holder = self._holders.get(model_id)
        return (None, current_id()) if holder is None else holder()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for woken in waiting:
            if not woken.done():
                woken.set_result(None)


def _held(lease: Lease) -> Held:
    waiter = lease.waiter
    return Held(waiter.number, waiter.operation, waiter.since, lease.since, lease.slot, _deadline(waiter))


def _queued(waiter: Waiter) -> Queued:
    return Queued(waiter.number, waiter.operation, waiter.since, _deadline(waiter))


def _deadline(waiter: Waiter) -> float | None:
    return None if waiter.deadline == float("inf") else waiter.deadline
