"""A spoken request as the server transcribes it, from samples that still arrive. It knows no Wyoming event.

`transcribe` is the one place that knows through which route.
"""

import secrets
import struct
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TypeAlias

from antiphon.audio.limits import DecodeLimits
from antiphon.listeners.in_process import Answer, InProcessApp
from antiphon.listeners.server_events import server_events
from antiphon.vocabulary.errors import InvalidRequest

_WIDTHS = (1, 2, 3, 4)
_LIVE_WIDTH = 2
_LIMITS = DecodeLimits(max_seconds=0)
_UNKNOWN_SIZE = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class SampleFormat:
    """Interleaved integer samples, little-endian, 8 bits of them unsigned, as in WAV.

    Units: `rate` frames a second, `width` bytes a sample. Raises InvalidRequest for what nobody records in.
    """

    rate: int
    width: int
    channels: int

    def __post_init__(self) -> None:
        _LIMITS.check_format(self.rate, self.channels)
        if self.width not in _WIDTHS:
            raise InvalidRequest(f"the samples have {self.width} bytes; they must have 1 to 4")


@dataclass(frozen=True, slots=True)
class HearingOrder:
    """What is to be heard, by which model; a language that is None is detected, `prompt` are words to expect."""

    model: str
    language: str | None
    prompt: str
    format: SampleFormat


@dataclass(frozen=True, slots=True)
class TextPiece:
    """More of the text."""

    text: str


@dataclass(frozen=True, slots=True)
class WholeText:
    """All of the text; nothing follows."""

    text: str


Heard: TypeAlias = TextPiece | WholeText
Call: TypeAlias = AbstractAsyncContextManager[Answer]


async def transcribe(
    app: InProcessApp, order: HearingOrder, samples: AsyncIterator[bytes], *, live: bool
) -> AsyncGenerator[Heard, None]:
    """Yield the text as it is understood, at last all of it; close the generator when it is left early.

    With `live` a model hears the samples as they come, if they are ones that it can hear so: 16 bits. Otherwise they
    are collected first. Raises AppRefusal and EngineError, and what `samples` raises.
    """
    is_live = live and order.format.width == _LIVE_WIDTH
    async with (_heard_live if is_live else _uploaded)(app, order, samples) as answer:
        await answer.ensure_accepted()
        async for event in server_events(answer):
            match event.type:
                case "transcript.text.delta":
                    yield TextPiece(event.delta)
                case "transcript.text.done":
                    yield WholeText(event.text)


def _heard_live(app: InProcessApp, order: HearingOrder, samples: AsyncIterator[bytes]) -> Call:
    query = {"model": order.model, "language": order.language or "", "prompt": order.prompt, "sample_format": "s16le"}
    query |= {"sample_rate": str(order.format.rate), "channels": str(order.format.channels)}
    return app.call("POST", "/v1/audio/transcriptions/live", query=query, body=samples)


def _uploaded(app: InProcessApp, order: HearingOrder, samples: AsyncIterator[bytes]) -> Call:
    boundary = secrets.token_hex(16)
    form = _form(boundary, order, samples)
    kind = f"multipart/form-data; boundary={boundary}"
    return app.call("POST", "/v1/audio/transcriptions", content_type=kind, body=form)


async def _form(boundary: str, order: HearingOrder, samples: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    fields = {"model": order.model, "stream": "true", "prompt": order.prompt, "language": order.language or ""}
    for name, value in fields.items():
        yield f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    yield f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="audio.wav"\r\n\r\n'.encode()
    yield _wav_head(order.format)
    async for piece in samples:
        yield piece
    yield f"\r\n--{boundary}--\r\n".encode()


def _wav_head(samples: SampleFormat) -> bytes:
    """The head of a WAV file of unknown length (RIFF WAVE, Microsoft/IBM, 1991)."""
    frame_bytes = samples.width * samples.channels
    byte_rate = min(samples.rate * frame_bytes, _UNKNOWN_SIZE)
    sound = struct.pack("<HHIIHH", 1, samples.channels, samples.rate, byte_rate, frame_bytes, samples.width * 8)
    return struct.pack("<4sI4s4sI", b"RIFF", _UNKNOWN_SIZE, b"WAVE", b"fmt ", len(sound)) + sound + _DATA_HEAD


_DATA_HEAD = struct.pack("<4sI", b"data", _UNKNOWN_SIZE)
