"""API-07: milliseconds are rounded once, carried and clamped."""

import pytest

from antiphon.transcripts.clock import clock_text, milliseconds, span_ms
from antiphon.vocabulary.tasks import Segment


@pytest.mark.parametrize(
    ("seconds_times_10000", "text"),
    [
        (9_995, "00:00:01,000"),
        (9_994, "00:00:00,999"),
        (599_996, "00:01:00,000"),
        (35_999_999, "01:00:00,000"),
        (36_615_000, "01:01:01,500"),
        (-3_000, "00:00:00,000"),
        (0, "00:00:00,000"),
    ],
)
def test_a_place_is_rounded_to_whole_milliseconds_once_and_carries(seconds_times_10000: int, text: str) -> None:
    assert clock_text(milliseconds(seconds_times_10000, 10_000), ",") == text


@pytest.mark.parametrize("half_ms", [1, 3, 5, 1999])
def test_half_a_millisecond_always_rounds_up(half_ms: int) -> None:
    assert milliseconds(half_ms, 2000) == (half_ms + 1) // 2


def test_hours_take_more_than_two_digits_when_they_need_them() -> None:
    assert clock_text(100 * 3_600_000 + 1, ".") == "100:00:00.001"


def test_an_end_before_its_start_is_moved_to_the_start() -> None:
    assert span_ms(Segment("x", start_sample=2000, end_sample=1000), 1000) == (2000, 2000)


def test_a_span_before_the_beginning_is_empty_at_the_beginning() -> None:
    assert span_ms(Segment("x", start_sample=-300, end_sample=-100), 1000) == (0, 0)


def test_a_place_without_a_sample_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="rate must be positive"):
        milliseconds(1, 0)
