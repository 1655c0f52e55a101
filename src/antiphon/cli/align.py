"""`antiphon align`: when each word of a text is spoken in a sound file."""

import asyncio
from enum import StrEnum
from pathlib import Path
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
    opened,
    write_out,
)
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.tasks import Task, TaskResult


class WordsFile(StrEnum):
    """The forms that placed words are written in."""

    TEXT = "text"
    JSON = "json"


def align(
    file: SoundArgument,
    text: Annotated[str | None, typer.Argument(help="What is said in it.")] = None,
    *,
    text_file: Annotated[Path | None, typer.Option("--text-file", "-t", help="A file with what is said.")] = None,
    output: OutputOption = None,
    model: ModelOption = None,
    language: Annotated[str | None, typer.Option(help="As en, English or en-GB.")] = None,
    words_format: Annotated[WordsFile, typer.Option("--format", "-f")] = WordsFile.TEXT,
    models_root: ModelsRootOption = None,
) -> None:
    """Say when each word of a text is spoken in a file."""
    with one_line_errors():
        said = _said(text, text_file)
        result = asyncio.run(heard(Task.ALIGN, file, model, models_root, text=said, language=language))
        write_out(_written(result, words_format), output)


def _said(text: str | None, text_file: Path | None) -> str:
    if (text is None) == (text_file is None):
        raise ConfigError("say what is said: either TEXT or --text-file")
    if text_file is None:
        return text or ""
    with opened(text_file) as body:
        try:
            return body.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{text_file}: it is not UTF-8") from error


def _written(result: TaskResult, words_format: WordsFile) -> str:
    from antiphon.transcripts.spans import span_lines, word_json

    rate = result.sample_rate or 0
    match words_format:
        case WordsFile.TEXT:
            return span_lines(((word, word.text) for word in result.words), rate)
        case WordsFile.JSON:
            return json_line({"words": [word_json(word, rate) for word in result.words], "sample_rate": rate})
        case unknown:
            assert_never(unknown)
