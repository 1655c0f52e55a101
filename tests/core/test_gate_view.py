"""What a gate shows of itself, and what it is never made with."""

import math

import pytest

from antiphon.admission.gate import Gate
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import Operation
from gate_words import INFER, UNLOAD, enter, hold, shown, told


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


@pytest.mark.parametrize("holder", [INFER, UNLOAD])
def test_a_restored_gate_stands_as_the_first_did_and_decides_as_it_does(holder: Operation) -> None:
    gate = Gate("m", 2)
    lease = hold(gate, holder)
    enter(gate, UNLOAD, 1)
    enter(gate, INFER, 2, timeout_s=5)
    other = Gate.restore(gate.state())
    assert other.state() == gate.state()
    assert told(other.release(lease, 3)) == told(gate.release(lease, 3)) != []
    assert enter(other, INFER, 4) == enter(gate, INFER, 4)
    assert told(other.expire(8)) == told(gate.expire(8)) != []
    assert other.state() == gate.state()


def test_a_restored_gate_gives_out_the_slots_that_are_free() -> None:
    gate = Gate("m", 3)
    hold(gate)
    middle = hold(gate)
    hold(gate)
    gate.release(middle, 1)
    other = Gate.restore(gate.state())
    assert hold(other) == hold(gate)
    assert other.state() == gate.state()
