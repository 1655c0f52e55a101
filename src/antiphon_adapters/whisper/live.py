"""Transcribes somebody who is still speaking: what is decoded when, and what of it is said. It runs no model itself.

Every decision hangs on the audio alone, counted in frames, and on no clock: the same audio gives the same events
however it is cut into chunks and however fast the machine is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.tasks import Final, SpeechStarted, SpeechStopped, StreamEvent, TaskResult, TextDelta
from antiphon_adapters.silero.endpointing import FRAME_SAMPLES, Endpointer, Pauses
from antiphon_adapters.stretches import quietest, within_full_scale
from antiphon_adapters.whisper.agreement import Agreement
from antiphon_adapters.whisper.decoding import Heard
from antiphon_adapters.whisper.listening import SAMPLE_RATE, SHORTEST_MS, Passage
from antiphon_adapters.whisper.live_audio import Tape, frames_of
from antiphon_adapters.whisper.transcript import HeardSegment, Transcript

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHORTEST_SAMPLES = SHORTEST_MS * SAMPLE_RATE // 1000

PAD_SAMPLES = 400 * SAMPLE_RATE // 1000
"""What is listened to before and after the detected speech; an offline call takes as much."""

LONG_SAMPLES = 15 * SAMPLE_RATE
"""A piece this long ends at the next short pause."""

SHORT_PAUSE_SAMPLES = 200 * SAMPLE_RATE // 1000

LONGEST_SAMPLES = 28 * SAMPLE_RATE
"""A piece this long ends where it is quietest: the model's window is 30 s."""

SEARCH_SAMPLES = 8 * SAMPLE_RATE
"""How far back that may be, but not before the last word that was said."""

GROWTH = 15
"""The next guess takes in a fifteenth more at least: the longer a piece is, the longer a guess takes."""

LOOPING = 2.4
"""A text that compresses better goes round in circles (Whisper's own threshold)."""


class Decoder(Protocol):
    """Turns a passage into segments; a language of None is found."""

    def whole(self, passage: Passage, language: str | None) -> Heard:
        """As an offline call does."""
        ...

    def glimpse(self, passage: Passage, language: str | None) -> Heard:
        """Fast, and with the times of words."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """Units: samples. `step` is how much more speech there is at the next guess, `silence` what ends an utterance."""

    step: int
    silence: int


@dataclass(slots=True)
class _Piece:
    """What is decoded together: an utterance, or a part of a long one. Units: samples from the audio's start."""

    start: int
    voiced: int
    """How much of it is speech and not a pause."""

    guessed: int = 0
    """How much of that was there at the latest guess."""

    said_until: int = 0
    """Where the last word that was said ends."""

    agreement: Agreement = field(default_factory=Agreement)


