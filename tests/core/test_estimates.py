"""How long a claim will probably wait."""

import math
from itertools import pairwise, product

import pytest

from antiphon.admission.estimates import RunTimes, drain_s, retry_after_s, wait_estimate_s, wait_estimates_s
from antiphon.admission.gate import Gate, GateView
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import Operation

INFER, UNLOAD = Operation.INFER, Operation.UNLOAD


def view(slots: int, *claims: Operation, now: float = 0, since: tuple[float, ...] = (), limit: int = 1000) -> GateView:
    """A gate at `now` that these claims entered in order; the first ones at the times in `since`, the rest at 0."""
    gate = Gate("m", slots)
    for place, operation in enumerate(claims):
        gate.submit(operation, since[place] if place < len(since) else 0, 0)
    return gate.snapshot(now, limit)


# The pace


def test_nothing_is_known_before_the_first_measurement() -> None:
    times = RunTimes()
    assert (times.mean_run_s, times.mean_load_s) == (None, None)


def test_the_first_measurement_is_the_mean() -> None:
    times = RunTimes()
    times.note_run(3)
    times.note_load(20)
    assert (times.mean_run_s, times.mean_load_s) == (3, 20)


def test_a_new_measurement_counts_for_a_fifth() -> None:
    times = RunTimes()
    for seconds in (10, 20):
        times.note_run(seconds)
        times.note_load(2 * seconds)
    assert (times.mean_run_s, times.mean_load_s) == (12, 24)


def test_the_mean_follows_a_change_of_pace() -> None:
    times = RunTimes()
    for seconds in [1.0] * 5 + [9.0] * 10:
        times.note_run(seconds)
    assert times.mean_run_s == pytest.approx(9 - 8 * 0.8**10)


def test_other_weights_have_no_load_time_yet_and_the_pace_of_runs_stays() -> None:
    times = RunTimes()
    times.note_run(1)
    times.note_load(20)
    times.forget_loads()
    assert (times.mean_run_s, times.mean_load_s) == (1, None)
    times.note_load(5)
    assert times.mean_load_s == 5


@pytest.mark.parametrize("seconds", [-0.1, math.inf, math.nan])
def test_what_is_no_duration_is_refused(seconds: float) -> None:
    times = RunTimes()
    times.note_run(1)
    with pytest.raises(InvariantError):
        times.note_run(seconds)
    with pytest.raises(InvariantError):
        times.note_load(seconds)
    assert (times.mean_run_s, times.mean_load_s) == (1, None)


# The wait of those in the queue


def test_those_behind_one_slot_wait_one_run_more_each() -> None:
    assert wait_estimates_s(view(1, *[INFER] * 4), 10) == (10, 20, 30)


def test_slots_share_the_queue() -> None:
    assert wait_estimates_s(view(2, *[INFER] * 6), 10) == (10, 10, 20, 20)


def test_what_has_run_for_a_while_has_less_to_go() -> None:
    # One slot leased since 0 and one since 6, both to run for 10 in all.
    running = view(2, *[INFER] * 5, now=8, since=(0, 6))
    assert wait_estimates_s(running, 10) == (2, 8, 12)


def test_what_has_run_for_too_long_may_end_at_any_moment() -> None:
    assert wait_estimates_s(view(1, *[INFER] * 3, now=100), 10) == (0, 10)


def test_a_manager_waits_for_the_last_slot_and_those_behind_it_for_the_manager() -> None:
    running = view(2, INFER, INFER, UNLOAD, INFER, INFER, INFER, now=8, since=(0, 6))
    assert wait_estimates_s(running, 10) == (8, 18, 18, 28)


def test_a_spare_slot_behind_a_barrier_is_for_nobody() -> None:
    assert wait_estimates_s(view(2, INFER, UNLOAD, INFER), 10) == (10, 20)


def test_one_who_has_the_whole_model_keeps_every_slot() -> None:
    assert wait_estimates_s(view(2, UNLOAD, INFER, INFER, INFER, now=4), 10) == (6, 6, 16)


