"""Grows one transcript out of the segments that the engine yields. It calls no engine."""

import math
from collections.abc import Sequence
from typing import Protocol

from antiphon.vocabulary.tasks import Segment, TaskResult, Word
from antiphon_adapters.whisper.listening import SAMPLE_RATE


class HeardWord(Protocol):
    """A word of faster-whisper. Units: seconds."""

    start: float
    end: float
    word: str
    probability: float


class HeardSegment(Protocol):
    """A segment of faster-whisper. Units: seconds."""

    start: float
    end: float
    text: str
    tokens: list[int]
    temperature: float | None
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float

    @property
    def words(self) -> Sequence[HeardWord] | None: ...


class Transcript:
    """Segments and words in order, none before the end of the one before it, all inside the recording.

    Units: `frames` samples of the whole recording at 16 kHz; for live audio, of what has come.
    """

    def __init__(self, frames: int = 0) -> None:
        self.frames = frames
        self._raw = ""
        self._text = ""
        self._segments: list[Segment] = []
        self._words: list[Word] = []

    @property
    def end_sample(self) -> int:
        """Where the last segment ends."""
        return self._segments[-1].end_sample if self._segments else 0

    def add(self, heard: HeardSegment, offset: int) -> str:
        """Take a segment whose times count from the sample `offset`; return the text that it adds."""
        self._raw += heard.text
        grown = self._raw.strip()
        delta, self._text = grown[len(self._text) :], grown
        start, end = self._span(heard.start, heard.end, offset, self.end_sample)
        self._segments.append(
            Segment(
                text=heard.text.strip(),
                start_sample=start,
                end_sample=end,
                tokens=tuple(int(token) for token in heard.tokens),
                temperature=_finite(heard.temperature),
                avg_logprob=_finite(heard.avg_logprob),
                compression_ratio=_finite(heard.compression_ratio),
                no_speech_prob=_finite(heard.no_speech_prob),
            )
        )
        for word in heard.words or ():
            self._add_word(word, offset)
        return delta

    def result(self, language: str | None) -> TaskResult:
        """All that was heard."""
        return TaskResult(
            text=self._text,
            language=language,
            segments=tuple(self._segments),
            words=tuple(self._words),
            sample_rate=SAMPLE_RATE,
        )

    def _add_word(self, heard: HeardWord, offset: int) -> None:
        if text := heard.word.strip():
            last = self._words[-1].end_sample if self._words else 0
            start, end = self._span(heard.start, heard.end, offset, last)
            self._words.append(Word(text, start, end, _finite(heard.probability)))

    def _span(self, start_s: float, end_s: float, offset: int, last: int) -> tuple[int, int]:
        start = min(max(offset + round(start_s * SAMPLE_RATE), last), self.frames)
        end = min(max(offset + round(end_s * SAMPLE_RATE), start), self.frames)
        return start, end


def _finite(value: float | None) -> float | None:
    """A Python float, or None for what JSON cannot hold."""
    return float(value) if value is not None and math.isfinite(value) else None
