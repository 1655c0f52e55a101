"""Speaker turns as RTTM, the format in which they are scored; it knows no other.

Format: https://github.com/nryant/dscore#rttm: ten fields a line, of which a turn uses the file's name, the channel, the
onset and the duration in seconds, and the speaker's name.
"""

from collections.abc import Sequence

from antiphon.transcripts.clock import span_ms
from antiphon.vocabulary.tasks import SpeakerTurn


def rttm(turns: Sequence[SpeakerTurn], rate: int, name: str) -> str:
    """Write a line a turn. Units: `rate` in Hz. Names are one field each: white space in them becomes `_`."""
    return "".join(_line(turn, rate, _field(name)) for turn in turns)


def _line(turn: SpeakerTurn, rate: int, name: str) -> str:
    start_ms, end_ms = span_ms(turn, rate)
    start, duration = f"{start_ms / 1000:.3f}", f"{(end_ms - start_ms) / 1000:.3f}"
    return f"SPEAKER {name} 1 {start} {duration} <NA> <NA> {_field(turn.speaker_id)} <NA> <NA>\n"


def _field(text: str) -> str:
    return "_".join(text.split()) or "<NA>"
