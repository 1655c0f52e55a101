"""A text as the server speaks it: its format, and then samples as they are made. It knows no Wyoming event."""

import json
import struct
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from antiphon.listeners.in_process import InProcessApp
from antiphon.listeners.server_events import server_events
from antiphon.vocabulary.errors import EngineError

MAX_CHUNK_BYTES = 16 * 1024
"""The most that is handed on at once: a third of a second of most voices."""

_HEAD = struct.Struct("<4sI4s4sIHHIIHH4sI")
_WIDTH = 2


@dataclass(frozen=True, slots=True)
class SpeechOrder:
    """What is to be said, by which model; a voice or a language that is None is the model's own."""

    model: str
    text: str = ""
    voice: str | None = None
    language: str | None = None

    def saying(self, text: str) -> "SpeechOrder":
        """The same with this text."""
        return replace(self, text=text)


@dataclass(frozen=True, slots=True)
class Speech:
    """Speech that is being made: interleaved little-endian integers. Units: frames a second, bytes a sample."""

    rate: int
    width: int
    channels: int
    chunks: AsyncIterator[bytes]


@asynccontextmanager
async def speaking(app: InProcessApp, order: SpeechOrder) -> AsyncIterator[Speech]:
    """Have a text spoken; its chunks end with it. Raises AppRefusal and EngineError, the latter from `chunks` too."""
    fields = {"model": order.model, "input": order.text, "voice": order.voice, "language": order.language}
    body = json.dumps({**fields, "response_format": "wav", "stream_format": "sse"}).encode()
    async with app.call("POST", "/v1/audio/speech", content_type="application/json", body=_pieces_of(body)) as answer:
        await answer.ensure_accepted()
        pieces = (event.audio async for event in server_events(answer))  # as events: a fault in mid-speech is told
        rate, channels, rest = await _read_head(pieces)
        yield Speech(rate, _WIDTH, channels, _chunks(rest, pieces, channels * _WIDTH))


async def _read_head(pieces: AsyncIterator[bytes]) -> tuple[int, int, bytes]:
    """Read the WAV head, which the server writes in one form only; gives rate, channels and what came after it."""
    head = b""
    async for piece in pieces:
        head += piece
        if len(head) >= _HEAD.size:
            break
    if len(head) < _HEAD.size:
        raise EngineError("the engine returned no audio")
    riff, _, wave, _, _, _, channels, rate, _, _, bits, data, _ = _HEAD.unpack_from(head)
    assert (riff, wave, bits, data) == (b"RIFF", b"WAVE", _WIDTH * 8, b"data"), "the server's own WAV head has changed"
    return rate, channels, head[_HEAD.size :]


async def _chunks(first: bytes, pieces: AsyncIterator[bytes], frame_bytes: int) -> AsyncGenerator[bytes, None]:
    """The samples in whole frames, as soon as they are there."""
    most = MAX_CHUNK_BYTES - MAX_CHUNK_BYTES % frame_bytes
    held = first
    async for piece in pieces:
        held += piece
        whole = len(held) - len(held) % frame_bytes
        for start in range(0, whole, most):
            yield held[start : min(start + most, whole)]
        held = held[whole:]


async def _pieces_of(body: bytes) -> AsyncIterator[bytes]:
    yield body
