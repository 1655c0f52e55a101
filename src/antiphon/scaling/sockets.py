"""WebSockets: a client's and one of a replica's, joined message by message, in both directions."""

import asyncio
from contextlib import AsyncExitStack, suppress

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode

from antiphon.http.envelope import close_code, error_body
from antiphon.http.presence import while_present
from antiphon.http.streaming import json_bytes
from antiphon.scaling.fleet import Fleet, Replica
from antiphon.scaling.upstream import CONNECT_S, Upstream, died, url_of

_OF_THE_HANDSHAKE = "sec-websocket-"
_SILENT = {CloseCode.NO_STATUS_RCVD, CloseCode.ABNORMAL_CLOSURE, CloseCode.TLS_HANDSHAKE}
"""What is never sent. Source: RFC 6455, 7.4.1."""


class SocketForwarding:
    """Joins WebSockets. Units: `message_bytes` of the longest message."""

    def __init__(self, fleet: Fleet, upstream: Upstream, message_bytes: int) -> None:
        self._fleet = fleet
        self._upstream = upstream
        self._message_bytes = message_bytes

    async def forward(self, socket: WebSocket) -> None:
        """Join it with a replica's, or answer what the replica refuses it with."""
        async with AsyncExitStack() as held:
            replica = await held.enter_async_context(self._fleet.held(socket.query_params.get("model", "")))
            try:
                theirs = await held.enter_async_context(self._connection(replica, socket))
            except InvalidStatus as refused:
                await _refusal(refused)(socket.scope, socket.receive, socket.send)
                return
            except (InvalidHandshake, OSError, TimeoutError) as fault:
                raise died(replica) from fault
            await socket.accept(theirs.subprotocol)
            with suppress(WebSocketDisconnect, ClientDisconnect):  # nobody is there to be told
                await while_present(socket.scope, _join(socket, theirs, replica))

    def _connection(self, replica: Replica, socket: WebSocket) -> connect:
        headers = self._upstream.headers(socket.scope["headers"])
        kept = [(name, value) for name, value in headers if not name.startswith(_OF_THE_HANDSHAKE) and name != "host"]
        return connect(
            str(url_of(replica, socket).with_scheme("ws")),
            additional_headers=kept,
            subprotocols=socket.scope.get("subprotocols") or None,
            user_agent_header=None,
            compression=None,
            proxy=None,
            open_timeout=CONNECT_S,
            ping_interval=None,
            max_size=self._message_bytes,
        )


async def _join(socket: WebSocket, theirs: ClientConnection, replica: Replica) -> None:
    """Pass messages on until one side ends, and then end the other with the same code."""
    up, down = asyncio.ensure_future(_pass_up(socket, theirs)), asyncio.ensure_future(_pass_down(socket, theirs))
    try:
        await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in (up, down):
            way.cancel()
        await asyncio.wait((up, down))
    if not up.cancelled():
        up.result()
    elif not down.cancelled():
        down.result()
        await _end(socket, theirs, replica)


async def _pass_up(socket: WebSocket, theirs: ClientConnection) -> None:
    """What the client says. Raises WebSocketDisconnect at its end, when the replica has been told."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            code = message.get("code", CloseCode.NO_STATUS_RCVD)
            if code not in _SILENT:
                await theirs.close(code)
            raise WebSocketDisconnect(code)
        text: str | None = message.get("text")
        data: bytes = message.get("bytes") or b""
        with suppress(ConnectionClosed):  # the other way tells how
            await theirs.send(data if text is None else text)


async def _pass_down(socket: WebSocket, theirs: ClientConnection) -> None:
    """What the replica says, to its end."""
    with suppress(ConnectionClosed):
        while True:
            message = await theirs.recv()
            if isinstance(message, str):
                await socket.send_text(message)
            else:
                await socket.send_bytes(message)


async def _end(socket: WebSocket, theirs: ClientConnection, replica: Replica) -> None:
    """End the client's side as the replica ended its own; one that died did not end it, so its client is told."""
    code = theirs.close_code or CloseCode.ABNORMAL_CLOSURE
    if code == CloseCode.ABNORMAL_CLOSURE:
        error = died(replica)
        await socket.send_text(json_bytes({"type": "error", **error_body(error)}).decode())
        code = close_code(error)
    await socket.close(code if code not in _SILENT else CloseCode.NORMAL_CLOSURE, theirs.close_reason or None)


def _refusal(refused: InvalidStatus) -> Response:
    said = refused.response
    headers = {"content-type": said.headers.get("content-type", "application/json")}
    if wait := said.headers.get("retry-after"):
        headers["retry-after"] = wait
    return Response(said.body or b"", said.status_code, headers)
