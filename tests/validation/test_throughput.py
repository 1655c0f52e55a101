"""Which number of slots is recommended, and how it is said."""

import pytest
from msgspec.structs import replace

from antiphon.validation.evidence import Rate, Throughput
from antiphon.validation.report import closing_lines
from antiphon.validation.throughput import is_clear, recommended
from evidence_samples import evidence_of


@pytest.mark.parametrize(
    ("rates", "slots"),
    [
        ({1: 10.0}, 1),
        ({1: 10.0, 2: 19.0, 4: 19.5}, 2),
        ({1: 10.0, 2: 15.0, 4: 19.0}, 4),
        ({1: 10.0, 2: 9.0}, 1),
        ({1: 10.0, 2: 10.4}, 1),
    ],
)
def test_the_fewest_slots_are_recommended_that_nothing_beats_by_far(rates: dict[int, float], slots: int) -> None:
    assert recommended(rates) == slots


MEASURED = Throughput((Rate(1, 10.0, 9.8, 10.1), Rate(2, 19.0, 18.5, 19.4)), recommended_slots=2)
UNSTEADY = Throughput((Rate(1, 10.0, 8.0, 12.0), Rate(2, 19.0, 18.5, 19.4)), recommended_slots=2)


def test_rounds_that_differ_more_than_what_is_decided_by_are_not_clear() -> None:
    assert is_clear(MEASURED)
    assert not is_clear(UNSTEADY)


def test_the_recommendation_says_what_it_rests_on() -> None:
    lines = list(closing_lines(replace(evidence_of(2), throughput=MEASURED)))
    assert lines == [
        "offline: validated up to 2 slots",
        "1 slot, 1 client: 10.00 requests/s (rounds from 9.80 to 10.10)",
        "2 slots, 2 clients: 19.00 requests/s (rounds from 18.50 to 19.40)",
        "recommended here: 2 slots, the fewest that no other number beats by 5%",
    ]


def test_a_recommendation_from_unsteady_rounds_says_so() -> None:
    *_, last = closing_lines(replace(evidence_of(2), throughput=UNSTEADY))
    assert last == "the rounds differ too much to tell: measure again while the machine does nothing else"


def test_too_few_starts_are_named_instead_of_no_slots() -> None:
    evidence = evidence_of(2)
    (line,) = closing_lines(replace(evidence, plan=replace(evidence.plan, starts=1)))
    assert line == "offline: nothing is validated by 1 of the 3 starts that it takes"
