"""`POST /v1/audio/speech`."""

import base64
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import replace

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.audio.encode import CONTENT_TYPES
from antiphon.http.answers import SpeechJson
from antiphon.http.bodies import read_json
from antiphon.http.document import INFERENCE_ERRORS, answered
from antiphon.http.fields import VoiceSources, busy_timeout_ms, choice, run_timeout_ms
from antiphon.http.presence import while_connected
from antiphon.http.routing import post
from antiphon.http.schemas import SpeechBody, SpeechFormat, operation
from antiphon.http.streaming import (
    SSE_END,
    SSE_TYPE,
    AudioJsonResponse,
    EventResponse,
    FileResponse,
    OwningResponse,
    event,
)
from antiphon.http.timing import timing_header, timing_json
from antiphon.ports.codec import AudioFormat
from antiphon.service.speech import SpeechOrder, SpeechService, SpeechStream, Spoken
from antiphon.vocabulary.errors import InvalidRequest

_ANSWERS = answered(
    {**dict.fromkeys(CONTENT_TYPES.values()), "application/json": SpeechJson, SSE_TYPE: None},
    errors=INFERENCE_ERRORS,
    timed=True,
    description="A file, chunks of one, or events.",
)


def add_speech_routes(
    router: APIRouter,
    service: SpeechService,
    max_body_bytes: int,
    voices: VoiceSources,
    unasked: AudioFormat = AudioFormat.WAV,
) -> None:
    """The routes that have text spoken; `unasked` is how, where a request does not say."""

    @post(router, "/v1/audio/speech", operation(SpeechBody) | _ANSWERS)
    async def speech(request: Request) -> Response:
        """Have a text spoken: whole, as raw chunks (`stream_format` "audio") or as events ("sse")."""
        body = await read_json(request, SpeechBody, max_body_bytes)
        asked = body.response_format if "response_format" in body.model_fields_set else unasked
        speech_format = choice(SpeechFormat, asked, "response_format")
        if speech_format is SpeechFormat.JSON and body.stream_format is not None:
            raise InvalidRequest(
                "response_format json is a whole answer: it has no stream_format", param="response_format"
            )
        order = replace(
            _order(body, speech_format),
            busy_timeout_ms=busy_timeout_ms(request, body.busy_timeout_ms),
            run_timeout_ms=run_timeout_ms(request, body.run_timeout_ms),
        )
        with ExitStack() as opened:
            recording = await voices.opened(body.voice_ref or None, "voice_ref", opened)
            if body.stream_format is None:
                spoken = await while_connected(request, service.speak(order, recording))
                return _whole(spoken, as_json=speech_format is SpeechFormat.JSON)
            stream = await while_connected(request, service.stream(order, recording))
        headers = timing_header(stream.timing, run=False)
        if body.stream_format == "sse":
            return EventResponse(_SpeechEvents(stream), headers)
        return OwningResponse(stream, stream.content_type, headers)


def _order(body: SpeechBody, speech_format: SpeechFormat) -> SpeechOrder:
    return SpeechOrder(
        model=body.model,
        text=body.input,
        audio_format=AudioFormat.WAV if speech_format is SpeechFormat.JSON else AudioFormat(speech_format),
        voice=body.voice or None,
        speed=body.speed,
        seed=body.seed,
        language=body.language or None,
        options=body.options,
        reference_text=body.reference_text,
    )


def _whole(spoken: Spoken, *, as_json: bool) -> Response:
    encoded, headers = spoken.encoded, timing_header(spoken.timing)
    if as_json:
        return AudioJsonResponse(encoded.body, {"timing": timing_json(spoken.timing)}, headers)
    return FileResponse(encoded.body, encoded.size_bytes, encoded.content_type, headers)


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
