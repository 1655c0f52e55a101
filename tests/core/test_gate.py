"""What the gate decides when a claim enters, and when its deadline comes: case by case."""

from antiphon.admission.gate import Gate
from antiphon.vocabulary.states import Operation
from gate_words import INFER, UNLOAD, enter, hold, shown, told

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
