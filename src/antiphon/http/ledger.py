"""Every request is entered here: it has an id, it is counted, and it leaves one line in the log. It knows no route.

An answer is entered before its last byte is sent: whoever has seen all of it finds it counted.
"""

import logging
import re
import time
from itertools import count
from secrets import token_hex

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from antiphon.http.presence import PRESENCE, Presence
from antiphon.observability.counts import Counts
from antiphon.observability.records import CURRENT, RequestRecord

log = logging.getLogger("antiphon.requests")

REQUEST_ID = "x-request-id"
CLIENT_GONE = 499
"""The status of a request that was never answered, because its client had left; nginx introduced the number."""

NO_ROUTE = "none"
"""What stands for the route where there is none, or none was looked for."""

_ID_FIELD = REQUEST_ID.encode()
_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}")
_PROBES = frozenset({"/health", "/health/ready", "/metrics"})
"""Asked every few seconds by machines: written down only where the log is to have everything."""

_MAX_PATH_CHARS = 200


class RequestLedger:
    """Enters requests. `body_bytes` is how much of each body goes into the log, none by default. As `Ledger` else."""

    def __init__(self, counts: Counts, body_bytes: int = 0) -> None:
        self.body_bytes = body_bytes
        self._counts = counts
        self._prefix = token_hex(6)
        self._numbers = count(1)

    def new_id(self) -> str:
        """An id that no other request has, of this server or of another."""
        return f"{self._prefix}-{next(self._numbers):x}"

    def around(self, app: ASGIApp) -> ASGIApp:
        """The same application, with its requests entered."""

        async def entered(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                await app(scope, receive, send)
                return
            entry = _Entry(self, scope, receive, send)
            token = CURRENT.set(entry.record)
            try:
                await app(scope, entry.hear, entry.say)
            finally:
                CURRENT.reset(token)
                entry.end()

        return entered

    def turned_away(self, status: int, reason: str, *, is_request: bool) -> str:
        """A listener has refused something before any application heard of it."""
        self._counts.refused({reason: 1}, None)
        if is_request:
            self._counts.answered(NO_ROUTE, "", status, 0.0)
        request_id = self.new_id()
        if log.isEnabledFor(logging.INFO):
            fields = {"status": status, "error": reason, "request_id": request_id}
            log.info("a connection was refused", extra={"fields": fields})
        return request_id

    def enter(self, entry: "_Entry", seconds: float) -> None:
        """A request is over."""
        record, route = entry.record, entry.route()
        self._counts.answered(route, entry.method, entry.status, seconds)
        if record.refusals:
            self._counts.refused(record.refusals, record.model)
        level = logging.DEBUG if route in _PROBES and entry.status < 400 else logging.INFO
        if log.isEnabledFor(level):
            asked, extra = (entry.method, entry.path), {"fields": entry.fields(route, seconds)}
            # Not `log.log`, which looks for the line of code that calls it: for as long as all else takes.
            log.handle(log.makeRecord(log.name, level, __file__, 0, "%s %s", asked, None, extra=extra))


class _Entry:
    """One request, from its head to the end of its answer."""

    __slots__ = (
        *("_began", "_has_left", "_is_over", "_ledger", "_presence", "_receive", "_received", "_received_bytes"),
        *("_scope", "_send", "_sent", "_sent_bytes", "record", "status"),
    )

    def __init__(self, ledger: RequestLedger, scope: Scope, receive: Receive, send: Send) -> None:
        self.record = RequestRecord(_id_of(scope) or ledger.new_id())
        self.status = 0
        self._began = time.monotonic()
        self._ledger = ledger
        self._scope = scope
        self._receive = receive
        self._send = send
        self._presence: Presence | None = scope.get(PRESENCE)
        self._received_bytes = 0
        self._sent_bytes = 0
        self._received = b""
        self._sent = b""
        self._has_left = False
        self._is_over = False

    @property
    def method(self) -> str:
        method: str = self._scope.get("method", "WEBSOCKET")
        return method

    @property
    def path(self) -> str:
        """As it was asked for, without the query."""
        path: str = self._scope["path"]
        return path[:_MAX_PATH_CHARS]

    def route(self) -> str:
        """The template that it matched. FastAPI tells which it was for routes of its own kind alone."""
        route, endpoint = self._scope.get("route"), self._scope.get("endpoint")
        if route is None and endpoint is not None:
            routes = self._scope["app"].routes
            route = next((it for it in routes if getattr(it, "endpoint", None) is endpoint), None)
        template: str = getattr(route, "path_format", NO_ROUTE)
        return template

    def fields(self, route: str, seconds: float) -> dict[str, object]:
        """Its line in the log. Units: milliseconds and bytes; what is not known, or is as ever, is left out."""
        record = self.record
        times = (("queue_ms", record.queue_s), ("load_ms", record.load_s), ("run_ms", record.run_s))
        return {
            "status": self.status,
            "route": route,
            **({"model": record.model} if record.model else {}),
            "duration_ms": round(seconds * 1000, 1),
            **{name: round(time_s * 1000, 1) for name, time_s in times if time_s is not None},
            "bytes_in": self._received_bytes,
            "bytes_out": self._sent_bytes,
            **({"error": ",".join(record.refusals)} if record.refusals else {}),
            **({"client_gone": True} if self._has_left else {}),
            **({"body_in": _text(self._received), "body_out": _text(self._sent)} if self._ledger.body_bytes else {}),
        }

    async def hear(self) -> Message:
        """What the application is told next."""
        message = await self._receive()
        if content := message.get("body") or _content(message):
            self._received_bytes += len(content)
            if limit := self._ledger.body_bytes:
                self._received = _kept(self._received, content, limit)
        elif message["type"] == "websocket.disconnect":
            self._has_left = not self._is_over
        return message

    async def say(self, message: Message) -> None:
        """What the application answers next."""
        match message["type"]:
            case "http.response.body" | "websocket.http.response.body":
                self._count_sent(message)
                if not message.get("more_body", False):
                    self.end()
            case "http.response.start" | "websocket.http.response.start":
                message = self._marked(message)
                self.status = CLIENT_GONE if self._is_left() else message["status"]
            case "websocket.accept":
                message = self._marked(message)
                self.status = 101
            case "websocket.send":
                self._count_sent(message)
            case "websocket.close":
                self.end()
        await self._send(message)

    def _marked(self, message: Message) -> Message:
        """With the id, so that the client can name what it asked."""
        return {**message, "headers": [*message.get("headers", ()), (_ID_FIELD, self.record.id.encode())]}

    def _is_left(self) -> bool:
        return self._presence is not None and self._presence.has_left()

    def end(self) -> None:
        """It is over, unless it was before."""
        if self._is_over:
            return
        self._is_over = True
        self._has_left = self._has_left or self._is_left()
        if not self.status:
            self.status = CLIENT_GONE if self._has_left else 500
        self._ledger.enter(self, time.monotonic() - self._began)

    def _count_sent(self, message: Message) -> None:
        content = message.get("body") or _content(message)
        self._sent_bytes += len(content)
        if limit := self._ledger.body_bytes:
            self._sent = _kept(self._sent, content, limit)


def _id_of(scope: Scope) -> str | None:
    """What the client calls its request; None where that is not fit to be repeated."""
    for name, value in scope["headers"]:
        if name == _ID_FIELD:
            return value.decode() if _ID.fullmatch(value) else None
    return None


def _content(message: Message) -> bytes:
    """What the other side gets of a message of a WebSocket; nothing of any other."""
    content: bytes = message.get("bytes") or b""
    return content or (message.get("text") or "").encode("utf-8", "backslashreplace")


def _kept(kept: bytes, content: bytes, limit: int) -> bytes:
    """What goes into the log, with as much of what came as has its place there."""
    missing = limit - len(kept)
    return kept + content[:missing] if missing > 0 else kept


def _text(content: bytes) -> str:
    """The beginning of a body, as far as a person can read it."""
    return "(binary)" if b"\0" in content else content.decode("utf-8", "backslashreplace")
