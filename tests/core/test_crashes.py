"""How crashes in a row delay the next load."""

import pytest

from antiphon.residency.crashes import LONGEST_BACK_OFF_S, CrashRecord, back_off_s


def crashed(times: int, now: float = 100.0) -> CrashRecord:
    record = CrashRecord()
    for _ in range(times):
        record = record.crashed(now)
    return record


@pytest.mark.parametrize("times", [0, 1, 2])
def test_fewer_than_three_crashes_delay_nothing(times):
    assert crashed(times).wait_s(100.0) == 0


@pytest.mark.parametrize(("times", "wait_s"), [(3, 1), (4, 2), (5, 4), (8, 32)])
def test_from_the_third_crash_on_the_wait_doubles(times, wait_s):
    assert crashed(times).wait_s(100.0) == wait_s


@pytest.mark.parametrize("times", [9, 10, 5000])
def test_the_wait_has_a_longest(times):
    assert back_off_s(times) == LONGEST_BACK_OFF_S


def test_the_wait_runs_from_the_last_crash_and_ends():
    record = crashed(2).crashed(200.0)
    assert [record.wait_s(now) for now in (200.0, 200.75, 201.0, 300.0)] == [1.0, 0.25, 0.0, 0.0]
