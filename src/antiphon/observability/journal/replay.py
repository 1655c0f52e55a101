"""A journal made to happen again: its calls, with their `now`, at gates of the real core, which must decide the same.

No time passes and nothing waits. Beside what was decided, it looks at what must always hold: the first
complaint ends a replay.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from antiphon.admission.gate import Decision, Gate, GateState, Granted, Lease, Waiter
from antiphon.observability.journal.entries import (
    AnyEntry,
    Changed,
    CoreCall,
    Decided,
    Died,
    Dismissed,
    Evicted,
    Expired,
    Failed,
    Grant,
    Header,
    Held,
    Loaded,
    LoadFailed,
    Opened,
    Queued,
    Registered,
    Released,
    Resized,
    Submitted,
    Tried,
    Withdrawn,
)
from antiphon.residency.eviction import RESIDENT
from antiphon.residency.lifecycle import TRANSITIONS
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import ModelState, Operation


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay went another way: at the entry of this place, from 0, and what was wrong there."""

    place: int
    complaint: str


def replay(entries: Iterable[AnyEntry], max_loaded_models: int = 0, after: int = 0) -> Difference | None:
    """The first difference, None where all of it happens again; the entries follow the one numbered `after`."""
    house = ReplayedHouse(max_loaded_models, after)
    for place, entry in enumerate(entries):
        complaint = house.complaint_of(entry)
        if complaint is not None:
            return Difference(place, complaint)
    return None


class ReplayedHouse:
    """The gates and the states of all models, as far as a journal has been replayed."""

    def __init__(self, max_loaded_models: int = 0, after: int = 0) -> None:
        self._max_loaded_models = max_loaded_models
        self._seq = after
        self._now = -math.inf
        self._models: dict[str, _Model] = {}

    @classmethod
    def of(cls, header: Header) -> "ReplayedHouse":
        """The one that a file's first line tells of."""
        return cls(header.max_loaded_models, header.seq)

    def complaint_of(self, entry: AnyEntry) -> str | None:
        """Have an entry happen; says what is wrong with it, after which nothing more can be replayed."""
        if isinstance(entry, Opened) and entry.seq == self._seq and entry.model not in self._models:
            pass  # how a model stood where the file begins
        elif entry.seq != self._seq + 1:
            return f"entry {self._seq + 1} is missing: the next one is {entry.seq}"
        if entry.now < self._now:
            return f"time runs backwards, from {self._now} to {entry.now}"
        self._seq, self._now = entry.seq, entry.now
        try:
            return self._happen(entry)
        except InvariantError as refusal:
            return f"the core refuses the call: {refusal}"

    def _happen(self, entry: AnyEntry) -> str | None:
        if isinstance(entry, Opened):
            self._models[entry.model] = _Model(entry)
            return None
        if isinstance(entry, Registered | Loaded | LoadFailed | Died | Failed):
            return None  # told of, and none of the core's; a model may fail before it has a gate
        model = self._models.get(entry.model)
        if model is None:
            return f"the journal does not say when the gate of {entry.model} was opened"
        match entry:
            case Changed():
                return model.change(entry) or self._overfull()
            case Evicted():
                held = model.held
                return None if held is Operation.EVICT else f"it was evicted while it was held for {held}"
            case _:
                return model.call(entry)

    def _overfull(self) -> str | None:
        resident = sum(model.state in RESIDENT for model in self._models.values())
        if self._max_loaded_models and resident > self._max_loaded_models:
            return f"{resident} models are resident, and {self._max_loaded_models} may be"
        return None


