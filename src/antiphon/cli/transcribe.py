"""`antiphon transcribe`: a sound file becomes a transcript, with a progress bar while it is long."""

import asyncio
from dataclasses import replace
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
    models_for,
    one_model,
    opened,
    write_out,
)
from antiphon.vocabulary.errors import EngineError, InvalidRequest, InvariantError
from antiphon.vocabulary.tasks import Final, Task, TaskResult, TextDelta

if TYPE_CHECKING:
    from antiphon.service.transcription import SpokenTranscript, TranscriptionOrder, TranscriptStream


class TranscriptFile(StrEnum):
    """The forms that a transcript is written in."""

    TEXT = "text"
    JSON = "json"
    VERBOSE_JSON = "verbose_json"
    SRT = "srt"
    VTT = "vtt"
    DIARIZED_JSON = "diarized_json"


def transcribe(
    file: SoundArgument,
    *,
    output: OutputOption = None,
    model: ModelOption = None,
    language: Annotated[str | None, typer.Option(help="As en, English or en-GB; recognised by default.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Words that set the style.")] = None,
    words: Annotated[bool, typer.Option("--words", help="Times of words, in verbose_json.")] = False,
    translate: Annotated[bool, typer.Option("--translate", help="Write in English, whatever is spoken.")] = False,
    transcript_format: Annotated[TranscriptFile, typer.Option("--format", "-f")] = TranscriptFile.TEXT,
    diarization_model: Annotated[
        str | None, typer.Option("--diarization-model", help="For diarized_json; the first installed by default.")
    ] = None,
    models_root: ModelsRootOption = None,
) -> None:
    """Write down what is said in a file."""
    from antiphon.service.transcription import TranscriptionOrder, WordTimes

    order = TranscriptionOrder(
        model="",
        language=language,
        prompt=prompt,
        word_times=WordTimes.REQUIRED if words else WordTimes.UNWANTED,
        into_english=translate,
        busy_timeout_ms=0,
    )

    async def listen() -> str:
        async with one_model(Task.ASR, model, models_root) as (assembly, model_id):
            with opened(file) as body:
                stream = await assembly.services.transcription.stream(replace(order, model=model_id), body)
            try:
                result = await _follow(stream)
            finally:
                await stream.aclose()
            return _written(result, stream.duration_s, transcript_format, order)

    async def listen_to_speakers() -> str:
        if translate:
            raise InvalidRequest("diarized_json has no translation")
        wanted = (Task.ASR, model), (Task.DIAR, diarization_model)
        async with models_for(models_root, *wanted) as (assembly, (model_id, diarizer)):
            asked = replace(order, model=model_id, word_times=WordTimes.WHERE_TOLD)
            with opened(file) as body:
                return await assembly.services.transcription.transcribe_speakers(asked, diarizer, body, _diarized)

    with one_line_errors():
        diarized = transcript_format is TranscriptFile.DIARIZED_JSON
        text = asyncio.run(listen_to_speakers() if diarized else listen())
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


def _written(
    result: TaskResult, duration_s: float, transcript_format: TranscriptFile, order: "TranscriptionOrder"
) -> str:
    from antiphon.service.transcription import WordTimes
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
            granularities = frozenset({"word"} if order.word_times is WordTimes.REQUIRED else {"segment"})
            verb = "translate" if order.into_english else "transcribe"
            return json_line(verbose_json(result, duration_s, verb, granularities))
        case TranscriptFile.SRT:
            return srt(result.segments, rate)
        case TranscriptFile.VTT:
            return vtt(result.segments, rate)
        case TranscriptFile.DIARIZED_JSON:
            raise InvariantError("one model alone tells no speakers apart")
        case unknown:
            assert_never(unknown)


def _diarized(transcript: "SpokenTranscript") -> str:
    from antiphon.transcripts.diarized import diarized_json

    return json_line(diarized_json(transcript.heard, transcript.told, transcript.duration_s))
