"""The product's journal in a simulated house: all of it is kept, and each call is put to the admission oracle at once.

So a difference is known where it arises. What is kept can be replayed (`antiphon.observability.journal.replay`).
"""

from collections.abc import Callable

from admission_oracle import Oracle, Outcome
from antiphon.admission.gate import Gate
from antiphon.observability.journal.entries import (
    AnyEntry,
    Call,
    CoreCall,
    Dismissed,
    Expired,
    Grant,
    Opened,
    Released,
    Resized,
    Submitted,
    Tried,
    Withdrawn,
)
from antiphon.observability.journal.gate import JournaledGate
from antiphon.observability.journal.journal import Journal
from antiphon.ports.clock import Clock


class WatchedJournal(Journal):
    """The lines of one history, over all its gates. `after` is told of each gate that was called."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, size=1, wall=lambda: 0.0, run="sim")
        self.lines: list[AnyEntry] = []
        self.differences: list[str] = []
        self.after: Callable[[Gate], None] = lambda gate: None
        self._oracles: dict[str, Oracle] = {}
        self._watched: dict[str, Gate] = {}
        self.hearers.append(self._hear)

    def maker(self, kind: type[Gate]) -> Callable[[str, int], Gate]:
        """A maker of gates of this kind that keep this journal."""
        journaled = type("Watched", (JournaledGate, kind), {})

        def make(name: str, capacity: int) -> Gate:
            gate = self._watched[name] = journaled(name, capacity, self)
            return gate

        return make

    def _hear(self, entry: AnyEntry) -> None:
        self.lines.append(entry)
        if isinstance(entry, Opened):
            self._oracles[entry.model] = Oracle(entry.slots)
        elif isinstance(entry, Call):
            told = [_plain(it, entry.now) for it in entry.decided]
            expected = _ask(self._oracles[entry.model], entry)
            if told != expected:
                self.differences.append(f"{entry}: the oracle says {expected}")
            self.after(self._watched[entry.model])


def _plain(decision, now: float) -> Outcome:
    if isinstance(decision, Grant):
        return ("granted", decision.waiter, decision.slot, now)
    return ("refused", decision.waiter, decision.reason)


def _ask(oracle: Oracle, entry: CoreCall) -> list[Outcome]:
    now = entry.now
    match entry:
        case Submitted():
            return oracle.submit(entry.operation.value, now, entry.timeout_s)
        case Tried():
            taken, told = oracle.try_exclusive(entry.operation.value, now)
            agreed = taken == (entry.waiter is not None)
            return told if agreed else [("refused", -1, f"the oracle takes it: {taken}")]
        case Released(waiter=number):
            return oracle.release(number, now)
        case Resized(slots=slots):
            return oracle.resize(slots, now)
        case Withdrawn(waiter=number):
            return oracle.withdraw(number, now)
        case Dismissed(spared=spared):
            return oracle.dismiss(spared, now)
        case Expired():
            return oracle.expire(now)
