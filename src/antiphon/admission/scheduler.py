"""Many models' gates, and the one operation that spans them: publishing barriers on several at once."""

from collections.abc import Iterable

from antiphon.admission.gate import Decision, Gate, Waiter
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import ClaimKind, Operation


class Scheduler:
    """The gates by model id. Gates are added and never removed: their waiters keep pointing at them."""

    def __init__(self) -> None:
        self._gates: dict[str, Gate] = {}

    def add(self, gate: Gate) -> None:
        """Add a gate under its name; raises InvariantError for a name that is taken."""
        if gate.name in self._gates:
            raise InvariantError(f"there is a gate {gate.name} already")
        self._gates[gate.name] = gate

    def gate(self, name: str) -> Gate:
        """Find a gate; raises InvariantError for a name that was never added."""
        try:
            return self._gates[name]
        except KeyError as missing:
            raise InvariantError(f"there is no gate {name}") from missing

    def publish(
        self, names: Iterable[str], operation: Operation, now: float
    ) -> tuple[dict[str, Waiter], list[Decision]]:
        """Enter one barrier without a bound at each gate named, in one call (rule.bulk_two_phase).

        Names are deduplicated, in order, and all looked up before the first barrier is entered: an unknown one leaves
        every gate as it was. Nothing can run between two barriers, so overlapping publications are never interleaved.
        Raises InvariantError for an unknown name, and for an operation that does not manage.
        """
        if operation.kind is not ClaimKind.MANAGEMENT:
            raise InvariantError(f"{operation} is no barrier")
        gates = [self.gate(name) for name in dict.fromkeys(names)]
        barriers: dict[str, Waiter] = {}
        decisions: list[Decision] = []
        for gate in gates:
            barriers[gate.name], made = gate.submit(operation, now, timeout_s=0)
            decisions += made
        return barriers, decisions
