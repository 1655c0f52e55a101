"""What the gate decides when a claim leaves, when its slots change, and when it is only tried: case by case."""

from dataclasses import replace

import pytest

from antiphon.admission.gate import Gate
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import Operation
from gate_words import EVICT, INFER, UNLOAD, enter, hold, shown, told

# Leaving


def test_a_withdrawn_barrier_frees_those_behind_it_in_the_same_call() -> None:
    gate = Gate("m", 2)
    hold(gate)
    barrier = enter(gate, UNLOAD)
    enter(gate, INFER)
    assert told(gate.withdraw(barrier, 1)) == ["#2 has 1"]
    assert shown(gate, 1) == "2/2 +0/0 [0 infer 1, 1 infer 0] []"


def test_a_withdrawal_in_mid_queue_leaves_the_others_in_order() -> None:
    gate = Gate("m", 1)
    lease = hold(gate)
    enter(gate, INFER)
    leaving = enter(gate, UNLOAD)
    enter(gate, INFER)
    assert told(gate.withdraw(leaving, 1)) == []
    assert told(gate.release(lease, 2)) == ["#1 has 0"]
    assert shown(gate, 2) == "1/1 +1/1 [0 infer 0] [infer 2]"


def test_a_waiter_that_was_granted_cannot_be_withdrawn() -> None:
    gate = Gate("m", 1)
    lease = hold(gate)
    waiter = enter(gate, INFER)
    gate.release(lease, 1)
    with pytest.raises(InvariantError):
        gate.withdraw(waiter, 1)
    assert shown(gate, 1) == "1/1 +0/0 [0 infer 0] []"


def test_another_gates_waiter_cannot_be_withdrawn() -> None:
    gate, other = Gate("m", 1), Gate("other", 1)
    for each in (gate, other):
        hold(each)
    enter(gate, INFER)
    foreign = enter(other, INFER)
    with pytest.raises(InvariantError):
        gate.withdraw(foreign, 0)
    assert shown(gate, 0) == shown(other, 0) == "1/1 +1/1 [0 infer 0] [infer 0]"


@pytest.mark.parametrize("operation", [INFER, UNLOAD])
def test_a_double_release_raises_and_changes_nothing(operation: Operation) -> None:
    gate = Gate("m", 1)
    lease = hold(gate, operation)
    enter(gate, operation)
    gate.release(lease, 1)
    before = shown(gate, 2)
    with pytest.raises(InvariantError):
        gate.release(lease, 2)
    assert shown(gate, 2) == before


def test_a_copy_of_a_lease_ends_nothing() -> None:
    gate = Gate("m", 1)
    lease = hold(gate)
    with pytest.raises(InvariantError):
        gate.release(replace(lease), 0)
    assert shown(gate, 0) == "1/1 +0/0 [0 infer 0] []"


# Dismissing all who wait


def test_a_dismissal_refuses_all_who_wait_and_ends_no_lease() -> None:
    gate = Gate("m", 1)
    hold(gate)
    enter(gate, INFER)
    enter(gate, UNLOAD, timeout_s=9)
    enter(gate, INFER)
    assert told(gate.dismiss(1)) == ["#1 shutting_down", "#2 shutting_down", "#3 shutting_down"]
    assert shown(gate, 1) == "1/1 +0/0 [0 infer 1] []"
    assert gate.next_deadline() is None


def test_a_dismissal_spares_those_named_in_their_order() -> None:
    gate = Gate("m", 1)
    hold(gate)
    enter(gate, INFER)
    barrier, last = enter(gate, UNLOAD), enter(gate, INFER)
    assert told(gate.dismiss(1, {last, barrier})) == ["#1 shutting_down"]
    assert shown(gate, 1) == "1/1 +1/2 [0 infer 1] [unload 1, infer 1]"


def test_who_is_spared_is_granted_in_the_call_that_dismisses_those_before() -> None:
    gate = Gate("m", 2)
    hold(gate)
    enter(gate, UNLOAD)
    request = enter(gate, INFER)
    assert told(gate.dismiss(1, {request})) == ["#1 shutting_down", "#2 has 1"]


def test_a_deadline_that_has_come_expires_before_anyone_is_dismissed() -> None:
    gate = Gate("m", 2)
    hold(gate)
    enter(gate, UNLOAD, timeout_s=1)
    enter(gate, INFER)
    enter(gate, UNLOAD)
    assert told(gate.dismiss(1)) == ["#1 expired", "#2 has 1", "#3 shutting_down"]


