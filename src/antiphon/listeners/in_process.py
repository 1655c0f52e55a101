"""The HTTP application called in process: a request and its answer, both in pieces and both at once. It knows no route.

A listener of another protocol speaks to the server through it, and joins its calls with `join` before it returns.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from urllib.parse import quote, urlencode

import msgspec

from antiphon.http.live import STOPPING
from antiphon.http.presence import PRESENCE, Presence
from antiphon.ports.listener import AsgiApp, AsgiMessage
from antiphon.vocabulary.errors import EngineError

log = logging.getLogger(__name__)

MAX_PIECES_AHEAD = 4
"""How many pieces of an answer are kept for a caller that has not taken them; the application waits then."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


class AppRefusal(Exception):
    """The application answered with an error: its HTTP status, and the message and code of its body."""

    def __init__(self, status: int, message: str, code: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code


class ErrorFields(msgspec.Struct, frozen=True):
    """What is said of an error, in an answer or in an event."""

    message: str
    code: str | None = None


class InProcessApp:
    """Calls one application, each time with `api_key` if there is one. Every call is a task of its own.

    `stopping` is set when the server begins to stop: live sessions end then. None leaves their end to the caller.
    """

    def __init__(self, app: AsgiApp, api_key: str | None = None, stopping: asyncio.Event | None = None) -> None:
        self._app = app
        self._stopping = {} if stopping is None else {STOPPING: stopping}
        self._headers = [] if api_key is None else [(b"authorization", f"Bearer {api_key}".encode())]
        self._calls: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = _NOTHING,
        content_type: str | None = None,
        body: AsyncIterator[bytes] | None = None,
    ) -> "AsyncIterator[Answer]":
        """Call, and give the answer once its status is there; the body is drawn as the application asks for it.

        What the body raises is raised here, in the block. A block that is left before the answer's end has left the
        application, which is told so; leaving waits until it has ended. Raises EngineError when there is no answer.
        """
        answer = Answer(_Body(body))
        scope = self._scope(method, path, query, content_type)
        task = asyncio.ensure_future(self._run(scope | {PRESENCE: answer.presence}, answer))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        try:
            await answer.begun()
            yield answer
        finally:
            answer.leave()
            await asyncio.wait({task})

    async def get(self, path: str, query: Mapping[str, str] = _NOTHING) -> bytes:
        """Read something whole; raises AppRefusal."""
        async with self.call("GET", path, query=query) as answer:
            return await answer.read()

    async def join(self) -> None:
        """Wait until no call is under way any more, also of those whose caller was cancelled while it left."""
        while self._calls:
            await asyncio.wait(self._calls)

    async def _run(self, scope: AsgiMessage, answer: "Answer") -> None:
        try:
            await self._app(scope, answer.receive, answer.send)
        except Exception:  # the edge that owns what becomes of a call; its caller finds an answer without an end
            log.exception("the application broke at a call of a listener")
        finally:
            await answer.end()

    def _scope(self, method: str, path: str, query: Mapping[str, str], content_type: str | None) -> dict[str, object]:
        typed = [] if content_type is None else [(b"content-type", content_type.encode())]
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": quote(path).encode(),
            "query_string": urlencode(query).encode(),
            "root_path": "",
            "headers": [*self._headers, *typed],
            "client": None,
            "server": None,
            **self._stopping,
        }


class Answer:
    """The answer of one call, an iterator over its pieces; for one reader, inside the block of `InProcessApp.call`."""

    def __init__(self, body: "_Body") -> None:
        self.presence = Presence()
        self.status = 0
        self.headers: Mapping[str, str] = _NOTHING
        self._body = body
        self._pieces: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._is_whole = False
        self._has_ended = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self._is_whole and self._body.fault is None:
                raise StopAsyncIteration
            await self._wait()
        self._room.set()
        return self._pieces.popleft()

    async def read(self) -> bytes:
        """The rest of it; raises AppRefusal for an error."""
        await self.ensure_accepted()
        return b"".join([piece async for piece in self])

    async def ensure_accepted(self) -> None:
        """Raise the AppRefusal that it is, if it is one."""
        if self.status < 400:
            return
        said = b"".join([piece async for piece in self])
        try:
            error = msgspec.json.decode(said, type=_ErrorBody).error
        except msgspec.DecodeError:
            error = ErrorFields(f"the server answered {self.status}")
        raise AppRefusal(self.status, error.message, error.code)

    async def begun(self) -> None:
        """Wait for the status."""
        while not self.status:
            await self._wait()

    def leave(self) -> None:
        """Take no more: the application is told that its client has left."""
        self._body.leave()
        self._room.set()
        self.presence.leave()

    async def receive(self) -> AsgiMessage:
        """What the application is told next."""
        message = await self._body.next_message()
        if self._body.fault is not None:
            self.leave()
            self._news.set()
        return message

    async def send(self, message: AsgiMessage) -> None:
        """What the application answers next; it waits where the caller is slow."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
        else:
            self._is_whole = not message.get("more_body", False)
            if piece := message.get("body", b""):
                self._pieces.append(piece)
        self._news.set()
        if len(self._pieces) >= MAX_PIECES_AHEAD and not self._body.is_left:
            self._room.clear()
            await self._room.wait()

    async def end(self) -> None:
        """The application has returned: nothing is drawn from the body any more."""
        self._has_ended = True
        self._news.set()
        await self._body.drop()

    async def _wait(self) -> None:
        """Wait for anything new; raises what the body raised, and EngineError at an end that came too early."""
        if self._body.fault is not None:
            raise self._body.fault
        if self._has_ended:
            raise EngineError("the answer broke off")
        self._news.clear()
        await self._news.wait()


class _Body:
    """A request's body, drawn piece by piece, and then the word that its client has left."""

    def __init__(self, pieces: AsyncIterator[bytes] | None) -> None:
        self.fault: Exception | None = None
        self._pieces = pieces
        self._drawing: asyncio.Task[bytes | None] | None = None
        self._is_over = False
        self._left: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    @property
    def is_left(self) -> bool:
        """Whether nobody is there any more."""
        return self._left.done()

    def leave(self) -> None:
        """Nobody is there any more; may be called again."""
        if not self._left.done():
            self._left.set_result(None)

    async def next_message(self) -> AsgiMessage:
        """The next piece, empty at the end. It may be cancelled: what was being drawn is then the next call's."""
        if not self._is_over and not self._left.done():
            self._drawing = self._drawing or asyncio.ensure_future(self._draw())
            await asyncio.wait({self._drawing, self._left}, return_when=asyncio.FIRST_COMPLETED)
            if self._drawing.done():
                return self._drawn(self._drawing)
        await asyncio.wait({self._left})
        return {"type": "http.disconnect"}

    async def drop(self) -> None:
        """Draw no more."""
        if self._drawing is not None:
            self._drawing.cancel()
            await asyncio.wait({self._drawing})

    async def _draw(self) -> bytes | None:
        return None if self._pieces is None else await anext(self._pieces, None)

    def _drawn(self, drawing: asyncio.Task[bytes | None]) -> AsgiMessage:
        self._drawing = None
        try:
            piece = drawing.result()
        except Exception as fault:  # noqa: BLE001 (whatever the caller's own source raises is raised to the caller)
            self.fault = fault
            return {"type": "http.disconnect"}
        self._is_over = piece is None
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}


class _ErrorBody(msgspec.Struct):
    error: ErrorFields
