"""Many models' gates, and what spans them: publishing barriers on several at once, and dismissing all who wait."""

from collections.abc import Collection, Iterable

from antiphon.admission.gate import Decision, Gate, Granted, Lease, Waiter
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import ClaimKind, Operation


class PublicationError(Exception):
    """A barrier could not be entered, and the whole publication was taken back: none of it waits or holds a lease.

    `decisions` are those about others, made on the way there and back. They stand: whoever publishes acts on them.
    """

    def __init__(self, decisions: list[Decision]) -> None:
        super().__init__("a barrier could not be entered; those entered before it were taken back")
        self.decisions = decisions


class Scheduler:
    """The gates by model id. Gates are added and never removed: their waiters keep pointing at them."""

    def __init__(self) -> None:
        self._gates: dict[str, Gate] = {}

    def add(self, gate: Gate) -> None:
        """Add a gate under its name; raises InvariantError for a name that is taken."""
        if gate.name in self._gates:
            raise InvariantError(f"there is a gate {gate.name} already")
        self._gates[gate.name] = gate

    def remove(self, name: str) -> None:
        """Take back an addition before anyone else has seen the gate; raises InvariantError for an unknown name."""
        del self._gates[self.gate(name).name]

    def gate(self, name: str) -> Gate:
        """Find a gate; raises InvariantError for a name that was never added."""
        try:
            return self._gates[name]
        except KeyError as missing:
            raise InvariantError(f"there is no gate {name}") from missing

    def gates(self) -> tuple[Gate, ...]:
        """All gates, in the order in which they were added."""
        return tuple(self._gates.values())

    def publish(
        self, names: Iterable[str], operation: Operation, now: float
    ) -> tuple[dict[str, Waiter], list[Decision]]:
        """Enter one barrier without a bound at each gate named, in one call (rule.bulk_two_phase).

        Names are deduplicated, in order, and all looked up before the first barrier is entered: an unknown one leaves
        every gate as it was. Nothing can run between two barriers, so overlapping publications are never interleaved.
        Raises InvariantError for an unknown name, and for an operation that does not manage; PublicationError when a
        gate fails part way (order.bulk_cancel).
        """
        if operation.kind is not ClaimKind.MANAGEMENT:
            raise InvariantError(f"{operation} is no barrier")
        gates = [self.gate(name) for name in dict.fromkeys(names)]
        barriers: dict[str, Waiter] = {}
        decisions: list[Decision] = []
        try:
            for gate in gates:
                barriers[gate.name], made = gate.submit(operation, now, timeout_s=0)
                decisions += made
        except Exception as fault:
            raise PublicationError(self._take_back(barriers, decisions, now)) from fault
        return barriers, decisions

    def dismiss(self, now: float, spare: Collection[Waiter] = ()) -> list[Decision]:
        """Refuse all who wait at any gate, but for those of `spare`, in one call."""
        return [decision for gate in self._gates.values() for decision in gate.dismiss(now, spare)]

    def _take_back(self, barriers: dict[str, Waiter], decisions: list[Decision], now: float) -> list[Decision]:
        """Withdraw the barriers that wait, release those that were granted; returns what was decided about others."""
        leases: dict[str, Lease] = {}
        others: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, Granted) and decision.lease.waiter is barriers.get(decision.lease.waiter.gate):
                leases[decision.lease.waiter.gate] = decision.lease
            else:
                others.append(decision)
        for name, barrier in barriers.items():
            gate, lease = self._gates[name], leases.get(name)
            others += gate.withdraw(barrier, now) if lease is None else gate.release(lease, now)
        return others
