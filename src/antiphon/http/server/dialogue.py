"""One WebSocket as its application sees it: ASGI's messages in their order, and who has left. It knows no frame."""

import asyncio
import logging
from collections import deque
from enum import Enum, auto
from typing import Protocol

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Scope
from websockets.frames import CloseCode

from antiphon.http.envelope import error_response
from antiphon.http.live import STOPPING
from antiphon.http.presence import PRESENCE, Presence
from antiphon.http.server.refusals import Fields
from antiphon.vocabulary.errors import Forbidden

log = logging.getLogger(__name__)


class PeerHasLeft(OSError):  # ASGI asks for an OSError
    """What is to be sent has nobody to go to."""


class Line(Protocol):
    """What a dialogue asks of its connection; each of these but `writable` is done at once."""

    async def writable(self) -> None:
        """Return once the peer has taken enough of what was said, or has left."""
        ...

    def accept(self, fields: Fields) -> None: ...

    def refuse(self, response: Response) -> None: ...

    def say(self, message: str | bytes) -> None: ...

    def close(self, code: int, reason: str) -> None: ...

    def listen(self) -> None:
        """All that was heard is taken."""
        ...


class _Phase(Enum):
    ASKED = auto()
    REFUSED = auto()
    OPEN = auto()
    OVER = auto()


class Dialogue:
    """The application as it is called for one WebSocket; its connection calls `hear` and `leave`."""

    def __init__(self, line: Line, stopping: asyncio.Event) -> None:
        self._line = line
        self._stopping = stopping
        self._presence = Presence()
        self._phase = _Phase.ASKED
        self._refusal = Response()
        self._heard: deque[Message] = deque([{"type": "websocket.connect"}])
        self._news = asyncio.Event()
        self._end: Message | None = None

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        """Call the application, and end properly what it leaves open."""
        code = CloseCode.NORMAL_CLOSURE
        try:
            await app({**scope, PRESENCE: self._presence, STOPPING: self._stopping}, self._receive, self._send)
        except PeerHasLeft:
            pass
        except Exception:  # the edge that owns every outcome of a WebSocket
            log.exception("internal error in the WebSocket %r", scope["path"])
            code = CloseCode.INTERNAL_ERROR
        match self._phase:
            case _Phase.OPEN:
                self._close(code, "")
            case _Phase.ASKED | _Phase.REFUSED:
                self._refuse(error_response(RuntimeError("the application gave no answer")))
            case _Phase.OVER:
                pass

    def hear(self, message: str | bytes) -> None:
        """The peer has said this."""
        if self._end is None:
            content = "text" if isinstance(message, str) else "bytes"
            self._heard.append({"type": "websocket.receive", content: message})
            self._news.set()

    def leave(self, code: int, reason: str = "") -> None:
        """The peer has left: nothing is heard any more, nor does anything that is said arrive; may be called again."""
        self._finish(code, reason)
        self._presence.leave()

    async def _receive(self) -> Message:
        if self._heard:
            # Nothing else would make an application wait that is sent messages faster than it takes them, and so the
            # loop would do nothing but this.
            await asyncio.sleep(0)
        while not self._heard:
            if self._end is not None:
                return self._end
            self._news.clear()
            await self._news.wait()
        message = self._heard.popleft()
        if not self._heard:
            self._line.listen()
        return message

    async def _send(self, message: Message) -> None:
        await self._line.writable()
        match self._phase, message["type"]:
            case _Phase.OVER, "websocket.send":
                raise PeerHasLeft
            case _Phase.OVER, _:
                pass  # whoever accepts, refuses or closes hears of it from `receive`
            case _Phase.ASKED, "websocket.accept":
                self._phase = _Phase.OPEN
                self._line.accept(_fields(message))
            case _Phase.ASKED, "websocket.close":
                self._refuse(error_response(Forbidden("this WebSocket is refused")))
            case _Phase.ASKED, "websocket.http.response.start":
                self._phase = _Phase.REFUSED
                self._refusal = Response(b"", message["status"])
                self._refusal.raw_headers = list(message.get("headers", []))
            case _Phase.REFUSED, "websocket.http.response.body":
                self._refusal.body = bytes(self._refusal.body) + message.get("body", b"")
                if not message.get("more_body", False):
                    self._refuse(self._refusal)
            case _Phase.OPEN, "websocket.send":
                said = message.get("bytes")
                self._line.say(message["text"] if said is None else said)
            case _Phase.OPEN, "websocket.close":
                self._close(message.get("code", CloseCode.NORMAL_CLOSURE), message.get("reason") or "")
            case phase, kind:
                raise RuntimeError(f"{kind} does not fit a WebSocket that is {phase.name.lower()}")

    def _refuse(self, response: Response) -> None:
        self._finish(CloseCode.ABNORMAL_CLOSURE, "")
        self._line.refuse(response)

    def _close(self, code: int, reason: str) -> None:
        self._finish(code, reason)
        self._line.close(code, reason)

    def _finish(self, code: int, reason: str) -> None:
        self._phase = _Phase.OVER
        if self._end is None:
            self._end = {"type": "websocket.disconnect", "code": code, "reason": reason}
        self._news.set()


def _fields(accept: Message) -> Fields:
    subprotocol: str | None = accept.get("subprotocol")
    agreed = [] if subprotocol is None else [(b"sec-websocket-protocol", subprotocol.encode())]
    return [*accept.get("headers", []), *agreed]
