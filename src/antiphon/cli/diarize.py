"""`antiphon diarize`: who speaks when in a sound file."""

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


class TurnsFile(StrEnum):
    """The forms that speaker turns are written in."""

    TEXT = "text"
    JSON = "json"
    RTTM = "rttm"


def diarize(
    file: SoundArgument,
    *,
    output: OutputOption = None,
    model: ModelOption = None,
    speakers: Annotated[int | None, typer.Option(help="How many speak, where that is known.")] = None,
    min_speakers: Annotated[int | None, typer.Option(help="The fewest that may speak.")] = None,
    max_speakers: Annotated[int | None, typer.Option(help="The most that may speak.")] = None,
    threshold: Annotated[float | None, typer.Option(help="How far apart two voices must be.")] = None,
    turns_format: Annotated[TurnsFile, typer.Option("--format", "-f")] = TurnsFile.TEXT,
    models_root: ModelsRootOption = None,
) -> None:
    """Say who speaks when in a file."""
    options = {
        "num_speakers": speakers,
        "min_speakers": min_speakers,
        "max_speakers": max_speakers,
        "threshold": threshold,
    }
    with one_line_errors():
        result = asyncio.run(heard(Task.DIAR, file, model, models_root, options=options))
        write_out(_written(result, file.stem, turns_format), output)


def _written(result: TaskResult, name: str, turns_format: TurnsFile) -> str:
    from antiphon.transcripts.rttm import rttm
    from antiphon.transcripts.spans import span_json, span_lines

    rate, turns = result.sample_rate or 0, result.speaker_turns
    match turns_format:
        case TurnsFile.TEXT:
            return span_lines(((turn, turn.speaker_id) for turn in turns), rate)
        case TurnsFile.JSON:
            listed = [{**span_json(turn, rate), "speaker": turn.speaker_id} for turn in turns]
            return json_line({"speaker_turns": listed, "sample_rate": rate})
        case TurnsFile.RTTM:
            return rttm(turns, rate, name)
        case unknown:
            assert_never(unknown)
