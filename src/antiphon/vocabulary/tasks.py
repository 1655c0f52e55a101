"""What a model is asked to do and what it answers, for every engine alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from antiphon.vocabulary.audio import Pcm

OptionValue: TypeAlias = str | int | float | bool | list["OptionValue"] | dict[str, "OptionValue"] | None
"""A JSON value: what options may hold."""


class Task(StrEnum):
    """The kinds of speech work."""

    TTS = "tts"
    ASR = "asr"
    DIAR = "diar"
    VAD = "vad"
    ALIGN = "align"


class Mode(StrEnum):
    """How a session is opened."""

    OFFLINE = "offline"
    STREAMING = "streaming"


class Interface(StrEnum):
    """A way in which a session can be called."""

    OFFLINE = "offline"
    BATCH = "batch"
    STREAMING = "streaming"


class Cancellation:
    """A flag that a request's client has left: set once on the event loop, read by the engine's thread."""

    __slots__ = ("_cancelled", "_followers")

    def __init__(self) -> None:
        self._cancelled = False
        self._followers: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """Say that nobody waits for the answer any more."""
        if not self._cancelled:
            self._cancelled = True
            for follower in tuple(self._followers):
                follower()

    def follow(self, follower: Callable[[], None]) -> None:
        """Have it called when this is cancelled, at once where it is: for an engine that cannot see the flag."""
        self._followers.append(follower)
        if self._cancelled:
            follower()

    def unfollow(self, follower: Callable[[], None]) -> None:
        """Call it no more."""
        self._followers.remove(follower)

    def __bool__(self) -> bool:
        return self._cancelled


def _alone() -> int:
    return 1


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """One piece of work, bound to its model's configuration.

    Units: `audio` and `voice_ref` come at the session's rate and channels. `seed` 0 is the default seed, not "random":
    equal requests give equal answers. `live` says that the audio comes piece by piece beside the request, which
    has none of its own. `at_work` tells how many calls the model's engine has under way, this one included; a long call
    may ask between its steps.
    """

    text: str | None = None
    audio: Pcm | None = None
    language: str | None = None
    voice: str | None = None
    voice_ref: Pcm | None = None
    seed: int = 0
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    live: bool = False
    cancellation: Cancellation = field(default_factory=Cancellation, compare=False)
    at_work: Callable[[], int] = field(default=_alone, compare=False)

    def cancelled(self) -> bool:
        """Whether the client has left; a long engine call asks between its steps and may end early."""
        return bool(self.cancellation)


@dataclass(frozen=True, slots=True)
class Word:
    """One word and where it is spoken, in samples of the result's `sample_rate`."""

    text: str
    start_sample: int
    end_sample: int
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of transcript, in samples of the result's `sample_rate`; what the model did not say is None."""

    text: str
    start_sample: int
    end_sample: int
    tokens: tuple[int, ...] = ()
    temperature: float | None = None
    avg_logprob: float | None = None
    compression_ratio: float | None = None
    no_speech_prob: float | None = None


@dataclass(frozen=True, slots=True)
class SpeakerTurn:
    """Who speaks from where to where, in samples of the result's `sample_rate`."""

    start_sample: int
    end_sample: int
    speaker_id: str
    confidence: float | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a model answered; what it did not produce is None or empty.

    Units: spans count samples at `sample_rate`, which is also the rate of `audio`.
    """

    text: str | None = None
    audio: Pcm | None = None
    language: str | None = None
    segments: tuple[Segment, ...] = ()
    words: tuple[Word, ...] = ()
    speaker_turns: tuple[SpeakerTurn, ...] = ()
    sample_rate: int | None = None


@dataclass(frozen=True, slots=True)
class AudioDelta:
    """The next piece of synthesised speech."""

    pcm: Pcm


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of a transcript; the joined pieces are the final text. One without text tells of progress alone.

    Units: `until_sample` is how far into the audio the model has got, at the session's rate; None where it cannot say.
    """

    text: str
    until_sample: int | None = None


@dataclass(frozen=True, slots=True)
class TurnsDelta:
    """Speaker turns that became certain."""

    turns: tuple[SpeakerTurn, ...]


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """Somebody began to speak. Units: `at_sample` counts from the start of the audio, at the session's rate."""

    at_sample: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """An utterance is over: every piece of its text came before this. Units: as in `SpeechStarted`."""

    at_sample: int


@dataclass(frozen=True, slots=True)
class Final:
    """The end of a stream: the whole result, without the audio that was already streamed."""

    result: TaskResult


StreamEvent: TypeAlias = AudioDelta | TextDelta | TurnsDelta | SpeechStarted | SpeechStopped | Final
