"""WebVTT subtitles (https://www.w3.org/TR/webvtt1/); it knows no other format."""

from collections.abc import Sequence

from antiphon.transcripts.clock import clock_text, span_ms
from antiphon.vocabulary.tasks import Segment

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\0": "\N{REPLACEMENT CHARACTER}"}


def vtt(segments: Sequence[Segment], rate: int) -> str:
    """Write segments as WebVTT: a dot before the milliseconds; no speech is the header alone.

    Units: `rate` in Hz. A cue's text is one line, because an empty line would end the cue, and what the format reads as
    markup is escaped.
    """
    cues = [(segment, " ".join(segment.text.split())) for segment in segments]
    return "WEBVTT\n\n" + "".join(f"{_times(segment, rate)}\n{_escaped(text)}\n\n" for segment, text in cues if text)


def _times(segment: Segment, rate: int) -> str:
    start_ms, end_ms = span_ms(segment, rate)
    return f"{clock_text(start_ms, '.')} --> {clock_text(end_ms, '.')}"


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)
