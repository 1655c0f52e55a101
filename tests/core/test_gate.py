"""What the gate decides, case by case; a whole gate is one line: active/capacity +requests/waiting [leases] [queue]."""

import math
from dataclasses import replace

import pytest

from antiphon.admission.gate import Decision, Gate, Granted, Lease, Waiter
from antiphon.vocabulary.errors import InvariantError
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


# Entry


def test_requests_fill_the_slots_from_the_lowest() -> None:
    gate = Gate("m", 2)
    decisions = [told(gate.submit(INFER, 0, 0)[1]) for _ in range(3)]
    assert decisions == [["#0 has 0"], ["#1 has 1"], []]
    assert shown(gate, 4) == "2/2 +1/1 [0 infer 4, 1 infer 4] [infer 4]"


def test_a_manager_has_an_idle_model_at_once() -> None:
    gate = Gate("m", 2)
    assert told(gate.submit(UNLOAD, 1, 5)[1]) == ["#0 has all"]
    assert shown(gate, 3) == "0/2 +0/0 [all unload 2] []"


def test_a_manager_waits_for_every_lease() -> None:
    gate = Gate("m", 2)
    first, second = hold(gate), hold(gate)
    assert told(gate.submit(UNLOAD, 1, 0)[1]) == []
    assert told(gate.release(first, 2)) == []
    assert told(gate.release(second, 3)) == ["#2 has all"]
    assert shown(gate, 4) == "0/2 +0/0 [all unload 1] []"


def test_a_spare_slot_behind_a_barrier_is_not_for_the_newcomer() -> None:
    gate = Gate("m", 2)
    hold(gate)
    enter(gate, UNLOAD)
    assert told(gate.submit(INFER, 1, 0)[1]) == []
    assert shown(gate, 1) == "1/2 +1/2 [0 infer 1] [unload 1, infer 0]"


def test_requests_behind_a_manager_start_together_when_it_ends() -> None:
    gate = Gate("m", 2)
    lease = hold(gate, UNLOAD)
    for _ in range(3):
        enter(gate, INFER)
    assert told(gate.release(lease, 1)) == ["#1 has 0", "#2 has 1"]
    assert shown(gate, 1) == "2/2 +1/1 [0 infer 0, 1 infer 0] [infer 1]"


def test_managers_follow_each_other_in_the_order_of_entry() -> None:
    gate = Gate("m", 2)
    lease = hold(gate, Operation.LOAD)
    enter(gate, UNLOAD)
    enter(gate, Operation.LOAD)
    assert told(gate.release(lease, 1)) == ["#1 has all"]
    assert shown(gate, 1) == "0/2 +0/1 [all unload 0] [load 1]"


def test_a_released_slot_is_the_next_to_be_leased() -> None:
    gate = Gate("m", 3)
    leases = [hold(gate) for _ in range(3)]
    gate.release(leases[2], 1)
    gate.release(leases[0], 1)
    assert told(gate.submit(INFER, 2, 0)[1]) == ["#3 has 0"]


# The overdue rule


def test_overdue_is_strict() -> None:
    gate = Gate("m", 1)
    hold(gate)
    assert told(gate.submit(INFER, 2, 2)[1]) == []
    assert told(gate.submit(INFER, 2, 1.9)[1]) == ["#2 overdue"]
    assert shown(gate, 2) == "1/1 +1/1 [0 infer 2] [infer 0]"


def test_one_healthy_occupant_permits_a_bounded_wait() -> None:
    gate = Gate("m", 2)
    hold(gate, now=0)
    hold(gate, now=9)
    assert told(gate.submit(INFER, 10, 2)[1]) == []
    assert told(gate.submit(UNLOAD, 10, 2)[1]) == []
    assert shown(gate, 10) == "2/2 +1/2 [0 infer 10, 1 infer 1] [infer 0, unload 0]"


def test_overdue_occupants_refuse_even_where_a_slot_is_spare_behind_a_barrier() -> None:
    gate = Gate("m", 2)
    hold(gate)
    enter(gate, UNLOAD)
    assert told(gate.submit(INFER, 3, 2)[1]) == ["#2 overdue"]
    assert shown(gate, 3) == "1/2 +0/1 [0 infer 3] [unload 3]"


