"""`antiphon say`: a text becomes a sound file."""

import asyncio
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from antiphon.cli.faults import one_line_errors
from antiphon.cli.oneshot import ModelOption, ModelsRootOption, one_model, opened
from antiphon.ports.codec import AudioFormat
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.tasks import Task
from antiphon.vocabulary.terms import MAX_SPEED, MIN_SPEED

_SUFFIXES = {f".{each}": each for each in AudioFormat} | {".ogg": AudioFormat.OPUS, ".oga": AudioFormat.OPUS}


def say(
    text: Annotated[str, typer.Argument(help="What to say; - reads it from stdin.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; - is stdout.")] = Path("out.wav"),
    model: ModelOption = None,
    voice: Annotated[str | None, typer.Option(help="One of the model's voices.")] = None,
    voice_ref: Annotated[
        Path | None, typer.Option(help="A recording whose voice is to be imitated, for models that can.")
    ] = None,
    speed: Annotated[float | None, typer.Option(min=MIN_SPEED, max=MAX_SPEED, help="2.0 is twice as fast.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal bytes.")] = 0,
    audio_format: Annotated[
        AudioFormat | None, typer.Option("--format", help="What to write; the file's suffix says it by default.")
    ] = None,
    models_root: ModelsRootOption = None,
) -> None:
    """Speak a text into a file."""
    from antiphon.service.speech import SpeechOrder
    from antiphon.service.voice_library import Recording

    async def speak() -> None:
        written = format_of(output) if audio_format is None else audio_format
        async with one_model(Task.TTS, model, models_root) as (assembly, model_id):
            order = SpeechOrder(
                model=model_id,
                text=sys.stdin.read() if text == "-" else text,
                audio_format=written,
                voice=voice,
                speed=speed,
                seed=seed,
            )
            with nullcontext() if voice_ref is None else opened(voice_ref) as file:
                recording = None if file is None else Recording(file)
                spoken = await assembly.services.speech.speak(order, recording)
            with spoken.encoded.body as body:
                _write(body, output)

    with one_line_errors():
        asyncio.run(speak())


def _write(body: BinaryIO, output: Path) -> None:
    if str(output) == "-":
        shutil.copyfileobj(body, sys.stdout.buffer)
        return
    with output.open("wb") as file:
        shutil.copyfileobj(body, file)


def format_of(output: Path) -> AudioFormat:
    """The format that a file's suffix names, wav where it has none; raises InvalidRequest for a suffix of no format."""
    if not output.suffix:
        return AudioFormat.WAV
    if output.suffix.lower() not in _SUFFIXES:
        raise InvalidRequest(f"no format goes by {output.suffix}: give --format, or one of {', '.join(_SUFFIXES)}")
    return _SUFFIXES[output.suffix.lower()]
