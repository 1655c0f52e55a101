"""One slot of a Canary model: checks a request and transcribes it window by window. It owns no weights."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import InvalidRequest, InvariantError
from antiphon.vocabulary.spec import OptionSpec
from antiphon.vocabulary.tasks import (
    Final,
    Interface,
    Mode,
    Segment,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
    TextDelta,
)
from antiphon_adapters.canary.model_files import ModelFiles
from antiphon_adapters.options import OptionReader
from antiphon_adapters.stateless import StatelessSession
from antiphon_adapters.stretches import stretches

if TYPE_CHECKING:
    from antiphon_adapters.canary.engine import CanaryEngine

FAMILY = "canary"
SAMPLE_RATE = 16000

WINDOW_SAMPLES = 30 * SAMPLE_RATE
"""The longest that the model hears at once. It was taught on at most 40 s, and exports fail or lose words beyond."""

SEARCH_SAMPLES = 10 * SAMPLE_RATE
SHORTEST_SAMPLES = SAMPLE_RATE // 10
"""No word is shorter, and of a single feature frame onnx-asr's normalisation makes numbers that are none."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A model in memory, for any number of calls at a time; equal calls answer alike."""

    engine: "CanaryEngine"
    files: ModelFiles


@dataclass(frozen=True, slots=True)
class _Hearing:
    """A request that was checked: what to listen to, which language it is in and which one to write."""

    audio: Pcm
    language: str
    target_language: str
    pnc: bool


def options_of(files: ModelFiles) -> tuple[OptionSpec, ...]:
    """What a request may ask of this model."""
    target = OptionSpec(
        "target_language",
        "string",
        "The language to write; another than `language` is a translation.",
        choices=files.languages,
    )
    pnc = OptionSpec("pnc", "boolean", "Whether to write punctuation and capitals; the default is true.")
    return (target, pnc) if files.knows_pnc else (target,)


class CanarySession(StatelessSession[Weights]):
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
        """Transcribe the whole recording; a cancelled request ends before the next token."""
        for event in self.stream(request, None):
            if isinstance(event, Final):
                return event.result
        raise InvariantError("a transcription ended without a result")

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        """Transcribe an uploaded recording: a `TextDelta` a window, without text where nothing is said; then all."""
        if audio is not None:
            raise InvalidRequest("this model transcribes whole recordings, not live audio", param="audio")
        hearing = self._bind(request)
        segments: list[Segment] = []
        for segment in self._windows(request, hearing):
            space = " " if segments and segment.text else ""
            yield TextDelta(f"{space}{segment.text}", segment.end_sample)
            if segment.text:
                segments.append(segment)
        text = " ".join(segment.text for segment in segments)
        yield Final(TaskResult(text, None, hearing.language, tuple(segments), sample_rate=SAMPLE_RATE))

    def _bind(self, request: TaskRequest) -> _Hearing:
        languages = self._open.files.languages
        if request.live:
            raise InvalidRequest("this model transcribes whole recordings, not live audio", param="audio")
        if request.audio is None:
            raise InvalidRequest("there is no audio", param="audio")
        if (request.audio.rate, request.audio.channels) != (SAMPLE_RATE, self.channels):
            raise InvalidRequest("audio must come as 16000 Hz mono", param="audio")
        if request.language is not None and request.language not in languages:
            raise InvalidRequest(f"language must be one of {', '.join(languages)}", param="language")
        language = request.language or languages[0]
        return _Hearing(
            audio=request.audio,
            language=language,
            target_language=self._options.choice(request, "target_language", language),
            pnc=self._options.boolean(request, "pnc", default=True),
        )

    def _windows(self, request: TaskRequest, hearing: _Hearing) -> Iterator[Segment]:
        """Yield what each window says, which may be nothing."""
        from antiphon_adapters.canary.engine import Abandoned

        for start, samples in stretches(hearing.audio, WINDOW_SAMPLES, SEARCH_SAMPLES):
            if request.cancelled():
                return
            if len(samples) < SHORTEST_SAMPLES or not samples.any():
                yield Segment("", start, start + len(samples))
                continue
            try:
                heard = self._open.engine.transcribe(
                    samples,
                    request.cancelled,
                    language=hearing.language,
                    target_language=hearing.target_language,
                    pnc=hearing.pnc,
                )
            except Abandoned:
                return
            yield Segment(heard.text.strip(), start, start + len(samples), avg_logprob=_mean(heard.logprobs))


def _mean(numbers: Sequence[float] | None) -> float | None:
    """The mean, or None for what JSON cannot hold."""
    mean = sum(numbers) / len(numbers) if numbers else math.nan
    return mean if math.isfinite(mean) else None
