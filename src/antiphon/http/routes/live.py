"""`/v1/audio/transcriptions/live`: audio in and its transcript out at once, over HTTP or over a WebSocket."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial

from fastapi import APIRouter
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from antiphon.audio.limits import MAX_CHANNELS, MAX_RATE_HZ, MIN_RATE_HZ
from antiphon.audio.raw import RawFormat, SampleFormat
from antiphon.config.json_objects import DuplicateKey, load_json
from antiphon.http.access import agreed_subprotocol
from antiphon.http.bodies import MODEL_WANTED, invalid_request
from antiphon.http.document import INFERENCE_ERRORS, answered
from antiphon.http.envelope import close_code, error_body
from antiphon.http.fields import busy_timeout_ms, choice, integer, run_timeout_ms
from antiphon.http.live import counts_chunks, take_pace
from antiphon.http.live_ingest import live_pieces, whole_chunks
from antiphon.http.presence import until_left, while_present
from antiphon.http.routing import post
from antiphon.http.schemas import live_operation
from antiphon.http.streaming import SSE_TYPE, EventResponse
from antiphon.http.timing import timing_header
from antiphon.http.transcript_events import ServerSentTranscript, TranscriptEvents
from antiphon.service.transcription import TranscriptionOrder, TranscriptionService
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import AntiphonError, ClientLeft, InvalidRequest
from antiphon.vocabulary.spec import LiveLimits

PATH = "/v1/audio/transcriptions/live"

_DEFAULT_RATE_HZ = 16_000
_END = {"type": "end"}
"""The text of a WebSocket's last message; an empty binary one is as good."""


@dataclass(frozen=True, slots=True)
class _Call:
    """What the query asks for."""

    order: TranscriptionOrder
    raw: RawFormat


def add_live_routes(router: APIRouter, service: TranscriptionService) -> None:
    """The routes that transcribe while somebody speaks."""

    @post(router, PATH, live_operation() | answered({SSE_TYPE: None}, errors=INFERENCE_ERRORS, timed=True))
    async def live(request: Request) -> Response:
        """Have raw PCM transcribed while it is sent, in chunks; the answer comes as events meanwhile."""
        call = _call_of(request, service)
        take_pace(request.scope)

        def bound_limits() -> LiveLimits:
            """The limits under the lease: a registration ahead in the queue may have changed them since the arrival."""
            limits = service.live_limits(call.order.model)
            take_pace(request.scope, limits.max_chunk_bytes)  # this counts the chunks that have come already, too
            return limits

        hear = _body_of(request)
        if not counts_chunks(request.scope):  # called in process: each message of the body is one chunk
            hear = whole_chunks(hear, bound_limits)
        pieces = live_pieces(hear, call.raw, bound_limits)
        try:
            stream = await while_present(request.scope, service.live(call.order, pieces))
        except BaseException:
            await pieces.aclose()
            raise
        events = ServerSentTranscript(TranscriptEvents(stream))
        headers = timing_header(stream.timing, run=False)
        return _LiveResponse(_Owned(events, pieces), bound_limits().send_timeout_s, headers)

    async def live_socket(socket: WebSocket) -> None:
        call = _call_of(socket, service)
        await socket.accept(agreed_subprotocol(socket.scope))
        talk = _talk(socket, service, call)
        with suppress(WebSocketDisconnect, ClientDisconnect, TimeoutError):  # nobody is there to be told
            await while_present(socket.scope, talk)

    router.add_websocket_route(PATH, live_socket)


def _call_of(asked: Request | WebSocket, service: TranscriptionService) -> _Call:
    """Read the query; raises InvalidRequest naming the parameter at fault, and ModelNotFound."""
    query = asked.query_params
    model = query.get("model")
    if not model:
        raise invalid_request(("model",), MODEL_WANTED)
    order = TranscriptionOrder(
        model=model,
        language=query.get("language") or None,
        prompt=query.get("prompt") or None,
        busy_timeout_ms=busy_timeout_ms(asked),
        run_timeout_ms=run_timeout_ms(asked),
    )
    return _Call(service.resolved(order), _raw_format(query))


def _raw_format(query: QueryParams) -> RawFormat:
    return RawFormat(
        choice(SampleFormat, query.get("sample_format", SampleFormat.S16LE), "sample_format"),
        integer(query.get("sample_rate"), "sample_rate", MIN_RATE_HZ, MAX_RATE_HZ) or _DEFAULT_RATE_HZ,
        integer(query.get("channels"), "channels", 1, MAX_CHANNELS) or 1,
    )


def _body_of(request: Request) -> Callable[[], Awaitable[bytes | None]]:
    """Gives the body as it arrives, None after its proper end; raises ClientLeft where it has none."""
    ended = False

    async def hear() -> bytes | None:
        nonlocal ended
        if ended:
            return None
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft("the connection was lost before the end of the audio")
        ended = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body

    return hear


class _Owned:
    """Events, and the audio that they are made of, which is closed after them."""

    def __init__(self, events: ServerSentTranscript, pieces: AsyncGenerator[Pcm]) -> None:
        self._events = events
        self._pieces = pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._events)

    async def aclose(self) -> None:
        try:
            await self._events.aclose()
        finally:
            await self._pieces.aclose()


class _LiveResponse(EventResponse):
    """Events for a client that still sends: what it sends is for the model, and only the listener tells if it leaves.

    A client that takes longer than the limit over one event is given up.
    """

    def __init__(self, pieces: _Owned, send_timeout_s: float, headers: Mapping[str, str]) -> None:
        super().__init__(pieces, headers)
        self._send_timeout_s = send_timeout_s

    async def until_left(self, scope: Scope, receive: Receive) -> None:
        """Return once the client has left."""
        del receive
        await until_left(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self._send_timeout_s or None):
                await send(message)

        with suppress(TimeoutError):  # without its end the answer is visibly cut
            await super().__call__(scope, receive, send_in_time)


async def _talk(socket: WebSocket, service: TranscriptionService, call: _Call) -> None:
    """Answer while the client speaks, then close; a fault is an `error` event, and the code of the close."""
    # Asked for at each use, so under the lease once there is one: then they cannot change any more.
    limits = partial(service.live_limits, call.order.model)

    async def say(found: Mapping[str, object]) -> None:
        async with asyncio.timeout(limits().send_timeout_s or None):
            await socket.send_json(found)

    hear = whole_chunks(_messages_of(socket), limits)
    async with aclosing(live_pieces(hear, call.raw, limits)) as pieces:
        try:
            stream = await service.live(call.order, pieces)
            async with aclosing(TranscriptEvents(stream)) as events:
                async for found in events:
                    await say(found)
        except AntiphonError as error:
            await say({"type": "error", **error_body(error)})
            await socket.close(close_code(error))
        else:
            await socket.close()


def _messages_of(socket: WebSocket) -> Callable[[], Awaitable[bytes | None]]:
    """Gives the audio of each binary message; None for the message that says that it is over."""

    async def hear() -> bytes | None:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            raise ClientLeft("the connection was lost before the end of the audio")
        data: bytes | None = message.get("bytes")
        if data is not None:
            return data or None
        if not _is_end(message["text"]):
            raise InvalidRequest('a text message can only be {"type": "end"}; audio comes in binary ones')
        return None

    return hear


def _is_end(text: str) -> bool:
    try:
        return load_json(text) == _END
    except DuplicateKey as duplicate:
        raise invalid_request(duplicate.place, str(duplicate)) from duplicate
    except (ValueError, RecursionError):
        return False