def test_the_wait_of_one_is_that_of_the_whole_listing() -> None:
    running = view(2, INFER, INFER, UNLOAD, INFER, INFER, UNLOAD, now=3)
    assert tuple(wait_estimate_s(running, it.position, 10) for it in running.queue) == wait_estimates_s(running, 10)


@pytest.mark.parametrize("position", [0, -1, 3])
def test_a_position_that_is_not_listed_has_no_estimate(position: int) -> None:
    with pytest.raises(InvariantError):
        wait_estimate_s(view(1, *[INFER] * 5, limit=2), position, 10)


# The wait of one that is refused


def test_one_that_is_refused_would_come_last() -> None:
    assert retry_after_s(view(1, *[INFER] * 4), 10) == 40
    assert retry_after_s(view(2, *[INFER] * 5), 10) == 20


def test_a_free_slot_costs_no_wait() -> None:
    assert retry_after_s(view(2), 10) == 0
    assert retry_after_s(view(2, INFER), 10) == 0


@pytest.mark.parametrize("limit", [0, 1, 2, 7])
@pytest.mark.parametrize("slots", [1, 2, 3])
def test_requests_need_not_be_listed_to_be_counted(slots: int, limit: int) -> None:
    claims, since = [INFER] * 11, (0.0, 3.0, 4.0)
    whole = view(slots, *claims, now=5, since=since)
    assert retry_after_s(view(slots, *claims, now=5, since=since, limit=limit), 10) == retry_after_s(whole, 10)


def test_managers_that_are_not_listed_count_after_the_requests_that_are_not() -> None:
    claims = [INFER, INFER, UNLOAD, INFER, UNLOAD]
    assert retry_after_s(view(2, *claims), 10) == 40
    assert retry_after_s(view(2, *claims, limit=0), 10) == 40
    assert retry_after_s(view(2, *claims, limit=1), 10) == 40


# What must hold of every queue


QUEUES = [queue for length in range(6) for queue in product([INFER, UNLOAD], repeat=length)]


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_a_wait_grows_with_the_queue(slots: int) -> None:
    for queue in QUEUES:
        shorter = retry_after_s(view(slots, *queue, now=4), 10)
        for one_more in (INFER, UNLOAD):
            assert retry_after_s(view(slots, *queue, one_more, now=4), 10) >= shorter
        unlisted = [retry_after_s(view(slots, *queue, *[INFER] * more, now=4, limit=1), 10) for more in range(5)]
        assert all(fewer <= more for fewer, more in pairwise(unlisted))


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_a_wait_grows_with_the_mean(slots: int) -> None:
    for queue in QUEUES:
        gate = view(slots, *queue, now=4)
        waits = [(*wait_estimates_s(gate, mean_s), retry_after_s(gate, mean_s)) for mean_s in (0, 1, 4, 5, 10, 100)]
        for slower, faster in pairwise(reversed(waits)):
            assert all(one >= other for one, other in zip(slower, faster, strict=True))


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_one_that_is_refused_would_wait_as_the_next_in_the_queue_does(slots: int) -> None:
    for queue in QUEUES:
        before, after = view(slots, *queue, now=4), view(slots, *queue, INFER, now=4)
        if after.waiting > before.waiting:
            assert retry_after_s(before, 10) == wait_estimates_s(after, 10)[-1]


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_manager_that_came_now_would_wait_as_the_next_manager_in_the_queue_does(slots: int) -> None:
    for claims in product([INFER, UNLOAD], repeat=4):
        after = view(slots, *claims, UNLOAD, now=1)
        wait = wait_estimate_s(after, len(after.queue), 10) if after.queue else 0
        assert drain_s(view(slots, *claims, now=1), 10) == wait


def test_an_idle_model_is_drained_already() -> None:
    assert drain_s(view(4), 10) == 0


def test_a_manager_waits_for_the_last_slot_where_a_request_takes_the_first() -> None:
    busy = view(2, INFER, INFER, now=6, since=(0, 4))
    assert (retry_after_s(busy, 10), drain_s(busy, 10)) == (4, 8)