# Another number of slots


def test_those_who_wait_fill_the_new_slots_when_the_manager_ends() -> None:
    gate = Gate("m", 1)
    lease = hold(gate, Operation.LOAD)
    for _ in range(4):
        enter(gate, INFER)
    assert told(gate.resize(lease, 3, 1)) == []
    assert shown(gate, 1) == "0/3 +4/4 [all load 1] [infer 1, infer 1, infer 1, infer 1]"
    assert told(gate.release(lease, 2)) == ["#1 has 0", "#2 has 1", "#3 has 2"]
    assert shown(gate, 2) == "3/3 +1/1 [0 infer 0, 1 infer 0, 2 infer 0] [infer 2]"


def test_fewer_slots_serve_fewer_at_once() -> None:
    gate = Gate("m", 4)
    lease = hold(gate, Operation.LOAD)
    for _ in range(2):
        enter(gate, INFER)
    gate.resize(lease, 1, 1)
    assert told(gate.release(lease, 1)) == ["#1 has 0"]
    assert shown(gate, 1) == "1/1 +1/1 [0 infer 0] [infer 1]"


def test_a_resize_tells_what_was_due() -> None:
    gate = Gate("m", 1)
    lease = hold(gate, Operation.LOAD)
    enter(gate, INFER, timeout_s=1)
    assert told(gate.resize(lease, 2, 1)) == ["#1 expired"]


def test_a_gate_is_not_resized_under_a_slots_lease() -> None:
    gate = Gate("m", 2)
    lease = hold(gate)
    with pytest.raises(InvariantError):
        gate.resize(lease, 1, 0)
    assert shown(gate, 0) == "1/2 +0/0 [0 infer 0] []"


def test_a_gate_is_not_resized_under_a_lease_that_has_ended() -> None:
    gate = Gate("m", 2)
    lease = hold(gate, UNLOAD)
    gate.release(lease, 0)
    with pytest.raises(InvariantError):
        gate.resize(lease, 1, 0)
    assert shown(gate, 0) == "0/2 +0/0 [] []"


def test_a_gate_is_not_resized_under_another_gates_lease() -> None:
    gate, other = Gate("m", 2), Gate("other", 2)
    hold(gate, UNLOAD)
    foreign = hold(other, UNLOAD)
    with pytest.raises(InvariantError):
        gate.resize(foreign, 1, 0)
    assert shown(gate, 0) == "0/2 +0/0 [all unload 0] []"


@pytest.mark.parametrize("capacity", [0, 17, -1])
def test_a_gate_is_not_resized_to_what_no_gate_can_be(capacity: int) -> None:
    gate = Gate("m", 2)
    lease = hold(gate, UNLOAD)
    enter(gate, INFER, timeout_s=1)
    with pytest.raises(InvariantError):
        gate.resize(lease, capacity, 5)
    assert shown(gate, 5) == "0/2 +1/1 [all unload 5] [infer 5]"


# The attempt that never waits


def test_an_idle_model_can_be_taken_without_waiting() -> None:
    gate = Gate("m", 2)
    lease, decisions = gate.try_exclusive(EVICT, 1)
    assert lease is not None
    assert lease.slot is None
    assert decisions == []
    assert shown(gate, 2) == "0/2 +0/0 [all evict 1] []"


@pytest.mark.parametrize("operation", [INFER, UNLOAD])
def test_a_busy_model_cannot_be_taken(operation: Operation) -> None:
    gate = Gate("m", 2)
    hold(gate, operation)
    assert gate.try_exclusive(EVICT, 0) == (None, [])
    assert gate.snapshot(0).waiting == 0


def test_an_attempt_tells_what_was_due() -> None:
    gate = Gate("m", 1)
    hold(gate)
    enter(gate, INFER, timeout_s=1)
    lease, decisions = gate.try_exclusive(EVICT, 1)
    assert lease is None
    assert told(decisions) == ["#1 expired"]


def test_requests_wait_for_the_one_who_took_the_model() -> None:
    gate = Gate("m", 1)
    lease, _ = gate.try_exclusive(EVICT, 0)
    assert lease is not None
    enter(gate, INFER)
    assert told(gate.release(lease, 1)) == ["#1 has 0"]


def test_inference_cannot_take_the_whole_model() -> None:
    gate = Gate("m", 2)
    with pytest.raises(InvariantError):
        gate.try_exclusive(INFER, 0)
    assert gate.is_idle
