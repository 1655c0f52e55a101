"""The microbenchmarks of admission do the same work on both sides."""

import pytest

from antiphon.bench.gates import GateCycle, SemaphoreCycle

WAITERS = [0, 1, 50]


@pytest.mark.parametrize("waiters", WAITERS)
def test_a_gate_keeps_its_waiters_over_any_number_of_turns(waiters: int) -> None:
    side = GateCycle("gate", waiters, cycles=100)
    before = side.snapshot()
    samples = [side.measure() for _ in range(3)]
    after = side.snapshot()
    assert (after.waiting, after.active_slots) == (before.waiting, before.active_slots)
    assert before.waiting == waiters
    assert [sample.requests for sample in samples] == [100] * 3


@pytest.mark.parametrize("waiters", WAITERS)
def test_a_semaphore_wakes_its_waiters_in_order(waiters: int) -> None:
    assert SemaphoreCycle("semaphore", waiters, cycles=100).measure().requests == 100
