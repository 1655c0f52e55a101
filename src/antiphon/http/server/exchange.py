"""One request and its answer, between uvicorn's cycle and the application: it tells the truth about who has left."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from antiphon.http.bodies import DrainUnreadBodies
from antiphon.http.envelope import error_response
from antiphon.http.presence import PRESENCE, Presence
from antiphon.vocabulary.errors import RequestTimeout, ShuttingDown

_DISCONNECT: Message = {"type": "http.disconnect"}

_REFUSED_BODY_BYTES = 64 * 1024 * 1024
"""The longest body that is read out so that its sender sees that the server shuts down."""


class Exchange:
    """The application as uvicorn calls it for one request."""

    def __init__(self, app: ASGIApp, cycle: RequestResponseCycle) -> None:
        self._app = app
        self._cycle = cycle
        self._presence = Presence()
        self._is_overdue = False
        self._was_told = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send  # these are the cycle's own
        await self._app({**scope, PRESENCE: self._presence}, self._receive, self._send)

    def detach(self) -> None:
        """The client has left: nothing that is sent goes anywhere, and whoever receives or watches is told."""
        self._cycle.disconnected = True
        self._cycle.message_event.set()
        self._presence.leave()

    def end_body(self) -> None:
        """The rest of the body is not waited for any more: whoever receives gets RequestTimeout."""
        self._is_overdue = True
        self._cycle.keep_alive = False
        self._cycle.message_event.set()

    async def _receive(self) -> Message:
        if self._was_told:
            return _DISCONNECT
        message: Message = dict(await self._cycle.receive())
        if self._is_overdue and message["type"] == "http.request" and message["more_body"]:
            self._was_told = True
            raise RequestTimeout("the body of the request stopped arriving")
        return message

    async def _send(self, message: Message) -> None:
        if self._cycle.transport.is_closing():  # uvloop would raise where asyncio drops what is written
            self.detach()
        await self._cycle.send(message)  # type: ignore[arg-type]  # two names for ASGI's messages


async def _say_goodbye(scope: Scope, receive: Receive, send: Send) -> None:
    await error_response(ShuttingDown())(scope, receive, send)


GOODBYE: ASGIApp = DrainUnreadBodies(_say_goodbye, _REFUSED_BODY_BYTES)
"""The application of a server that shuts down: it answers every request with 503 shutting_down."""
