"""Barriers over several gates at once."""

import pytest

from antiphon.admission.gate import Decision, Gate, GateView, Granted, Refusal, Refused, Waiter
from antiphon.admission.scheduler import PublicationError, Scheduler
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import Operation

BULK = Operation.BULK_UNLOAD


def scheduler(*names: str) -> Scheduler:
    """A scheduler with one slot per gate named."""
    made = Scheduler()
    for name in names:
        made.add(Gate(name, 1))
    return made


class FaultyGate(Gate):
    """A gate that can be made to fail at the next entry."""

    fails = False

    def submit(self, operation: Operation, now: float, timeout_s: float) -> tuple[Waiter, list[Decision]]:
        if self.fails:
            raise MemoryError("no memory for a waiter")
        return super().submit(operation, now, timeout_s)


def crowd() -> dict[str, FaultyGate]:
    """A gate in each situation in which a barrier can meet one, at time 2."""
    gates = {name: FaultyGate(name, 2) for name in ("idle", "running", "managed", "queued", "overtaken")}
    gates["running"].submit(Operation.INFER, 0, 0)
    gates["managed"].submit(Operation.LOAD, 0, 0)
    for _ in range(3):
        gates["queued"].submit(Operation.INFER, 0, 0)
    # A barrier expires at 2, and so the request behind it is granted when somebody next calls.
    gates["overtaken"].submit(Operation.INFER, 0, 0)
    gates["overtaken"].submit(Operation.UNLOAD, 0, 2)
    gates["overtaken"].submit(Operation.INFER, 0, 0)
    return gates


def views(made: Scheduler, *names: str) -> list[GateView]:
    """The gates' whole state."""
    return [made.gate(name).snapshot(0) for name in names]


def test_idle_models_are_granted_in_the_publishing_call() -> None:
    made = scheduler("a", "b")
    busy = made.gate("a")
    busy.submit(Operation.INFER, 0, 0)
    barriers, decisions = made.publish(["a", "b"], BULK, 0)
    assert list(barriers) == ["a", "b"]
    assert [it.lease.waiter for it in decisions if isinstance(it, Granted)] == [barriers["b"]]
    assert [(it.waiting, len(it.leases)) for it in views(made, "a", "b")] == [(1, 1), (0, 1)]


def test_a_model_named_twice_gets_one_barrier() -> None:
    made = scheduler("a", "b")
    barriers, decisions = made.publish(["b", "a", "b"], BULK, 0)
    assert list(barriers) == ["b", "a"]
    assert len(decisions) == 2
    assert [it.waiting for it in views(made, "a", "b")] == [0, 0]


def test_a_bulk_barrier_waits_without_bound() -> None:
    made = scheduler("a")
    made.gate("a").submit(Operation.INFER, 0, 0)
    barriers, decisions = made.publish(["a"], BULK, 1000)
    assert decisions == []
    assert made.gate("a").next_deadline() is None
    assert made.gate("a").withdraw(barriers["a"], 1000) == []


def test_an_unknown_model_leaves_every_gate_as_it_was() -> None:
    made = scheduler("a", "b")
    before = views(made, "a", "b")
    with pytest.raises(InvariantError):
        made.publish(["a", "unknown", "b"], BULK, 0)
    assert views(made, "a", "b") == before


def test_a_request_is_no_barrier() -> None:
    made = scheduler("a")
    with pytest.raises(InvariantError):
        made.publish(["a"], Operation.INFER, 0)
    assert made.gate("a").is_idle


def test_overlapping_publications_meet_in_one_order_everywhere() -> None:
    made = scheduler("a", "b")
    first, _ = made.publish(["a", "b"], BULK, 0)
    second, _ = made.publish(["b", "a"], BULK, 0)
    assert [first[name].number for name in "ab"] == [0, 0]
    assert [second[name].number for name in "ab"] == [1, 1]
    assert [it.waiting for it in views(made, "a", "b")] == [1, 1]


