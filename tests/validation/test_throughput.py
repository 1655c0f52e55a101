"""Which number of slots is recommended."""

import pytest

from antiphon.validation.throughput import recommended


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
