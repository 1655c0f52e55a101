"""`antiphon vad`: where somebody speaks in a sound file."""

import asyncio
from enum import StrEnum
from typing import Annotated, assert_never

import typer

from antiphon.cli.faults import one_line_errors
from antiphon.cli.oneshot import (
    ModelOption,
    ModelsRootOption,
    OutputOption,
    SoundArgument,
    heard,
    json_line,
    write_out,
)
from antiphon.vocabulary.tasks import Task, TaskResult


class SpeechFile(StrEnum):
    """The forms that stretches of speech are written in."""

    TEXT = "text"
    JSON = "json"


def vad(
    file: SoundArgument,
    *,
    output: OutputOption = None,
    model: ModelOption = None,
    threshold: Annotated[float | None, typer.Option(help="How sure it must be, 0.05 to 0.95.")] = None,
    min_speech_ms: Annotated[int | None, typer.Option(help="Shorter sounds are no speech.")] = None,
    min_silence_ms: Annotated[int | None, typer.Option(help="Shorter pauses are part of speech.")] = None,
    padding_ms: Annotated[int | None, typer.Option(help="Silence counted to speech at both ends.")] = None,
    speech_format: Annotated[SpeechFile, typer.Option("--format", "-f")] = SpeechFile.TEXT,
    models_root: ModelsRootOption = None,
) -> None:
    """Say where somebody speaks in a file."""
    options = {
        "threshold": threshold,
        "min_speech_ms": min_speech_ms,
        "min_silence_ms": min_silence_ms,
        "padding_ms": padding_ms,
    }
    with one_line_errors():
        result = asyncio.run(heard(Task.VAD, file, model, models_root, options=options))
        write_out(_written(result, speech_format), output)


def _written(result: TaskResult, speech_format: SpeechFile) -> str:
    from antiphon.transcripts.spans import span_json, span_lines

    rate = result.sample_rate or 0
    match speech_format:
        case SpeechFile.TEXT:
            return span_lines(((segment, "speech") for segment in result.segments), rate)
        case SpeechFile.JSON:
            return json_line({"segments": [span_json(it, rate) for it in result.segments], "sample_rate": rate})
        case unknown:
            assert_never(unknown)
