"""`POST /v1/audio/speech`."""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.bodies import read_json
from antiphon.http.fields import busy_timeout_ms, choice, run_timeout_ms
from antiphon.http.presence import while_connected
from antiphon.http.routing import post
from antiphon.http.schemas import SpeechBody, operation
from antiphon.http.streaming import SSE_END, EventResponse, FileResponse, OwningResponse, event
from antiphon.http.timing import timing_header, timing_json
from antiphon.ports.codec import AudioFormat
from antiphon.service.speech import SpeechOrder, SpeechService, SpeechStream


def add_speech_routes(router: APIRouter, service: SpeechService, max_body_bytes: int) -> None:
    """The routes that have text spoken."""

    @post(router, "/v1/audio/speech", operation(SpeechBody))
    async def speech(request: Request) -> Response:
        """Have a text spoken: whole, as raw chunks (`stream_format` "audio") or as events ("sse")."""
        body = await read_json(request, SpeechBody, max_body_bytes)
        order = replace(
            _order(body),
            busy_timeout_ms=busy_timeout_ms(request, body.busy_timeout_ms),
            run_timeout_ms=run_timeout_ms(request, body.run_timeout_ms),
        )
        match body.stream_format:
            case None:
                spoken = await while_connected(request, service.speak(order))
                encoded = spoken.encoded
                headers = timing_header(spoken.timing)
                return FileResponse(encoded.body, encoded.size_bytes, encoded.content_type, headers)
            case "audio":
                stream = await while_connected(request, service.stream(order))
                return OwningResponse(stream, stream.content_type, timing_header(stream.timing, run=False))
            case "sse":
                stream = await while_connected(request, service.stream(order))
                return EventResponse(_SpeechEvents(stream), timing_header(stream.timing, run=False))


def _order(body: SpeechBody) -> SpeechOrder:
    return SpeechOrder(
        model=body.model,
        text=body.input,
        audio_format=choice(AudioFormat, body.response_format, "response_format"),
        voice=body.voice or None,
        speed=body.speed,
        seed=body.seed,
        language=body.language or None,
        options=body.options,
    )


class _SpeechEvents:
    """A stream of speech as OpenAI's events: deltas in base64, then `done`, then the end mark."""

    def __init__(self, stream: SpeechStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield event({"type": "speech.audio.delta", "audio": base64.b64encode(piece).decode("ascii")})
        await self._stream.aclose()  # the timing is complete, and the slot free, before `done` says so
        yield event({"type": "speech.audio.done", "usage": _NO_TOKENS, "timing": timing_json(self._stream.timing)})
        yield SSE_END

    async def aclose(self) -> None:
        await self._stream.aclose()


_NO_TOKENS = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
"""OpenAI's clients want the member; these models count no tokens."""
