"""One request and its answer, between uvicorn's cycle and the application: it tells the truth about who has left."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from antiphon.http.bodies import DrainUnreadBodies
from antiphon.http.envelope import error_response
from antiphon.http.live import PACE, STOPPING
from antiphon.http.presence import PRESENCE, Presence
from antiphon.ports.listener import Ledger
from antiphon.vocabulary.errors import AntiphonError, ShuttingDown, TooLarge

_DISCONNECT: Message = {"type": "http.disconnect"}

_REFUSED_BODY_BYTES = 64 * 1024 * 1024
"""The longest body that is read out so that its sender sees that the server shuts down."""


class Exchange:
    """The application as uvicorn calls it for one request."""

    def __init__(self, app: ASGIApp, cycle: RequestResponseCycle, stopping: asyncio.Event) -> None:
        self._app = app
        self._cycle = cycle
        self._stopping = stopping
        self._presence = Presence()
        self._fault: AntiphonError | None = None
        self._rest = b""  # of a body that was ended: what had come of it
        self._was_told = False
        self.keeps_pace = False
        """Whether the application times the body, and the listener does not."""
        self._max_chunk_bytes = 0
        self._chunk_bytes = 0
        self._largest_bytes = 0  # of all chunks so far: some may come before the application says what it takes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send  # these are the cycle's own
        told = {PRESENCE: self._presence, STOPPING: self._stopping, PACE: self._take_pace}
        await self._app({**scope, **told}, self._receive, self._send)

    @property
    def outlives_answer(self) -> bool:
        """Whether the client may still send its body when the answer is complete, and is to see that answer."""
        return self.keeps_pace or isinstance(self._fault, ShuttingDown)

    def detach(self) -> None:
        """The client has left: nothing that is sent goes anywhere, and whoever receives or watches is told."""
        self._cycle.disconnected = True
        self._cycle.waiting_for_100_continue = False  # a last answer may have been written already, and the end with it
        self._cycle.message_event.set()
        self._presence.leave()

    def end_body(self, fault: AntiphonError) -> None:
        """The rest of the body is not waited for any more: whoever receives gets what has come, and then `fault`."""
        if self._fault is None:
            self._fault = fault
            self._rest = bytes(self._cycle.body)
            self._cycle.keep_alive = False
            self._cycle.message_event.set()

    def begin_chunk(self) -> None:
        """The body goes on with a new chunk."""
        self._chunk_bytes = 0

    def count(self, size_bytes: int) -> None:
        """So much more has come of the chunk; one over the application's limit is the last that counts."""
        self._chunk_bytes += size_bytes
        self._largest_bytes = max(self._largest_bytes, self._chunk_bytes)
        self._check_chunk()

    def _check_chunk(self) -> None:
        if 0 < self._max_chunk_bytes < self._largest_bytes:
            self.end_body(TooLarge(f"a chunk of the body is larger than the limit of {self._max_chunk_bytes} bytes"))

    def _take_pace(self, max_chunk_bytes: int) -> None:
        self.keeps_pace = True
        self._max_chunk_bytes = max_chunk_bytes
        self._check_chunk()
        if self._cycle.waiting_for_100_continue and not self._cycle.transport.is_closing():
            self._cycle.waiting_for_100_continue = False
            self._cycle.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def _receive(self) -> Message:
        if self._was_told:
            return _DISCONNECT
        message: Message = dict(await self._cycle.receive())
        # A fault stands also if the body has come whole by now: a chunk that is too large may have been its last one,
        # and both may have come in one packet.
        if self._fault is None or message["type"] != "http.request":
            return message
        if self._rest:
            self._cycle.message_event.set()
            rest, self._rest = self._rest, b""
            return {**message, "body": rest, "more_body": True}
        self._was_told = True
        raise self._fault

    async def _send(self, message: Message) -> None:
        if self._cycle.transport.is_closing():  # uvloop would raise where asyncio drops what is written
            self.detach()
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if is_last and self.outlives_answer and self._cycle.more_body:
            self._cycle.keep_alive = True  # uvicorn would close the connection over what the client still sends
        await self._cycle.send(message)  # type: ignore[arg-type]  # two names for ASGI's messages


async def _say_goodbye(scope: Scope, receive: Receive, send: Send) -> None:
    await error_response(ShuttingDown())(scope, receive, send)


def goodbye(ledger: Ledger) -> ASGIApp:
    """The application of a server that shuts down: it answers every request with 503 shutting_down."""
    return DrainUnreadBodies(ledger.around(_say_goodbye), _REFUSED_BODY_BYTES)
