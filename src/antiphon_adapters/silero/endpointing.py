"""Finds where speech begins and ends in a stream of probabilities; it hears no sound and knows no text.

The rules are those of Silero's own `get_speech_timestamps`, taken one frame at a time.
"""

from dataclasses import dataclass

from antiphon.vocabulary.tasks import SpeechStarted, SpeechStopped

FRAME_SAMPLES = 512
"""What one probability is about. Units: samples at 16 kHz, 32 ms."""

THRESHOLD = 0.5
"""A frame at or above it is speech."""

HYSTERESIS = 0.15
"""Speech goes on until a frame is this far below the threshold."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """What counts as speech and as its end. Units: samples."""

    shortest_speech: int
    """Sounds up to this long are none."""

    silence: int
    """How long the speaker is silent when the utterance is over."""

    padding: int = 0
    """How much silence before and after an utterance is counted to it; two of them never overlap."""

    threshold: float = THRESHOLD

    @property
    def release(self) -> float:
        """Speech goes on until a frame is below it."""
        return max(self.threshold - HYSTERESIS, 0.01)


class Endpointer:
    """Cuts frames into utterances. Positions count samples from the first frame on."""

    def __init__(self, pauses: Pauses) -> None:
        self._pauses = pauses
        self._at = 0
        self._started: int | None = None
        self._paused: int | None = None
        self._announced = False
        self._stopped = 0

    @property
    def speaking(self) -> bool:
        """Whether an utterance has begun and is not over; a pause is part of it."""
        return self._announced

    @property
    def started(self) -> int | None:
        """Where the sound began that is, or may become, an utterance; None in silence."""
        return self._started

    @property
    def pause(self) -> int:
        """How long the speaker has paused inside the utterance; 0 while speaking."""
        return 0 if self._paused is None else self._at - self._paused

    def hear(self, probability: float) -> SpeechStarted | SpeechStopped | None:
        """Take the next frame's probability of speech. A sound that is too short begins and ends unsaid."""
        here, self._at = self._at, self._at + FRAME_SAMPLES
        if probability >= self._pauses.threshold:
            self._paused = None
            self._started = here if self._started is None else self._started
        elif probability < self._pauses.release and self._paused is None and self._started is not None:
            self._paused = here
        if self._started is None:
            return None
        if self._paused is not None:
            return self._stop(self._paused, here) if here - self._paused >= self._pauses.silence else None
        return self._announce(self._at)

    def finish(self, end: int) -> tuple[SpeechStarted | SpeechStopped, ...]:
        """Take the end of the audio, at the sample `end`; what was going on is over then."""
        if self._started is None:
            return ()
        last = end if self._paused is None else self._paused
        return tuple(edge for edge in (self._announce(last), self._stop(last, end)) if edge is not None)

    def _announce(self, end: int) -> SpeechStarted | None:
        """Say so once the sound is long enough."""
        if self._announced or self._started is None or end - self._started <= self._pauses.shortest_speech:
            return None
        self._announced = True
        return SpeechStarted(max(self._started - self._pauses.padding, self._stopped))

    def _stop(self, end: int, known: int) -> SpeechStopped | None:
        """End the sound; padding reaches no further than what was heard to be no speech, up to `known`."""
        announced = self._announced
        self._started, self._paused, self._announced = None, None, False
        if not announced:
            return None
        self._stopped = min(end + self._pauses.padding, max(known, end))
        return SpeechStopped(self._stopped)
