"""A gate that keeps a journal: every call with its `now` and what was decided. It decides as its base does."""

from collections.abc import Collection

from antiphon.admission.gate import Decision, Gate, Granted, Lease, Waiter
from antiphon.observability.journal.entries import (
    Decided,
    Dismissed,
    Expired,
    Grant,
    Refusal,
    Released,
    Resized,
    Submitted,
    Tried,
    Withdrawn,
)
from antiphon.observability.journal.journal import Journal
from antiphon.observability.records import current_id
from antiphon.vocabulary.states import Operation


class JournaledGate(Gate):
    """A call that raises has changed nothing, and leaves no entry."""

    def __init__(self, name: str, capacity: int, journal: Journal) -> None:
        super().__init__(name, capacity)
        self._journal = journal
        self._asked_by: dict[int, str | None] = {}  # who waits or holds a lease, and for which request
        journal.opened(name, self.state, self._holder)

    def submit(self, operation: Operation, now: float, timeout_s: float) -> tuple[Waiter, list[Decision]]:
        """As the base; so are the others."""
        waiter, decisions = super().submit(operation, now, timeout_s)
        asked_by = self._asked_by[waiter.number] = current_id()
        told = self._told(decisions) if decisions else ()
        seq, at, _, name = self._journal.head(self.name, now)  # taken apart here: a call takes longer to do so
        self._journal.add(Submitted(seq, at, now, name, waiter.number, operation, timeout_s, asked_by, told))
        return waiter, decisions

    def try_exclusive(self, operation: Operation, now: float) -> tuple[Lease | None, list[Decision]]:
        """Note whether it was idle."""
        lease, decisions = super().try_exclusive(operation, now)
        number, asked_by = None if lease is None else lease.waiter.number, current_id()
        if number is not None:
            self._asked_by[number] = asked_by
        head = self._journal.head(self.name, now)
        self._journal.add(Tried(*head, operation, number, asked_by, self._told(decisions)))
        return lease, decisions

    def release(self, lease: Lease, now: float) -> list[Decision]:
        """Note whose it was."""
        decisions = super().release(lease, now)
        waiter, asked_by = lease.waiter, self._asked_by.pop(lease.waiter.number, None)
        told = self._told(decisions) if decisions else ()
        seq, at, _, name = self._journal.head(self.name, now)
        self._journal.add(Released(seq, at, now, name, waiter.number, waiter.operation, asked_by, told))
        return decisions

    def resize(self, lease: Lease, capacity: int, now: float) -> list[Decision]:
        """Note the slots."""
        decisions = super().resize(lease, capacity, now)
        head = self._journal.head(self.name, now)
        self._journal.add(Resized(*head, lease.waiter.number, capacity, self._told(decisions)))
        return decisions

    def withdraw(self, waiter: Waiter, now: float) -> list[Decision]:
        """Note who left."""
        decisions = super().withdraw(waiter, now)
        asked_by = self._asked_by.pop(waiter.number, None)
        head = self._journal.head(self.name, now)
        self._journal.add(Withdrawn(*head, waiter.number, waiter.operation, asked_by, self._told(decisions)))
        return decisions

    def dismiss(self, now: float, spare: Collection[Waiter] = ()) -> list[Decision]:
        """Note who may stay."""
        decisions = super().dismiss(now, spare)
        spared = tuple(sorted(waiter.number for waiter in spare if waiter.gate == self.name))
        self._journal.add(Dismissed(*self._journal.head(self.name, now), spared, self._told(decisions)))
        return decisions

    def expire(self, now: float) -> list[Decision]:
        """Note the time."""
        decisions = super().expire(now)
        self._journal.add(Expired(*self._journal.head(self.name, now), self._told(decisions)))
        return decisions

    def _told(self, decisions: list[Decision]) -> tuple[Decided, ...]:
        return tuple([self._plain(it) for it in decisions])

    def _plain(self, decision: Decision) -> Decided:
        if isinstance(decision, Granted):
            waiter = decision.lease.waiter
            return Grant(waiter.number, decision.lease.slot, waiter.operation, self._asked_by.get(waiter.number))
        waiter = decision.waiter
        asked_by = self._asked_by.pop(waiter.number, None)
        return Refusal(waiter.number, decision.reason, waiter.operation, asked_by)

    def _holder(self) -> tuple[Operation | None, str | None]:
        """What the model is held for, and by which request; of several, the one in whose course this is asked."""
        held = self._exclusive
        if held is not None:
            return held.waiter.operation, self._asked_by.get(held.waiter.number)
        return (Operation.INFER if self._shared else None), current_id()
