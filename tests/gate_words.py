"""A gate and its decisions in words: a whole gate is one line, active/capacity +requests/waiting [leases] [queue]."""

from antiphon.admission.gate import Decision, Gate, Granted, Lease, Waiter
from antiphon.vocabulary.states import Operation

INFER, UNLOAD, EVICT = Operation.INFER, Operation.UNLOAD, Operation.EVICT


def shown(gate: Gate, now: float) -> str:
    """The whole snapshot in one line; a number behind an operation is its age."""
    view = gate.snapshot(now)
    assert [it.position for it in view.queue] == list(range(1, view.waiting + 1))
    leases = ", ".join(f"{'all' if it.slot is None else it.slot} {it.operation} {it.age_s:g}" for it in view.leases)
    queue = ", ".join(f"{it.operation} {it.age_s:g}" for it in view.queue)
    return f"{view.active_slots}/{view.capacity} +{view.queued_requests}/{view.waiting} [{leases}] [{queue}]"


def told(decisions: list[Decision]) -> list[str]:
    """The decisions in one word each: who, and the slot or the reason."""
    return [_told(decision) for decision in decisions]


def _told(decision: Decision) -> str:
    if isinstance(decision, Granted):
        slot = decision.lease.slot
        return f"#{decision.lease.waiter.number} has {'all' if slot is None else slot}"
    return f"#{decision.waiter.number} {decision.reason}"


def enter(gate: Gate, operation: Operation, now: float = 0, timeout_s: float = 0) -> Waiter:
    """Submit and forget the decisions; asserts nothing."""
    return gate.submit(operation, now, timeout_s)[0]


def hold(gate: Gate, operation: Operation = INFER, now: float = 0) -> Lease:
    """Submit a claim that is granted at once."""
    waiter, decisions = gate.submit(operation, now, 0)
    (granted,) = (it.lease for it in decisions if isinstance(it, Granted) and it.lease.waiter is waiter)
    return granted
