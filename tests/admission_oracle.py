"""What admission has to do, written from the rules and from nothing else: a plain list, rescanned at every step.

It imports nothing of antiphon, keeps no queue beside the list, no count and no heap, and never looks at how the gate
does it. Three things that the rules leave open are pinned here, so that answers can be compared whole: a request takes
the lowest free slot, those who expire together are told by deadline and then by entry, and numbers count entries.
"""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple, TypeAlias

Outcome: TypeAlias = tuple[str, int, int | None, float] | tuple[str, int, str]
"""("granted", number, slot or None for the whole model, since) or ("refused", number, reason)."""


class Claim(NamedTuple):
    """Someone who is at the gate: waiting while `granted` is None, otherwise holding `slot` (None: the whole model)."""

    number: int
    operation: str
    entered: float
    deadline: float
    granted: float | None = None
    slot: int | None = None

    @property
    def is_request(self) -> bool:
        """Everything but inference manages the model."""
        return self.operation == "infer"


class Oracle:
    """The claims at one gate in the order of their entry. Every call works on the whole list."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.present: list[Claim] = []
        self.entries = 0

    def copy(self) -> "Oracle":
        """An independent twin."""
        twin = Oracle(self.capacity)
        twin.present = list(self.present)
        twin.entries = self.entries
        return twin

    def waiting(self) -> list[Claim]:
        """Those who wait, oldest first."""
        return [claim for claim in self.present if claim.granted is None]

    def holding(self) -> list[Claim]:
        """Those who hold a lease, by slot."""
        return sorted(
            (it for it in self.present if it.granted is not None), key=lambda it: -1 if it.slot is None else it.slot
        )

    def submit(self, operation: str, now: float, timeout: float) -> list[Outcome]:
        """Rules 1 to 4, after whatever is due."""
        told = self._settle(now)
        deadline = math.inf if timeout == 0 else now + timeout
        claim = Claim(self.entries, operation, now, deadline)
        self.entries += 1
        if not self.waiting() and self._fits(claim):
            return [*told, self._grant(claim, now)]
        if timeout > 0 and self.holding() and all(now - _time(it.granted) > timeout for it in self.holding()):
            return [*told, ("refused", claim.number, "overdue")]
        self.present.append(claim)
        return told

    def try_exclusive(self, operation: str, now: float) -> tuple[bool, list[Outcome]]:
        """Whether the whole model was free for the taking, and what was due before that."""
        told = self._settle(now)
        if self.present:
            return False, told
        self._grant(Claim(self.entries, operation, now, math.inf), now)
        self.entries += 1
        return True, told

    def release(self, number: int, now: float) -> list[Outcome]:
        """A holder is done."""
        self._remove(number, self.holding())
        return self._settle(now)

    def resize(self, capacity: int, now: float) -> list[Outcome]:
        """The one who has the whole model changes how many slots it has."""
        (holder,) = self.holding()
        assert holder.slot is None
        self.capacity = capacity
        return self._settle(now)

    def withdraw(self, number: int, now: float) -> list[Outcome]:
        """A waiter leaves."""
        self._remove(number, self.waiting())
        return self._settle(now)

    def dismiss(self, spared: Collection[int], now: float) -> list[Outcome]:
        """All who still wait are sent away but these, and whoever can be granted then is."""
        told = self._settle(now)
        for claim in self.waiting():
            if claim.number not in spared:
                self.present.remove(claim)
                told.append(("refused", claim.number, "shutting_down"))
        return told + self._settle(now)

    def expire(self, now: float) -> list[Outcome]:
        """Time has passed."""
        return self._settle(now)

    def next_deadline(self) -> float | None:
        """The earliest deadline of those who wait with one."""
        earliest = min((claim.deadline for claim in self.waiting()), default=math.inf)
        return None if earliest == math.inf else earliest

    def snapshot(self, now: float) -> tuple[object, ...]:
        """Capacity, active slots, queued requests, waiting, leases (slot, operation, age), queue (position, ...)."""
        waiting, holding = self.waiting(), self.holding()
        return (
            self.capacity,
            sum(claim.is_request for claim in holding),
            sum(claim.is_request for claim in waiting),
            len(waiting),
            tuple((it.slot, it.operation, now - _time(it.granted)) for it in holding),
            tuple((place + 1, it.operation, now - it.entered) for place, it in enumerate(waiting)),
        )

    def waits_for(self) -> list[list[str]]:
        """Of each who waits: every lease that is out, and the one directly before."""
        blockers = []
        for place, _ in enumerate(self.waiting()):
            leases = ["lease:exclusive" if it.slot is None else f"lease:{it.slot}" for it in self.holding()]
            blockers.append(leases + ([f"waiter:{place}"] if place else []))
        return blockers

    def _settle(self, now: float) -> list[Outcome]:
        """Rules 6 and 7: whoever is due expires, and only then is anyone granted, from the front."""
        told: list[Outcome] = []
        due = [claim for claim in self.waiting() if claim.deadline <= now]
        for claim in sorted(due, key=lambda it: (it.deadline, it.number)):
            self.present.remove(claim)
            told.append(("refused", claim.number, "expired"))
        for claim in self.waiting():
            if not self._fits(claim):
                break  # nothing passes it
            self.present.remove(claim)
            told.append(self._grant(claim, now))
        return told

    def _fits(self, claim: Claim) -> bool:
        holding = self.holding()
        if not claim.is_request:
            return not holding
        return all(it.is_request for it in holding) and len(holding) < self.capacity

    def _grant(self, claim: Claim, now: float) -> Outcome:
        taken = {it.slot for it in self.holding()}
        slot = next(it for it in range(self.capacity) if it not in taken) if claim.is_request else None
        self.present.append(claim._replace(granted=now, slot=slot))
        return ("granted", claim.number, slot, now)

    def _remove(self, number: int, among: Iterable[Claim]) -> None:
        (claim,) = (it for it in among if it.number == number)
        self.present.remove(claim)


def _time(moment: float | None) -> float:
    assert moment is not None
    return moment
