"""`antiphon transcribe`: a sound file becomes a transcript, with a progress bar while it is long."""

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from antiphon.cli.faults import one_line_errors
from antiphon.cli.oneshot import (
    ModelOption,
    ModelsRootOption,
    OutputOption,
    SoundArgument,
    json_line,
    one_model,
    opened,
    write_out,
)
from antiphon.vocabulary.errors import EngineError
from antiphon.vocabulary.tasks import Final, Task, TaskResult, TextDelta

if TYPE_CHECKING:
    from antiphon.service.transcription import TranscriptStream


class TranscriptFile(StrEnum):
    """The forms that a transcript is written in."""

    TEXT = "text"
    JSON = "json"
    VERBOSE_JSON = "verbose_json"
    SRT = "srt"
    VTT = "vtt"


def transcribe(
    file: SoundArgument,
    *,
    output: OutputOption = None,
    model: ModelOption = None,
    language: Annotated[str | None, typer.Option(help="As en, English or en-GB; recognised by default.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Words that set the style.")] = None,
    words: Annotated[bool, typer.Option("--words", help="Times of words, in verbose_json.")] = False,
    transcript_format: Annotated[TranscriptFile, typer.Option("--format", "-f")] = TranscriptFile.TEXT,
    models_root: ModelsRootOption = None,
) -> None:
    """Write down what is said in a file."""
    from antiphon.service.transcription import TranscriptionOrder

    async def listen() -> str:
        async with one_model(Task.ASR, model, models_root) as (assembly, model_id):
            order = TranscriptionOrder(
                model=model_id, language=language, prompt=prompt, word_times=words, busy_timeout_ms=0
            )
            with opened(file) as body:
                stream = await assembly.services.transcription.stream(order, body)
            try:
                result = await _follow(stream)
            finally:
                await stream.aclose()
            return _written(result, stream.duration_s, transcript_format, words=words)

    with one_line_errors():
        text = asyncio.run(listen())
        write_out(text, output)


async def _follow(stream: "TranscriptStream") -> TaskResult:
    """Wait for the whole result, and show on a terminal how far it has got."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task("transcribing", total=stream.duration_s)
        async for event in stream:
            match event:
                case TextDelta(until_sample=int(until)):
                    progress.update(bar, completed=until / stream.sample_rate)
                case Final(result):
                    return result
                case _:
                    pass
    raise EngineError("the engine ended without a result")


def _written(result: TaskResult, duration_s: float, transcript_format: TranscriptFile, *, words: bool) -> str:
    from antiphon.transcripts.srt import srt
    from antiphon.transcripts.verbose import verbose_json
    from antiphon.transcripts.vtt import vtt

    rate = result.sample_rate or 0
    match transcript_format:
        case TranscriptFile.TEXT:
            return f"{result.text}\n"
        case TranscriptFile.JSON:
            return json_line({"text": result.text})
        case TranscriptFile.VERBOSE_JSON:
            granularities = frozenset({"word", "segment"} if words else {"segment"})
            return json_line(verbose_json(result, duration_s, "transcribe", granularities))
        case TranscriptFile.SRT:
            return srt(result.segments, rate)
        case TranscriptFile.VTT:
            return vtt(result.segments, rate)
        case unknown:
            assert_never(unknown)
