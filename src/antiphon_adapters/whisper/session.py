"""One slot of a Whisper model: checks a request and transcribes it segment by segment. It owns no weights."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import InvalidRequest, InvariantError
from antiphon.vocabulary.spec import OptionSpec
from antiphon.vocabulary.tasks import Final, Interface, Mode, StreamEvent, Task, TaskRequest, TaskResult, TextDelta
from antiphon_adapters.options import OptionReader
from antiphon_adapters.whisper.listening import SAMPLE_RATE, Passage, passages
from antiphon_adapters.whisper.model_files import ModelFiles
from antiphon_adapters.whisper.transcript import HeardSegment, Transcript

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

FAMILY = "whisper"
CAPACITY = 16

OPTIONS = (
    OptionSpec("temperature", "number", "0 picks the likeliest words; above it answers vary.", 0.0, 1.0),
    OptionSpec("beam_size", "integer", "Candidates kept while decoding; the default 1 is greedy.", 1, 10),
    OptionSpec("word_timestamps", "boolean", "Whether to say when each word is spoken."),
    OptionSpec("vad_filter", "boolean", "Whether to listen only where speech is detected; the default is true."),
)


@dataclass(frozen=True, slots=True)
class Weights:
    """A model in memory. Up to as many calls run at once as it has workers; equal calls answer alike."""

    model: "WhisperModel"
    files: ModelFiles


@dataclass(frozen=True, slots=True)
class _Hearing:
    """A request that was checked: what to listen to and how."""

    audio: Pcm
    language: str | None
    prompt: str | None
    temperature: float
    beam_size: int
    word_timestamps: bool
    vad_filter: bool


class WhisperSession:
    """A session over shared weights; it keeps no state between requests, so a reset has nothing to undo."""

    family = FAMILY
    task = Task.ASR
    interfaces = frozenset({Interface.OFFLINE, Interface.STREAMING})
    sample_rate = SAMPLE_RATE
    channels = 1
    capacity = CAPACITY

    def __init__(self, weights: Weights, mode: Mode) -> None:
        self.mode = mode
        self._weights: Weights | None = weights
        self._options = OptionReader(OPTIONS)

    def clone(self) -> "WhisperSession":
        """Open another slot over the same weights."""
        return WhisperSession(self._open, self.mode)

    def prepare(self, request: TaskRequest) -> None:
        """Check everything that can be refused. Raises InvalidRequest."""
        self._bind(request)

    def run(self, request: TaskRequest) -> TaskResult:
        """Transcribe the whole recording; a cancelled request ends after the segment at hand."""
        for event in self.stream(request, None):
            if isinstance(event, Final):
                return event.result
        raise InvariantError("a transcription ended without a result")

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        """Transcribe an uploaded recording: a `TextDelta` a segment, then all of it."""
        if audio is not None:
            raise InvalidRequest("this model transcribes whole recordings, not live audio", param="audio")
        hearing = self._bind(request)
        transcript = Transcript(hearing.audio.frames)
        language = hearing.language
        for passage in passages(hearing.audio, only_speech=hearing.vad_filter):
            if request.cancelled():
                break
            segments, language = self._transcribe(passage, hearing, language)
            for segment in segments:
                if delta := transcript.add(segment, passage.offset):
                    yield TextDelta(delta)
                if request.cancelled():
                    break
        yield Final(transcript.result(language))

    def reset(self) -> None:
        """Nothing outlives a stream."""

    def close(self) -> None:
        """Let go of the weights."""
        self._weights = None

    @property
    def _open(self) -> Weights:
        if self._weights is None:
            raise InvariantError("the session is closed")
        return self._weights

    def _bind(self, request: TaskRequest) -> _Hearing:
        files = self._open.files
        if request.audio is None:
            raise InvalidRequest("there is no audio", param="audio")
        if (request.audio.rate, request.audio.channels) != (SAMPLE_RATE, self.channels):
            raise InvalidRequest("audio must come as 16000 Hz mono", param="audio")
        if request.language is not None and request.language not in files.languages:
            raise InvalidRequest(f"language must be one of {', '.join(files.languages)}", param="language")
        options = self._options
        return _Hearing(
            audio=request.audio,
            language=request.language or (None if files.multilingual else "en"),
            prompt=_prompt(request.text),
            temperature=options.number(request, "temperature", 0.0),
            beam_size=options.integer(request, "beam_size", 1),
            word_timestamps=options.boolean(request, "word_timestamps", default=False),
            vad_filter=options.boolean(request, "vad_filter", default=True),
        )

    def _transcribe(
        self, passage: Passage, hearing: _Hearing, language: str | None
    ) -> tuple[Iterable[HeardSegment], str]:
        """Start one call; the segments are decoded as they are taken, times counting from the passage's offset."""
        from faster_whisper.transcribe import restore_speech_timestamps

        segments, info = self._open.model.transcribe(
            passage.speech,
            language=language,
            initial_prompt=hearing.prompt,
            beam_size=hearing.beam_size,
            # One temperature: faster-whisper's default retries at higher ones, whose draws no seed can repeat.
            temperature=[hearing.temperature],
            word_timestamps=hearing.word_timestamps,
            # A window never hangs on the one before it, so a repetition cannot spread through a recording.
            condition_on_previous_text=False,
            vad_filter=False,
        )
        return restore_speech_timestamps(segments, passage.parts, SAMPLE_RATE), info.language


def _prompt(text: str | None) -> str | None:
    """The text that the transcript should follow on from, with no control token of the model in it."""
    if not text or not text.strip():
        return None
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise InvalidRequest("prompt must not hold half of a surrogate pair", param="prompt") from exc
    return text.replace("<|", "< |")