def test_a_free_slot_is_leased_however_overdue_the_others_are() -> None:
    gate = Gate("m", 2)
    hold(gate)
    assert told(gate.submit(INFER, 100, 1)[1]) == ["#1 has 1"]


def test_a_manager_that_takes_too_long_is_overdue_too() -> None:
    gate = Gate("m", 2)
    hold(gate, UNLOAD)
    assert told(gate.submit(INFER, 3, 2)[1]) == ["#1 overdue"]


def test_a_claim_without_bound_waits_for_the_overdue() -> None:
    gate = Gate("m", 1)
    hold(gate)
    assert told(gate.submit(INFER, 1000, 0)[1]) == []
    assert gate.next_deadline() is None


def test_overdue_is_judged_at_entry_only() -> None:
    gate = Gate("m", 1)
    hold(gate)
    enter(gate, INFER, now=1, timeout_s=5)
    assert told(gate.expire(5.5)) == []


def test_age_runs_from_the_grant() -> None:
    gate = Gate("m", 1)
    first = hold(gate)
    enter(gate, INFER)
    gate.release(first, 10)
    assert told(gate.submit(INFER, 11, 2)[1]) == []
    assert shown(gate, 11) == "1/1 +1/1 [0 infer 1] [infer 0]"


# Deadlines


def test_a_deadline_that_has_come_expires() -> None:
    gate = Gate("m", 1)
    hold(gate)
    enter(gate, INFER, now=1, timeout_s=2)
    assert gate.next_deadline() == 3
    assert told(gate.expire(2.9)) == []
    assert told(gate.expire(3)) == ["#1 expired"]
    assert shown(gate, 3) == "1/1 +0/0 [0 infer 3] []"


def test_a_deadline_expires_before_anything_is_granted() -> None:
    gate = Gate("m", 1)
    lease = hold(gate)
    enter(gate, INFER, timeout_s=2)
    enter(gate, INFER)
    assert told(gate.release(lease, 2)) == ["#1 expired", "#2 has 0"]


def test_an_expired_barrier_frees_those_behind_it_in_the_same_call() -> None:
    gate = Gate("m", 2)
    hold(gate)
    enter(gate, UNLOAD, timeout_s=2)
    enter(gate, INFER)
    assert told(gate.expire(2)) == ["#1 expired", "#2 has 1"]
    assert shown(gate, 2) == "2/2 +0/0 [0 infer 2, 1 infer 0] []"


def test_a_late_timer_does_not_let_an_expired_barrier_stand_before_a_newcomer() -> None:
    gate = Gate("m", 2)
    hold(gate)
    enter(gate, UNLOAD, timeout_s=2)
    assert told(gate.submit(INFER, 5, 0)[1]) == ["#1 expired", "#2 has 1"]


def test_a_late_timer_frees_the_model_before_the_newcomer_is_called_hopeless() -> None:
    gate = Gate("m", 2)
    hold(gate)
    enter(gate, UNLOAD, timeout_s=2)
    enter(gate, INFER)
    assert told(gate.submit(INFER, 5, 1)[1]) == ["#1 expired", "#2 has 1"]
    assert shown(gate, 5) == "2/2 +1/1 [0 infer 5, 1 infer 0] [infer 0]"


def test_those_who_expire_together_are_told_by_deadline() -> None:
    gate = Gate("m", 1)
    hold(gate)
    for timeout_s in (3, 1, 2, 1):
        enter(gate, INFER, timeout_s=timeout_s)
    assert told(gate.expire(4)) == ["#2 expired", "#4 expired", "#3 expired", "#1 expired"]


def test_the_next_deadline_is_never_of_one_who_left() -> None:
    gate = Gate("m", 1)
    hold(gate)
    early = enter(gate, INFER, timeout_s=1)
    enter(gate, INFER, timeout_s=2)
    gate.withdraw(early, 0)
    assert gate.next_deadline() == 2


