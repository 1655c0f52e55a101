"""Grows speaker turns out of probabilities that come bit by bit, and tells each once nothing can change it.

It knows no graph. Source of the rules: NeMo's vad_utils (`binarization`, then `filtering`, short speech first).
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from antiphon.vocabulary.tasks import SpeakerTurn
from antiphon_adapters.nemotron_diar.profile import TurnRules

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Span(NamedTuple):
    """Units: samples."""

    start: int
    end: int


class TurnFinder:
    """The turns of one stream. Units: `frame_samples` samples to a frame of probabilities, at `sample_rate` Hz.

    The state is a few frames and a few spans a speaker, however long the stream is.
    """

    def __init__(self, rules: TurnRules, speakers: int, frame_samples: int, sample_rate: int) -> None:
        self._frame_samples = frame_samples
        self._smoother = _Smoother(rules.median)
        self._frames = 0
        measures = _Measures.of(rules, sample_rate)
        self._voices = [_Voice(rules, measures) for _ in range(speakers)]

    def feed(self, probabilities: "NDArray[np.float32]") -> list[SpeakerTurn]:
        """Take the next frames, shape [n, speakers]; return the turns that became certain, by start and speaker."""
        self._hear(self._smoother.feed(probabilities))
        return self._named(voice.certain(self._frames * self._frame_samples) for voice in self._voices)

    def finish(self, end: int) -> list[SpeakerTurn]:
        """Return the rest, cut at the `end` of the audio, in samples."""
        self._hear(self._smoother.finish())
        rest = self._named(voice.finish(self._frames * self._frame_samples) for voice in self._voices)
        return [
            SpeakerTurn(turn.start_sample, min(turn.end_sample, end), turn.speaker_id)
            for turn in rest
            if turn.start_sample < end
        ]

    def _hear(self, rows: "Iterable[NDArray[np.float32]]") -> None:
        for row in rows:
            start = self._frames * self._frame_samples
            for voice, probability in zip(self._voices, row.tolist(), strict=True):
                voice.hear(probability, start)
            self._frames += 1

    @staticmethod
    def _named(spans: Iterable[list[_Span]]) -> list[SpeakerTurn]:
        named = [
            SpeakerTurn(span.start, span.end, f"SPEAKER_{speaker:02d}")
            for speaker, found in enumerate(spans)
            for span in found
        ]
        return sorted(named, key=lambda turn: (turn.start_sample, turn.speaker_id))


class _Smoother:
    """A running median over `width` frames, fewer at both ends; of an even number it takes the upper one."""

    def __init__(self, width: int) -> None:
        self._side = width // 2
        self._rows: deque[NDArray[np.float32]] = deque(maxlen=2 * self._side + 1)
        self._due = 0
        """How many of the rows have no median yet."""

    def feed(self, probabilities: "NDArray[np.float32]") -> "Iterator[NDArray[np.float32]]":
        for row in probabilities:
            self._rows.append(row)
            self._due += 1
            if self._due > self._side:
                yield self._median()

    def finish(self) -> "Iterator[NDArray[np.float32]]":
        while self._due:
            # The window slides out over the end.
            if len(self._rows) > self._side + self._due:
                self._rows.popleft()
            yield self._median()

    def _median(self) -> "NDArray[np.float32]":
        self._due -= 1
        if len(self._rows) == 1:
            return self._rows[0]
        ordered: NDArray[np.float32] = np.sort(np.stack(self._rows), axis=0)[len(self._rows) // 2]
        return ordered


@dataclass(frozen=True, slots=True)
class _Measures:
    """The rules' times. Units: samples."""

    pad_onset: int
    pad_offset: int
    min_on: int
    min_off: int

    @classmethod
    def of(cls, rules: TurnRules, rate: int) -> "_Measures":
        times_s = (rules.pad_onset_s, rules.pad_offset_s, rules.min_on_s, rules.min_off_s)
        return cls(*(round(time_s * rate) for time_s in times_s))


@dataclass(slots=True)
class _Voice:
    """One speaker's runs of speech: padded, joined where they touch, the short ones dropped, then short gaps closed.

    Units: samples.
    """

    rules: TurnRules
    measures: _Measures
    run_start: int | None = None
    touching: _Span | None = None
    """Padded runs that touch, to which the next run may be joined."""

    turn: _Span | None = None
    """Long enough, and close to what follows for all that is known."""

    done: list[_Span] = field(default_factory=list)

    def hear(self, probability: float, at: int) -> None:
        """Take the probability of the frame that begins at `at`."""
        if self.run_start is None:
            if probability > self.rules.onset:
                self.run_start = at
        elif probability < self.rules.offset:
            self._end_run(self.run_start, at)

    def certain(self, now: int) -> list[_Span]:
        """Hand out what no frame from `now` on can change."""
        earliest = (now if self.run_start is None else self.run_start) - self.measures.pad_onset
        if self.touching and self.touching.end < earliest:
            self._end_touching()
        follows = self.touching.start if self.touching else earliest
        if self.turn and follows - self.turn.end >= self.measures.min_off:
            self._end_turn()
        return self._handed_out()

    def finish(self, now: int) -> list[_Span]:
        """End everything at `now` and hand it out."""
        if self.run_start is not None:
            self._end_run(self.run_start, now)
        self._end_touching()
        self._end_turn()
        return self._handed_out()

    def _end_run(self, start: int, end: int) -> None:
        self.run_start = None
        padded = _Span(max(0, start - self.measures.pad_onset), end + self.measures.pad_offset)
        if self.touching and padded.start <= self.touching.end:
            self.touching = _Span(self.touching.start, padded.end)
            return
        self._end_touching()
        self.touching = padded

    def _end_touching(self) -> None:
        span, self.touching = self.touching, None
        if span is None or span.end - span.start < self.measures.min_on:
            return
        if self.turn and span.start - self.turn.end < self.measures.min_off:
            self.turn = _Span(self.turn.start, span.end)
            return
        self._end_turn()
        self.turn = span

    def _end_turn(self) -> None:
        if self.turn:
            self.done.append(self.turn)
        self.turn = None

    def _handed_out(self) -> list[_Span]:
        done, self.done = self.done, []
        return done
