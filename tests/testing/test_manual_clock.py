"""The clock that a test owns."""

import pytest

from antiphon.ports.clock import Clock
from antiphon.testing import ClockStatistics, ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(start=10.0)


def test_it_is_a_clock(clock: ManualClock) -> None:
    as_port: Clock = clock
    assert as_port.now() == 10.0


def test_it_stands_still_until_it_is_advanced(clock: ManualClock) -> None:
    clock.advance(2.5)
    assert clock.now() == 12.5


def test_a_timer_never_fires_early(clock: ManualClock) -> None:
    fired: list[float] = []
    clock.call_at(11.0, lambda: fired.append(clock.now()))
    clock.advance(0.999)
    assert fired == []
    clock.advance(0.001)
    assert fired == [11.0]


def test_due_timers_fire_in_the_order_of_time_and_then_of_making(clock: ManualClock) -> None:
    fired: list[str] = []
    clock.call_at(12.0, lambda: fired.append("late"))
    clock.call_at(11.0, lambda: fired.append("first"))
    clock.call_at(11.0, lambda: fired.append("second"))
    clock.advance(5)
    assert fired == ["first", "second", "late"]


def test_each_call_sees_its_own_moment(clock: ManualClock) -> None:
    seen: list[float] = []
    for when in (13.0, 11.0):
        clock.call_at(when, lambda: seen.append(clock.now()))
    clock.advance(5)
    assert seen == [11.0, 13.0]
    assert clock.now() == 15.0


def test_a_cancelled_timer_never_fires(clock: ManualClock) -> None:
    fired: list[str] = []
    timer = clock.call_at(11.0, lambda: fired.append("cancelled"))
    timer.cancel()
    clock.advance(5)
    assert fired == []


def test_a_timer_made_by_a_call_fires_in_the_same_advance_when_it_is_due(clock: ManualClock) -> None:
    seen: list[float] = []

    def again() -> None:
        clock.call_at(12.0, lambda: seen.append(clock.now()))

    clock.call_at(11.0, again)
    clock.advance(2)
    assert seen == [12.0]


def test_a_moment_in_the_past_waits_for_the_next_advance_and_turns_no_time_back(clock: ManualClock) -> None:
    seen: list[float] = []
    clock.call_at(3.0, lambda: seen.append(clock.now()))
    assert seen == []
    clock.advance(0)
    assert seen == [10.0]


def test_it_does_not_run_backwards(clock: ManualClock) -> None:
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)
    assert clock.now() == 10.0


def test_its_statistics_tell_what_is_pending_and_what_fired(clock: ManualClock) -> None:
    clock.call_at(13.0, lambda: None)
    clock.call_at(12.0, lambda: None)
    clock.call_at(11.0, lambda: None)
    clock.call_at(12.5, lambda: None).cancel()
    clock.advance(1)
    assert clock.statistics() == ClockStatistics(now=11.0, pending=(12.0, 13.0), fired=1)
