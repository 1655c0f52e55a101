"""One request's way of turning sound into segments. It calls the engine, and chooses no sound."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from antiphon_adapters.whisper.listening import SAMPLE_RATE, Passage
from antiphon_adapters.whisper.model_files import ModelFiles
from antiphon_adapters.whisper.transcript import HeardSegment

if TYPE_CHECKING:
    from antiphon_adapters.whisper.engine import WhisperEngine

Heard: TypeAlias = tuple[Iterable[HeardSegment], str]
"""Segments, decoded a window of 30 s at a time as they are taken, and the language that they are in."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A model in memory. Up to as many calls run at once as it has workers; equal calls answer alike."""

    model: "WhisperEngine"
    files: ModelFiles


@dataclass(frozen=True, slots=True)
class Manner:
    """What a request says of how it wants to be heard."""

    prompt: str | None
    temperature: float
    beam_size: int
    word_timestamps: bool
    translate: bool
    """Whether English is written, whatever is spoken."""


class Decoding:
    """Decodes passages; the times of the segments count from the passage's offset. A language of None is found."""

    def __init__(self, weights: Weights, manner: Manner) -> None:
        self._model = weights.model
        self._hurried = weights.model.hurried()
        self._manner = manner

    def whole(self, passage: Passage, language: str | None) -> Heard:
        """Start to decode what is there to stay."""
        return self._decode(self._model, passage, language, words=self._manner.word_timestamps)

    def glimpse(self, passage: Passage, language: str | None) -> Heard:
        """Start to decode what is not all there yet, with the times of its words."""
        return self._decode(self._hurried, passage, language, words=True)

    def _decode(self, model: "WhisperEngine", passage: Passage, language: str | None, *, words: bool) -> Heard:
        from faster_whisper.transcribe import restore_speech_timestamps

        segments, info = model.transcribe(
            passage.speech,
            language=language,
            task="translate" if self._manner.translate else "transcribe",
            initial_prompt=self._manner.prompt,
            beam_size=self._manner.beam_size,
            # One temperature: faster-whisper's default retries at higher ones, whose draws no seed can repeat.
            temperature=[self._manner.temperature],
            word_timestamps=words,
            # A window never hangs on the one before it, so a repetition cannot spread through a recording.
            condition_on_previous_text=False,
            vad_filter=False,
        )
        return restore_speech_timestamps(segments, passage.parts, SAMPLE_RATE), info.language
