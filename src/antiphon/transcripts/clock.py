"""Places in audio, from samples to milliseconds and clock text; every transcript format rounds here and only here."""

from typing import TypeAlias

from antiphon.vocabulary.tasks import Segment, SpeakerTurn, Word

Span: TypeAlias = Segment | SpeakerTurn | Word
"""What lies somewhere in a recording, in samples."""


def milliseconds(sample: int, rate: int) -> int:
    """The place of a sample in whole milliseconds, halves up; before the start is 0. Units: `rate` in Hz."""
    if rate < 1:
        raise ValueError("rate must be positive")
    return max(0, (2000 * sample + rate) // (2 * rate))


def span_ms(span: Span, rate: int) -> tuple[int, int]:
    """Where a span starts and ends, in milliseconds; an end before the start becomes the start."""
    start_ms = milliseconds(span.start_sample, rate)
    return start_ms, max(start_ms, milliseconds(span.end_sample, rate))


def clock_text(total_ms: int, decimal_mark: str) -> str:
    """Write milliseconds as `HH:MM:SS` + mark + `mmm`; hours take more digits when they need them."""
    total_s, ms = divmod(total_ms, 1000)
    minutes, seconds = divmod(total_s, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{decimal_mark}{ms:03}"
