"""The HTTP server over an application of long sessions: bodies that are read for minutes, and WebSockets."""

import asyncio

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side

from antiphon.http.access import agreed_subprotocol
from antiphon.http.envelope import error_response
from antiphon.http.live import stopping, take_pace
from antiphon.http.presence import PRESENCE
from antiphon.http.server.websocket import WebSocketConnection
from antiphon.ports.listener import PeerLimits
from antiphon.vocabulary.errors import AntiphonError, ModelNotFound
from listening_stage import ListeningStage, Peer, head, until

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""The key and its answer of RFC 6455, section 1.3."""


def handshake(path: str, *fields: str) -> bytes:
    """The head that asks for a WebSocket."""
    asked = ("Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13")
    return head(path, "GET", *asked, *fields)


def frame(data: bytes, opcode: Opcode = Opcode.BINARY, *, fin: bool = True) -> bytes:
    """One frame as a client sends it."""
    return Frame(opcode, data, fin).serialize(mask=True)


class LiveStage(ListeningStage):
    """Besides the routes of its base:

    `POST /live` has the pace of its body and answers each piece with its size, then "end", or the message of what went
    wrong; `max` in its query is the limit of a chunk, and with `late` it reads nothing until `release` is set. `WS
    /echo` sends back what it hears, and with `late` in its query opens once `release` is set; `WS /hush` hears nothing
    until then; `WS /flood` says much; `WS /refused` is refused; `WS /broken` fails. `told` has what each heard.
    """

    def __init__(self, limits: PeerLimits) -> None:
        super().__init__(limits)
        self.said = 0
        self.last_words = ["shutting down"]

    async def open(self, path: str, *fields: str, receive_buffer: int | None = None) -> "WebSocketPeer":
        """A peer whose WebSocket is open."""
        peer, _ = await self._connected(receive_buffer)
        await peer.send(handshake(path, *fields))
        status, answered, rest = await peer.answer_head()
        assert status == 101
        assert answered["sec-websocket-accept"] == ACCEPT.lower()
        return WebSocketPeer(peer, rest)

    @property
    def socket(self) -> WebSocketConnection:
        """The only WebSocket."""
        (socket,) = [it for it in self._server._traffic.state.connections if isinstance(it, WebSocketConnection)]
        return socket

    def _add_routes(self, app: FastAPI) -> None:
        app.router.add_route("/live", self._live, methods=["POST"])
        app.router.add_websocket_route("/echo", self._echo)
        app.router.add_websocket_route("/hush", self._hush)
        app.router.add_websocket_route("/flood", self._say_much)
        app.router.add_websocket_route("/refused", self._refuse)
        app.router.add_websocket_route("/broken", self._break)

    async def _live(self, request: Request) -> Response:
        take_pace(request.scope, int(request.query_params.get("max", 0)))
        if "late" in request.query_params:
            self.told.append("late")
            await self.release.wait()
        return _LiveAnswer(self)

    async def _echo(self, socket: WebSocket) -> None:
        self.told.append("open")
        if "late" in socket.query_params:
            await self.release.wait()
        await socket.accept(agreed_subprotocol(socket.scope))
        with socket.scope[PRESENCE].telling(lambda: self.told.append("left")):
            stop = asyncio.ensure_future(stopping(socket.scope).wait())
            while not stop.done():
                hearing = asyncio.ensure_future(socket.receive())
                await asyncio.wait((hearing, stop), return_when=asyncio.FIRST_COMPLETED)
                if not hearing.done():
                    hearing.cancel()
                    break
                message = hearing.result()
                if message["type"] == "websocket.disconnect":
                    self.told.append(f"{message['code']} {message.get('reason')}".strip())
                    stop.cancel()
                    return
                self.told.append("heard")
                await socket.send({**message, "type": "websocket.send"})
            await socket.send_text("shutting down")
            await socket.close(1001)

    async def _hush(self, socket: WebSocket) -> None:
        await socket.accept()
        self.told.append("hush")
        await self.release.wait()
        message = await socket.receive()
        while message["type"] == "websocket.receive":
            self.told.append(f"heard {len(message['bytes'])}")
            message = await socket.receive()

    async def _say_much(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                await socket.send_bytes(b"x" * 65536)
                self.said += 1
        finally:
            self.told.append("flooded")

    async def _refuse(self, socket: WebSocket) -> None:
        del socket
        raise ModelNotFound("there is no model 'x'", param="model")

    async def _break(self, socket: WebSocket) -> None:
        if "accept" in socket.query_params:
            await socket.accept()
        raise ValueError("a secret")


class _LiveAnswer(Response):
    """Answers while it reads."""

    def __init__(self, stage: LiveStage) -> None:
        super().__init__()
        self._stage = stage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def say(text: str, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": f"{text};".encode(), "more_body": more})

        await send({"type": "http.response.start", "status": 200, "headers": []})
        await say("hello")
        stop = asyncio.ensure_future(stopping(scope).wait())
        try:
            last = await self._converse(receive, stop, say)
        finally:
            stop.cancel()
        self._stage.told.append(last)
        await say(last, more=False)

    async def _converse(self, receive: Receive, stop, say) -> str:  # type: ignore[no-untyped-def]
        while True:
            hearing = asyncio.ensure_future(receive())
            await asyncio.wait((hearing, stop), return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                hearing.cancel()
                return "stopped"
            try:
                message = hearing.result()
            except AntiphonError as error:
                return str(error_response(error).status_code)
            if message["type"] == "http.disconnect":
                return "left"
            if not message["more_body"]:
                return "end"
            await say(str(len(message["body"])))


class WebSocketPeer:
    """A client's side of an open WebSocket."""

    def __init__(self, peer: Peer, received: bytes) -> None:
        self.peer = peer
        self._frames = Protocol(Side.CLIENT, max_size=None)
        self._heard: list[Frame] = []
        self._feed(received)

    async def send(self, data: bytes | str) -> None:
        """Send one message in one frame."""
        text = isinstance(data, str)
        await self.raw(frame(data.encode() if text else data, Opcode.TEXT if text else Opcode.BINARY))

    async def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self.peer.send(data)

    async def frame(self) -> Frame:
        """The next frame that comes."""
        while not self._heard:
            data = await self.peer.read()
            assert data, "the connection was closed without a word"
            self._feed(data)
        return self._heard.pop(0)

    async def text(self) -> str:
        """The next message, a text."""
        found = await self.frame()
        assert found.opcode is Opcode.TEXT
        return bytes(found.data).decode()

    async def code(self) -> int:
        """Why it is closed; every message before that is skipped."""
        while (found := await self.frame()).opcode is not Opcode.CLOSE:
            pass
        return int.from_bytes(bytes(found.data)[:2], "big")

    def _feed(self, data: bytes) -> None:
        if data:
            self._frames.receive_data(data)
            self._heard += [it for it in self._frames.events_received() if isinstance(it, Frame)]


async def settled(stage: LiveStage) -> None:
    """Wait until no request and no WebSocket runs, and nobody is connected."""
    await until(lambda: not stage.connections and not stage._server._traffic.state.tasks)
