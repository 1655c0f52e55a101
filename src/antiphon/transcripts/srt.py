"""SubRip subtitles (.srt); it knows no other format."""

from collections.abc import Sequence

from antiphon.transcripts.clock import clock_text, span_ms
from antiphon.vocabulary.tasks import Segment


def srt(segments: Sequence[Segment], rate: int) -> str:
    """Write segments as SubRip: numbered cues, a comma before the milliseconds; no speech is an empty file.

    Units: `rate` in Hz. A cue's text is one line, because an empty line would end the cue; SubRip has no escapes.
    """
    cues = [(segment, " ".join(segment.text.split()).replace("-->", "->")) for segment in segments]
    spoken = [(segment, text) for segment, text in cues if text]
    return "".join(
        f"{number}\n{_times(segment, rate)}\n{text}\n\n" for number, (segment, text) in enumerate(spoken, start=1)
    )


def _times(segment: Segment, rate: int) -> str:
    start_ms, end_ms = span_ms(segment, rate)
    return f"{clock_text(start_ms, ',')} --> {clock_text(end_ms, ',')}"
