"""One slot of a Whisper model: checks a request and has it transcribed piece by piece. It owns no weights."""

from collections.abc import Iterator
from dataclasses import dataclass

from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import InvalidRequest, InvariantError
from antiphon.vocabulary.spec import OptionSpec
from antiphon.vocabulary.tasks import Final, Interface, Mode, StreamEvent, Task, TaskRequest, TaskResult, TextDelta
from antiphon_adapters.options import OptionReader
from antiphon_adapters.silero.network import SpeechDetector
from antiphon_adapters.stateless import StatelessSession
from antiphon_adapters.whisper.decoding import Decoding, Manner, Weights
from antiphon_adapters.whisper.listening import SAMPLE_RATE, passages
from antiphon_adapters.whisper.live import LiveTranscription, Pace
from antiphon_adapters.whisper.model_files import ModelFiles
from antiphon_adapters.whisper.transcript import Transcript

FAMILY = "whisper"

SILENCE_MS = 600
STEP_MS = 500

OPTIONS = (
    OptionSpec("temperature", "number", "0 picks the likeliest words; above it answers vary.", 0.0, 1.0),
    OptionSpec("beam_size", "integer", "Candidates kept while decoding; the default 1 is greedy.", 1, 10),
    OptionSpec("word_timestamps", "boolean", "Whether to say when each word is spoken."),
    OptionSpec("vad_filter", "boolean", "Whether to listen only where speech is detected; the default is true."),
    OptionSpec("silence_ms", "integer", "Live: how long a pause ends an utterance; the default is 600.", 200, 5000),
    OptionSpec("step_ms", "integer", "Live: how much more speech each guess takes in; default 500.", 200, 10000),
)


TRANSLATION = OptionSpec(
    "target_language", "string", "The language to write; by default the one that is spoken.", choices=("en",)
)
"""Whisper translates into English alone, and a model that knows no other language has nothing to translate."""


def options_of(files: ModelFiles) -> tuple[OptionSpec, ...]:
    """What a request may ask of this model."""
    return (*OPTIONS, TRANSLATION) if files.multilingual else OPTIONS


@dataclass(frozen=True, slots=True)
class _Hearing:
    """A request that was checked: how to listen and in which language, None if it must be found."""

    manner: Manner
    language: str | None
    vad_filter: bool
    pace: Pace


class WhisperSession(StatelessSession[Weights]):
    """A session over shared weights; it keeps no state between requests, so a reset has nothing to undo."""

    family = FAMILY
    task = Task.ASR
    interfaces = frozenset({Interface.OFFLINE, Interface.STREAMING})
    sample_rate = SAMPLE_RATE
    channels = 1

    def __init__(self, weights: Weights, mode: Mode) -> None:
        super().__init__(weights, mode)
        self._options = OptionReader(options_of(weights.files))

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
        """Transcribe: a `TextDelta` for what is certain, then all of it.

        An uploaded recording is decoded window by window, and each segment is certain. For `audio`, which is still
        being spoken, see `live`.
        """
        hearing = self._bind(request)
        decoding = Decoding(self._open, hearing.manner)
        if audio is None:
            yield from self._recorded(request, hearing, decoding)
        else:
            from faster_whisper.vad import get_vad_model

            detector = SpeechDetector(get_vad_model().session)  # the library's own copy of the network
            live = LiveTranscription(decoding, detector.probability, hearing.pace, hearing.language, request.cancelled)
            yield from live.events(audio)

    def _bind(self, request: TaskRequest) -> _Hearing:
        files = self._open.files
        if request.audio is None and not request.live:
            raise InvalidRequest("there is no audio", param="audio")
        if request.audio and (request.audio.rate, request.audio.channels) != (SAMPLE_RATE, self.channels):
            raise InvalidRequest("audio must come as 16000 Hz mono", param="audio")
        if request.language is not None and request.language not in files.languages:
            raise InvalidRequest(f"language must be one of {', '.join(files.languages)}", param="language")
        options = self._options
        manner = Manner(
            prompt=_prompt(request.text),
            temperature=options.number(request, "temperature", 0.0),
            beam_size=options.integer(request, "beam_size", 1),
            word_timestamps=options.boolean(request, "word_timestamps", default=False),
            translate=files.multilingual and options.choice(request, "target_language", "") == "en",
        )
        return _Hearing(
            manner=manner,
            language=request.language or (None if files.multilingual else "en"),
            vad_filter=options.boolean(request, "vad_filter", default=True),
            pace=Pace(
                step=options.integer(request, "step_ms", STEP_MS) * SAMPLE_RATE // 1000,
                silence=options.integer(request, "silence_ms", SILENCE_MS) * SAMPLE_RATE // 1000,
            ),
        )

    def _recorded(self, request: TaskRequest, hearing: _Hearing, decoding: Decoding) -> Iterator[StreamEvent]:
        """Transcribe a whole recording; the segments are decoded as they are taken.

        A delta without text tells that a stretch is over, of a recording that goes on.
        """
        assert request.audio is not None, "the request was checked"
        transcript = Transcript(request.audio.frames)
        language = hearing.language
        for passage in passages(request.audio, only_speech=hearing.vad_filter):
            if request.cancelled():
                break
            if passage.parts:
                segments, language = decoding.whole(passage, language)
                for segment in segments:
                    if delta := transcript.add(segment, passage.offset):
                        yield TextDelta(delta, transcript.end_sample)
                    if request.cancelled():
                        break
            if passage.end < request.audio.frames and not request.cancelled():
                yield TextDelta("", passage.end)
        yield Final(transcript.result(language))


def _prompt(text: str | None) -> str | None:
    """The text that the transcript should follow on from, with no control token of the model in it."""
    if not text or not text.strip():
        return None
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise InvalidRequest("prompt must not hold half of a surrogate pair", param="prompt") from exc
    return text.replace("<|", "< |")