class _Model:
    """One model's gate, its claims by number, and its state."""

    def __init__(self, entry: Opened) -> None:
        leases = tuple(_lease(entry.model, it) for it in entry.leases)
        waiting = tuple(_waiter(entry.model, it) for it in entry.queue)
        self.state = entry.state
        self._gate = Gate.restore(GateState(entry.model, entry.slots, entry.next, leases, waiting))
        self._waiters = {it.number: it for it in waiting}
        self._leases = {it.waiter.number: it for it in leases}
        self._last_granted = max(self._leases, default=-1)

    @property
    def held(self) -> Operation | None:
        """What the model is held for as a whole, or what runs on it."""
        return next((it.waiter.operation for it in self._leases.values()), None)

    def change(self, entry: Changed) -> str | None:
        """Take a step of the lifecycle."""
        before, after = entry.before, entry.after
        if before is not self.state:
            return f"it was {before}, says the entry, and it is {self.state}"
        steps = [step for (state, step), leads_to in TRANSITIONS.items() if (state, leads_to) == (before, after)]
        if not steps or (entry.step is not None and entry.step not in steps):
            return f"no step {entry.step or ''} leads from {before} to {after}"
        if after is ModelState.RECONFIGURING and self.held is not Operation.LOAD:
            return f"it is reconfigured while it is held for {self.held}"
        if after is ModelState.LOADING and self.held is None:
            return "it is loaded while nobody has a lease"
        self.state = after
        return None

    def call(self, entry: CoreCall) -> str | None:
        """Call the gate, and compare."""
        decisions, complaint = self._call(entry)
        if complaint is not None:
            return complaint
        told, noted = [_plain(it) for it in decisions], [_noted(it) for it in entry.decided]
        if told != noted:
            return f"decided was {_words(noted)}; the core decides {_words(told)}"
        return self._violated(decisions, entry.now)

    def _call(self, entry: CoreCall) -> tuple[list[Decision], str | None]:
        gate, now = self._gate, entry.now
        match entry:
            case Submitted(waiter=number):
                waiter, decisions = gate.submit(entry.operation, now, entry.timeout_s)
                self._waiters[waiter.number] = waiter
                return decisions, _numbered(number, waiter.number)
            case Tried(waiter=number):
                lease, decisions = gate.try_exclusive(entry.operation, now)
                if lease is None:
                    return decisions, None if number is None else "it was had whole; the core says it is not idle"
                self._leases[lease.waiter.number] = lease
                return decisions, _numbered(number, lease.waiter.number)
            case Released(waiter=number):
                if (lease := self._leases.pop(number, None)) is None:
                    return [], f"claim {number} has no lease to give back"
                return gate.release(lease, now), None
            case Resized(waiter=number):
                if (lease := self._leases.get(number)) is None:
                    return [], f"claim {number} has no lease"
                return gate.resize(lease, entry.slots, now), None
            case Withdrawn(waiter=number):
                if (leaver := self._waiters.pop(number, None)) is None:
                    return [], f"claim {number} does not wait"
                return gate.withdraw(leaver, now), None
            case Dismissed(spared=spared):
                return gate.dismiss(now, [it for it in self._waiters.values() if it.number in spared]), None
            case Expired():
                return gate.expire(now), None
            case unknown:
                assert_never(unknown)

    def _violated(self, decisions: Iterable[Decision], now: float) -> str | None:
        """What must hold of decisions, whatever they are: in turn, in time, and within what there is."""
        for decision in decisions:
            if not isinstance(decision, Granted):
                del self._waiters[decision.waiter.number]
                continue
            lease = decision.lease
            waiter = lease.waiter
            del self._waiters[waiter.number]
            self._leases[waiter.number] = lease
            if waiter.number <= self._last_granted:
                return f"claim {waiter.number} was granted after {self._last_granted}"
            if waiter.deadline <= now:
                return f"claim {waiter.number} was granted after its time"
            self._last_granted = waiter.number
        slots = [lease.slot for lease in self._leases.values()]
        if len(slots) != len(set(slots)) or len(slots) > self._gate.capacity or (None in slots and len(slots) > 1):
            return f"leased are {slots}, of {self._gate.capacity} slots"
        return None


def _lease(model: str, held: Held) -> Lease:
    return Lease(_claim(model, held.waiter, held.operation, held.entered, held.deadline), held.slot, held.since)


def _waiter(model: str, queued: Queued) -> Waiter:
    return _claim(model, queued.waiter, queued.operation, queued.entered, queued.deadline)


def _claim(model: str, number: int, operation: Operation, entered: float, deadline: float | None) -> Waiter:
    return Waiter(model, number, operation, entered, math.inf if deadline is None else deadline)


def _numbered(noted: int | None, number: int) -> str | None:
    if noted is None:
        return "it was not idle; the core says it is"
    return None if noted == number else f"it was claim {noted}; the core says {number}"


def _plain(decision: Decision) -> tuple[str, int, int | str | None]:
    if isinstance(decision, Granted):
        return "granted", decision.lease.waiter.number, decision.lease.slot
    return "refused", decision.waiter.number, str(decision.reason)


def _noted(decided: Decided) -> tuple[str, int, int | str | None]:
    if isinstance(decided, Grant):
        return "granted", decided.waiter, decided.slot
    return "refused", decided.waiter, decided.reason


def _words(decided: Iterable[tuple[str, int, int | str | None]]) -> str:
    words = [f"{kind} {number} ({'whole' if what is None else what})" for kind, number, what in decided]
    return ", ".join(words) or "nothing"