def test_the_deadline_of_one_who_left_passes_unnoticed() -> None:
    gate = Gate("m", 1)
    hold(gate)
    leaving = enter(gate, INFER, timeout_s=1)
    gate.withdraw(leaving, 0)
    assert told(gate.expire(2)) == []
    assert shown(gate, 2) == "1/1 +0/0 [0 infer 2] []"


def test_deadlines_survive_the_clean_up_after_many_have_left() -> None:
    gate = Gate("m", 1)
    hold(gate)
    waiters = [enter(gate, INFER, timeout_s=1 + place) for place in range(100)]
    for waiter in waiters[:98]:
        gate.withdraw(waiter, 0)
    enter(gate, INFER)
    assert len(gate._deadlines) == 2
    assert told(gate.expire(100)) == ["#99 expired", "#100 expired"]
    assert gate.next_deadline() is None


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


# What can be seen


def test_a_gate_is_idle_when_nobody_holds_and_nobody_waits() -> None:
    gate = Gate("m", 1)
    idle = [gate.is_idle]
    lease = hold(gate)
    idle.append(gate.is_idle)
    gate.release(lease, 1)
    assert [*idle, gate.is_idle] == [True, False, True]


def test_a_long_queue_is_listed_in_part_and_counted_whole() -> None:
    gate = Gate("m", 1)
    hold(gate)
    for _ in range(5):
        enter(gate, INFER)
    view = gate.snapshot(0, limit=2)
    assert (view.waiting, view.queued_requests, len(view.queue)) == (5, 5, 2)


def test_at_most_a_thousand_waiters_are_listed_unless_asked() -> None:
    gate = Gate("m", 1)
    hold(gate)
    for _ in range(1001):
        enter(gate, INFER)
    view = gate.snapshot(0)
    assert (view.waiting, len(view.queue)) == (1001, 1000)


def test_a_waiter_waits_for_every_lease_and_for_the_one_before_it() -> None:
    gate = Gate("m", 3)
    hold(gate)
    middle = hold(gate)
    hold(gate)
    gate.release(middle, 0)
    for operation in (UNLOAD, INFER, INFER):
        enter(gate, operation)
    assert [it.waits_for for it in gate.snapshot(0).queue] == [
        ("lease:0", "lease:2"),
        ("lease:0", "lease:2", "waiter:1"),
        ("lease:0", "lease:2", "waiter:2"),
    ]


def test_a_waiter_waits_for_the_one_who_has_the_whole_model() -> None:
    gate = Gate("m", 3)
    hold(gate, UNLOAD)
    enter(gate, INFER)
    enter(gate, INFER)
    assert [it.waits_for for it in gate.snapshot(0).queue] == [("lease:exclusive",), ("lease:exclusive", "waiter:1")]


def test_a_gate_shows_itself_in_one_line() -> None:
    shared, whole = Gate("m", 2), Gate("m", 2)
    hold(shared)
    hold(whole, UNLOAD)
    enter(whole, INFER)
    assert [repr(shared), repr(whole)] == ["<Gate m 1/2 +0>", "<Gate m exclusive +1>"]


def test_sixteen_slots_serve_sixteen_at_once() -> None:
    gate = Gate("m", 16)
    assert [hold(gate).slot for _ in range(16)] == list(range(16))
    assert told(gate.submit(INFER, 0, 0)[1]) == []


@pytest.mark.parametrize("capacity", [0, 17, -1])
def test_a_gate_has_one_to_sixteen_slots(capacity: int) -> None:
    with pytest.raises(InvariantError):
        Gate("m", capacity)


@pytest.mark.parametrize("timeout_s", [-1.0, math.inf, math.nan])
def test_a_wait_that_is_no_wait_is_refused_before_anything_changes(timeout_s: float) -> None:
    gate = Gate("m", 1)
    hold(gate)
    enter(gate, INFER, timeout_s=1)
    with pytest.raises(InvariantError):
        gate.submit(INFER, 5, timeout_s)
    assert shown(gate, 5) == "1/1 +1/1 [0 infer 5] [infer 5]"
