"""The whole state space of a small gate, walked beside the oracle. The counts guard the coverage itself."""

import pytest

from admission_exploration import Scope, explore


@pytest.mark.slow
def test_every_state_of_two_slots_four_requests_and_two_managers_agrees_with_the_oracle() -> None:
    # Without bound, shorter and longer than an occupant's age; a due timer may be overtaken for a whole tick.
    scope = Scope(requests=4, managers=2, timeouts=(0, 1, 2), lateness=1)
    assert explore(scope) == (31_771, 333_451)


def test_the_same_holds_of_slots_that_are_told_apart() -> None:
    scope = Scope(requests=4, managers=2, timeouts=(0, 1), lateness=1, slots_are_alike=False)
    assert explore(scope) == (5_949, 61_766)


def test_the_same_holds_of_one_slot() -> None:
    scope = Scope(requests=3, managers=2, timeouts=(0, 1), lateness=1, capacity=1)
    assert explore(scope) == (1_325, 12_431)


def test_the_same_holds_of_a_gate_that_managers_resize() -> None:
    scope = Scope(requests=3, managers=2, timeouts=(0, 1), lateness=1, resizes=(1, 2, 3))
    assert explore(scope) == (3_935, 41_798)
