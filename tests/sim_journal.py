"""The journal: every call to a model's gate, with its `now` and what was decided, as plain data that can be replayed.

Each call is also put to the admission oracle at once, so a difference is known where it arises.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from admission_oracle import Oracle, Outcome
from antiphon.admission.gate import Decision, Gate, Granted, Lease, Waiter
from antiphon.vocabulary.states import Operation


@dataclass(frozen=True, slots=True)
class Line:
    """One call. `arguments` are plain: an operation's name, a timeout, the number of a waiter or of a lease."""

    gate: str
    call: str
    now: float
    arguments: tuple
    told: tuple[Outcome, ...]


@dataclass
class Journal:
    """The lines of one history, over all its gates. `after` is told of each gate that has decided something."""

    lines: list[Line] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    oracles: dict[str, Oracle] = field(default_factory=dict)
    after: Callable[[Gate, list[Decision]], None] = lambda gate, decisions: None

    def opened(self, gate: Gate, capacity: int) -> None:
        self.oracles[gate.name] = Oracle(capacity)
        self.lines.append(Line(gate.name, "open", 0.0, (capacity,), ()))

    def note(self, gate: Gate, call: str, now: float, arguments: tuple, decisions: list[Decision]) -> None:
        """Write a call down, and hear what the oracle says to it."""
        told = tuple(map(_plain, decisions))
        self.lines.append(Line(gate.name, call, now, arguments, told))
        expected = _ask(self.oracles[gate.name], call, now, arguments)
        if list(told) != expected:
            self.differences.append(f"{gate.name}.{call}{arguments} at {now}: {list(told)}, the oracle says {expected}")
        self.after(gate, decisions)


def journaled(kind: type[Gate], journal: Journal) -> Callable[[str, int], Gate]:
    """A maker of gates of this kind that keep a journal."""

    class JournalGate(kind):
        def __init__(self, name: str, capacity: int) -> None:
            super().__init__(name, capacity)
            journal.opened(self, capacity)

        def submit(self, operation: Operation, now: float, timeout_s: float) -> tuple[Waiter, list[Decision]]:
            waiter, decisions = super().submit(operation, now, timeout_s)
            journal.note(self, "submit", now, (operation.value, timeout_s), decisions)
            return waiter, decisions

        def try_exclusive(self, operation: Operation, now: float) -> tuple[Lease | None, list[Decision]]:
            lease, decisions = super().try_exclusive(operation, now)
            journal.note(self, "try_exclusive", now, (operation.value, lease is not None), decisions)
            return lease, decisions

        def release(self, lease: Lease, now: float) -> list[Decision]:
            decisions = super().release(lease, now)
            journal.note(self, "release", now, (lease.waiter.number,), decisions)
            return decisions

        def resize(self, lease: Lease, capacity: int, now: float) -> list[Decision]:
            decisions = super().resize(lease, capacity, now)
            journal.note(self, "resize", now, (lease.waiter.number, capacity), decisions)
            return decisions

        def withdraw(self, waiter: Waiter, now: float) -> list[Decision]:
            decisions = super().withdraw(waiter, now)
            journal.note(self, "withdraw", now, (waiter.number,), decisions)
            return decisions

        def dismiss(self, now: float, spare: Collection[Waiter] = ()) -> list[Decision]:
            decisions = super().dismiss(now, spare)
            spared = tuple(waiter.number for waiter in spare if waiter.gate == self.name)
            journal.note(self, "dismiss", now, spared, decisions)
            return decisions

        def expire(self, now: float) -> list[Decision]:
            decisions = super().expire(now)
            journal.note(self, "expire", now, (), decisions)
            return decisions

    return JournalGate


def replay(lines: Iterable[Line]) -> list[Line]:
    """Make the calls of a journal again, at new gates; a faithful core makes the same lines."""
    again = Journal()
    gates: dict[str, Gate] = {}
    waiters: dict[tuple[str, int], Waiter] = {}
    leases: dict[tuple[str, int], Lease] = {}

    def keep(gate: Gate, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Granted):
                leases[gate.name, decision.lease.waiter.number] = decision.lease

    again.after = keep
    make = journaled(Gate, again)
    for line in lines:
        if line.call == "open":
            gates[line.gate] = make(line.gate, *line.arguments)
            continue
        gate, arguments = gates[line.gate], line.arguments
        match line.call:
            case "submit":
                waiter, _ = gate.submit(Operation(arguments[0]), line.now, arguments[1])
                waiters[line.gate, waiter.number] = waiter
            case "try_exclusive":
                lease, _ = gate.try_exclusive(Operation(arguments[0]), line.now)
                if lease is not None:
                    leases[line.gate, lease.waiter.number] = lease
            case "release":
                gate.release(leases.pop((line.gate, arguments[0])), line.now)
            case "resize":
                gate.resize(leases[line.gate, arguments[0]], arguments[1], line.now)
            case "withdraw":
                gate.withdraw(waiters.pop((line.gate, arguments[0])), line.now)
            case "dismiss":
                gate.dismiss(line.now, [waiters[line.gate, number] for number in arguments])
            case "expire":
                gate.expire(line.now)
    return again.lines


def _plain(decision: Decision) -> Outcome:
    if isinstance(decision, Granted):
        return ("granted", decision.lease.waiter.number, decision.lease.slot, decision.lease.since)
    return ("refused", decision.waiter.number, decision.reason.value)


def _ask(oracle: Oracle, call: str, now: float, arguments: tuple) -> list[Outcome]:
    match call:
        case "submit":
            return oracle.submit(arguments[0], now, arguments[1])
        case "try_exclusive":
            taken, told = oracle.try_exclusive(arguments[0], now)
            return told if taken == arguments[1] else [("refused", -1, f"the oracle takes it: {taken}")]
        case "resize":
            return oracle.resize(arguments[1], now)
        case "dismiss":
            return oracle.dismiss(arguments, now)
        case _:
            return getattr(oracle, call)(*arguments, now)