class LiveTranscription:
    """One stream of live audio, from its first sample to its last.

    It keeps the audio of the piece at hand, at most 30 s, and the text of all.
    """

    def __init__(
        self,
        decoder: Decoder,
        speech: "Callable[[NDArray[np.float32]], float]",
        pace: Pace,
        language: str | None,
        cancelled: Callable[[], bool],
    ) -> None:
        self._decoder = decoder
        self._speech = speech
        self._pace = pace
        self._language = language
        self._cancelled = cancelled
        self._tape = Tape()
        self._endpointer = Endpointer(Pauses(SHORTEST_SAMPLES, pace.silence))
        self._piece: _Piece | None = None
        self._settled = 0
        self._transcript = Transcript()
        self._text = ""

    def events(self, audio: Iterator[AudioChunk]) -> Iterator[StreamEvent]:
        """Yield what is heard while it is heard, then all of it; what `audio` raises comes through."""
        for frame in frames_of(audio, FRAME_SAMPLES):
            if self._cancelled():
                break
            yield from self._hear(frame)
        else:
            yield from self._finish()
        yield Final(self._result())

    def _hear(self, frame: "NDArray[np.float32]") -> Iterator[StreamEvent]:
        import numpy as np

        self._tape.append(frame)
        match self._endpointer.hear(self._speech(np.pad(frame, (0, FRAME_SAMPLES - len(frame))))):
            case SpeechStarted() as started:
                yield self._begin(started)
            case SpeechStopped(at_sample) as stopped:
                yield from self._end(stopped, min(at_sample + PAD_SAMPLES, self._tape.end))
            case None if self._piece is not None:
                yield from self._go_on(self._piece)
        self._tape.forget(self._needed_from())

    def _needed_from(self) -> int:
        """The first sample of the piece at hand, or of one that may begin."""
        if self._piece is not None:
            return self._piece.start
        began = self._endpointer.started
        return max(self._settled, (self._tape.end if began is None else began) - PAD_SAMPLES)

    def _finish(self) -> Iterator[StreamEvent]:
        for edge in self._endpointer.finish(self._tape.end):
            if isinstance(edge, SpeechStarted):
                yield self._begin(edge)
            else:
                yield from self._end(edge, self._tape.end)

    def _begin(self, started: SpeechStarted) -> SpeechStarted:
        start = max(self._tape.start, started.at_sample - PAD_SAMPLES)
        self._piece = _Piece(start, voiced=self._tape.end - started.at_sample)
        return started

    def _end(self, stopped: SpeechStopped, until: int) -> Iterator[StreamEvent]:
        if self._piece is not None:
            yield from self._settle(self._piece, until)
        self._piece = None
        self._settled = until
        yield stopped

    def _go_on(self, piece: _Piece) -> Iterator[TextDelta]:
        pause, end = self._endpointer.pause, self._tape.end
        piece.voiced += 0 if pause else FRAME_SAMPLES
        length = end - piece.start
        if length >= LONG_SAMPLES and pause >= SHORT_PAUSE_SAMPLES:
            yield from self._settle(piece, end)
            self._piece = _Piece(end - pause, voiced=0)  # both have the pause: words need silence around them
        elif length >= LONGEST_SAMPLES:
            cut = self._quiet_moment(piece)
            yield from self._settle(piece, cut)
            self._piece = _Piece(cut, voiced=end - cut)
        elif piece.voiced - piece.guessed >= max(self._pace.step, length // GROWTH):
            yield from self._guess(piece)

    def _quiet_moment(self, piece: _Piece) -> int:
        """Where to cut a piece that has no pause, behind all that was said."""
        end = self._tape.end
        start = min(max(piece.said_until, end - SEARCH_SAMPLES), end - SAMPLE_RATE)
        return start + quietest(self._tape.read(start, end))

    def _guess(self, piece: _Piece) -> Iterator[TextDelta]:
        """Decode the piece as far as it has come, and say what the guess before says too."""
        piece.guessed = piece.voiced
        segments, _ = self._decoder.glimpse(self._passage(piece, self._tape.end), self._language)
        heard = list(segments)
        if any(segment.compression_ratio > LOOPING for segment in heard):
            return
        fresh = piece.agreement.hear("".join(segment.text for segment in heard))
        # A guess may agree with less than was said; that is said all the same.
        piece.said_until = max(piece.said_until, piece.start + _end_of(heard, piece.agreement.agreed))
        yield from self._say(fresh, min(piece.said_until, self._tape.end))

    def _settle(self, piece: _Piece, until: int) -> Iterator[TextDelta]:
        """Decode all of a piece as an offline call does, and say what is left of it."""
        if piece.voiced > SHORTEST_SAMPLES:
            segments, language = self._decoder.whole(self._passage(piece, until), self._language)
            self._transcript.frames = until
            text = ""
            for segment in segments:
                text += segment.text
                self._transcript.add(segment, piece.start)
            if text.strip():
                self._language = language
            yield from self._say(piece.agreement.settle(text), until)

    def _passage(self, piece: _Piece, end: int) -> Passage:
        speech = within_full_scale(self._tape.read(piece.start, end))
        return Passage(piece.start, end, speech, [{"start": 0, "end": len(speech)}])

    def _say(self, fresh: str, until: int) -> Iterator[TextDelta]:
        if delta := fresh if self._text else fresh.lstrip():
            self._text += delta
            yield TextDelta(delta, until)

    def _result(self) -> TaskResult:
        """All that was said; the segments and words are those of the last pass over each piece."""
        return replace(self._transcript.result(self._language), text=self._text)


def _end_of(heard: list[HeardSegment], characters: int) -> int:
    """Where the last word ends that begins within the first so many characters, in samples; 0 without one."""
    end, length = 0.0, 0
    for word in (word for segment in heard for word in segment.words or ()):
        if length >= characters:
            break
        end = word.end
        length += len(word.word)
    return round(end * SAMPLE_RATE)
