"""Responses that own what they send: a lease or an open file ends with the response, whatever becomes of the client."""

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import BinaryIO, Protocol

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from antiphon.http.envelope import error_body
from antiphon.http.presence import until_disconnect
from antiphon.vocabulary.errors import AntiphonError

log = logging.getLogger(__name__)

_BLOCK_BYTES = 64 * 1024
_BASE64_BLOCK_BYTES = 48 * 1024
"""A multiple of three: only the last block is padded."""

SSE_TYPE = "text/event-stream"
SSE_END = b"data: [DONE]\n\n"


class Pieces(Protocol):
    """Bytes as they are made, and what must be closed after them."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


class OwningResponse(Response):
    """Sends pieces and closes them. Its `__call__` is the scope of what they own (phase.deferred).

    A client that leaves ends the sending at once; one that sees the end finds the slot free. A fault after the headers
    cannot change the status any more: `farewell` turns it into last bytes, or None breaks the connection off, so that
    nobody takes the answer for whole.
    """

    def __init__(self, pieces: Pieces, content_type: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status_code=200, headers=dict(headers or {}))
        self.headers["content-type"] = content_type
        del self.headers["content-length"]  # set where it is known
        self._pieces = pieces

    def farewell(self, error: AntiphonError) -> bytes | None:
        """The last bytes of an answer that failed after its headers; None leaves it visibly incomplete."""
        del error
        return None

    async def until_left(self, scope: Scope, receive: Receive) -> None:
        """Return once the client has left."""
        del scope
        await until_disconnect(receive)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        watching = asyncio.ensure_future(self.until_left(scope, receive))
        try:
            await asyncio.wait((sending, watching), return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            sending.cancel()
            await asyncio.wait((sending, watching))
            await self._pieces.aclose()
        if not sending.cancelled():
            sending.result()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async for piece in self._pieces:
                await send(_part(piece))
        except AntiphonError as error:
            log.warning("an answer failed after its headers: %s", error)
            await self._pieces.aclose()
            last = self.farewell(error)
            if last is None:
                return  # without its end the answer is visibly cut: the server closes the connection
            await send(_part(last))
        await self._pieces.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class EventResponse(OwningResponse):
    """Server-sent events; a fault is an `error` event, after which nothing follows."""

    def __init__(self, pieces: Pieces, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(pieces, SSE_TYPE, {"cache-control": "no-cache", "x-accel-buffering": "no", **(headers or {})})

    def farewell(self, error: AntiphonError) -> bytes | None:
        """Say what failed; no `done` and no `[DONE]` follow."""
        return event({"type": "error", **error_body(error)})


class FileResponse(OwningResponse):
    """An open file of known size; it is closed with the response."""

    def __init__(
        self, body: BinaryIO, size_bytes: int, content_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(_FilePieces(body), content_type, headers)
        self.headers["content-length"] = str(size_bytes)


class AudioJsonResponse(OwningResponse):
    """An object in JSON whose first member is an open file in base64, `audio`, made block by block.

    `rest` are the other members. The file is closed with the response.
    """

    def __init__(self, body: BinaryIO, rest: Mapping[str, object], headers: Mapping[str, str] | None = None) -> None:
        super().__init__(_AudioJson(body, rest), "application/json", headers)


def event(data: Mapping[str, object]) -> bytes:
    """One server-sent event, its data as JSON."""
    return b"data: " + json_bytes(data) + b"\n\n"


def json_answer(content: object, headers: Mapping[str, str] | None = None, *, status: int = 200) -> Response:
    """A whole answer in JSON."""
    return Response(json_bytes(content), status, media_type="application/json", headers=headers)


def json_bytes(content: object) -> bytes:
    """JSON as all answers have it: UTF-8, and never a NaN.

    Half of a surrogate pair, which UTF-8 has not, is the escape that JSON has for it: file names may bring one along.
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


class _FilePieces:
    def __init__(self, body: BinaryIO) -> None:
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if block := self._body.read(_BLOCK_BYTES):
            return block
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._body.close()


class _AudioJson:
    def __init__(self, body: BinaryIO, rest: Mapping[str, object]) -> None:
        self._body = body
        self._rest = rest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'{"audio":"'
        while block := self._body.read(_BASE64_BLOCK_BYTES):
            yield base64.b64encode(block)
        yield b'",' + json_bytes(self._rest)[1:]

    async def aclose(self) -> None:
        self._body.close()


def _part(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}
