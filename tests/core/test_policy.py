"""The two judgements about time, as tables."""

import pytest

from antiphon.admission.policy import effective_timeout_s, is_hopeless, seconds


@pytest.mark.parametrize(
    ("request_s", "model_s", "server_s", "effective_s"),
    [
        (None, None, 300, 300),  # nobody says anything: the server's default
        (None, 10, 300, 10),  # the model's ceiling stands in for the server's default
        (None, 900, 300, 900),  # also where it is longer
        (None, 0, 300, 0),  # and where it is no bound
        (None, None, 0, 0),
        (5, None, 300, 5),  # a request may wait less
        (900, None, 300, 300),  # but no longer than it is allowed
        (900, 10, 300, 10),
        (5, 0, 300, 5),  # a bound is shorter than none
        (0, None, 300, 300),  # so to ask for none gains nothing
        (0, 10, 300, 10),
        (0, 0, 300, 0),
        (0, None, 0, 0),
    ],
)
def test_the_shortest_wait_counts_and_zero_is_no_bound(
    request_s: float | None, model_s: float | None, server_s: float, effective_s: float
) -> None:
    assert effective_timeout_s(request_s, model_s, server_s) == effective_s


@pytest.mark.parametrize(
    ("occupied_since", "timeout_s", "hopeless"),
    [
        ([], 1, False),  # free slots are no occupants
        ([0], 1, True),
        ([0], 10, False),  # as long as the wait is not longer
        ([0, 9.5], 1, False),  # one is healthy
        ([0, 8], 1, True),
        ([0], 0, False),  # no bound, never hopeless
    ],
)
def test_a_wait_is_hopeless_when_every_occupant_is_overdue(
    occupied_since: list[float], timeout_s: float, hopeless: bool
) -> None:
    assert is_hopeless(occupied_since, 10, timeout_s) is hopeless


@pytest.mark.parametrize(("milliseconds", "wanted"), [(None, None), (0, 0), (1500, 1.5)])
def test_a_configured_time_is_told_in_seconds_and_an_absent_one_stays_absent(milliseconds, wanted) -> None:
    assert seconds(milliseconds) == wanted