def test_what_was_due_at_a_gate_is_told_by_the_publication() -> None:
    made = scheduler("a")
    made.gate("a").submit(Operation.INFER, 0, 0)
    late, _ = made.gate("a").submit(Operation.INFER, 0, 1)
    _, decisions = made.publish(["a"], BULK, 1)
    assert [it.waiter for it in decisions if not isinstance(it, Granted)] == [late]


def test_a_gates_name_is_taken_once() -> None:
    made = scheduler("a")
    first = made.gate("a")
    with pytest.raises(InvariantError):
        made.add(Gate("a", 2))
    assert made.gate("a") is first


@pytest.mark.parametrize("failing", list(crowd()))
@pytest.mark.parametrize("reverse", [False, True])
def test_a_publication_that_fails_part_way_leaves_no_trace(failing: str, reverse: bool) -> None:
    gates, untouched, made = crowd(), crowd(), Scheduler()
    for gate in gates.values():
        made.add(gate)
    gates[failing].fails = True
    names = list(reversed(gates)) if reverse else list(gates)
    with pytest.raises(PublicationError) as caught:
        made.publish(names, BULK, 2)
    assert isinstance(caught.value.__cause__, MemoryError)
    # What is left is as if only the time had been told to the gates that were reached.
    reached = names[: names.index(failing)]
    due = [decision for name in reached for decision in untouched[name].expire(2)]
    assert caught.value.decisions == due
    assert [gate.snapshot(2) for gate in gates.values()] == [gate.snapshot(2) for gate in untouched.values()]


def test_what_was_due_is_told_by_a_publication_that_fails() -> None:
    gates, made = crowd(), Scheduler()
    for gate in gates.values():
        made.add(gate)
    gates["idle"].fails = True
    with pytest.raises(PublicationError) as caught:
        made.publish(["overtaken", "idle"], BULK, 2)
    expired, granted = caught.value.decisions
    assert isinstance(expired, Refused)
    assert expired.reason is Refusal.EXPIRED
    assert isinstance(granted, Granted)
    assert gates["overtaken"].release(granted.lease, 3) == []


def test_after_a_publication_that_failed_the_next_one_succeeds() -> None:
    gates, made = crowd(), Scheduler()
    for gate in gates.values():
        made.add(gate)
    gates["queued"].fails = True
    with pytest.raises(PublicationError):
        made.publish(gates, BULK, 2)
    gates["queued"].fails = False
    barriers, decisions = made.publish(gates, BULK, 2)
    assert list(barriers) == list(gates)
    granted = {it.lease.waiter.gate: it.lease.waiter for it in decisions if isinstance(it, Granted)}
    assert {name: granted.get(name) is barrier for name, barrier in barriers.items()} == {
        "idle": True,
        "running": False,
        "managed": False,
        "queued": False,
        "overtaken": False,
    }


def test_the_gates_are_told_in_the_order_of_their_addition() -> None:
    assert [gate.name for gate in scheduler("b", "a").gates()] == ["b", "a"]


def test_a_dismissal_reaches_every_gate_and_spares_who_is_named() -> None:
    made = scheduler("a", "b")
    for name in ("a", "b"):
        made.gate(name).submit(Operation.INFER, 0, 0)
        made.gate(name).submit(Operation.INFER, 0, 0)
    barriers, _ = made.publish(["a"], BULK, 0)
    decisions = made.dismiss(1, barriers.values())
    assert [(it.waiter.gate, it.waiter.number, it.reason) for it in decisions if isinstance(it, Refused)] == [
        ("a", 1, Refusal.SHUTTING_DOWN),
        ("b", 1, Refusal.SHUTTING_DOWN),
    ]
    assert [it.waiting for it in views(made, "a", "b")] == [1, 0]


def test_an_addition_can_be_taken_back() -> None:
    made = scheduler("a", "b")
    made.remove("a")
    with pytest.raises(InvariantError):
        made.gate("a")
    assert made.gate("b").name == "b"
    made.add(Gate("a", 2))
    assert made.gate("a").capacity == 2


def test_what_was_never_added_cannot_be_taken_back() -> None:
    with pytest.raises(InvariantError):
        scheduler("a").remove("b")
