"""The HTTP server over a small application: real loopback sockets, time in the test's hand."""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.bodies import DrainUnreadBodies, read_bytes
from antiphon.http.envelope import install
from antiphon.http.presence import while_connected
from antiphon.http.server import HttpServer, bind
from antiphon.http.server.connection import Connection, _Owed
from antiphon.http.server.progress import _ACKED_AT
from antiphon.http.streaming import OwningResponse
from antiphon.ports.listener import PeerLimits, Served, StopOrder
from antiphon.testing import ManualClock

BLOCK_BYTES = 64 * 1024


class Flood:
    """More bytes than any buffer takes; `given` counts the blocks, `closed` says that it was ended."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.given = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.given < self.blocks:
            self.given += 1
            yield b"x" * BLOCK_BYTES

    async def aclose(self) -> None:
        self.closed = True


class ListeningStage:
    """Serves; what a test began is joined at its end.

    `GET /hold` answers once `release` is set and heeds its client, `GET /deaf` does not heed it; `POST /body` reads its
    body; `GET /flood` sends `flood`. `told` is what has become of the requests. With `tls` it serves HTTPS.
    """

    def __init__(self, limits: PeerLimits, tls: ssl.SSLContext | None = None) -> None:
        self.clock = ManualClock()
        self.stop = StopOrder()
        self.release = asyncio.Event()
        self.flood = Flood(1000)
        self.told: list[str] = []
        self._bound = bind("127.0.0.1", 0)
        self.address = self._bound.getsockname()
        self._server = HttpServer(self._bound, Served(self._app(), limits, self.stop), self.clock, tls)
        self.serving: asyncio.Task[None] | None = None
        self._peers: list[Peer] = []

    async def connect(self, *, receive_buffer: int | None = None) -> "Peer":
        """A new connection that the server has accepted."""
        peer = Peer(receive_buffer)
        before = await self._dial(peer)
        await until(lambda: len(self.connections) > before)
        return peer

    async def dialled(self) -> "Peer":
        """A new connection, of which the server may not know yet."""
        peer = Peer(None)
        await self._dial(peer)
        return peer

    async def connect_over_tls(self, context: ssl.SSLContext) -> "TlsPeer":
        """The same over TLS."""
        peer = TlsPeer(context)
        before = await self._dial(peer)
        await peer.shake_hands()
        await until(lambda: len(self.connections) > before)
        return peer

    async def stalled_head(self) -> "Peer":
        """A peer that has sent a part of its head."""
        peer, connection = await self._connected()
        await peer.send(head("/hold")[:-2])
        await until(lambda: connection._owed is _Owed.HEAD)
        return peer

    async def stalled_body(self, sent: bytes = b"half") -> "Peer":
        """A peer that has sent a part of a body of 10 bytes, and whose request is being received."""
        peer, _ = await self._connected()
        await peer.send(head("/body", "POST", "Content-Length: 10") + sent)
        await until(lambda: "body" in self.told)
        return peer

    async def send_heard(self, peer: "Peer", data: bytes) -> None:
        """Have a peer send, and wait until the server has received all of it."""
        exchange = self.connection._exchange
        received = exchange._chunk_bytes + len(data)  # a body with a length is one chunk
        await peer.send(data)
        await until(lambda: exchange._chunk_bytes == received)

    async def non_reader(self) -> "Peer":
        """A peer that reads nothing; all that is buffered for it is all that will be."""
        peer, connection = await self._connected(receive_buffer=4096)
        await peer.ask("/flood")
        await until(lambda: connection.flow.write_paused)
        return peer

    async def read_slowly(self, peer: "Peer", step_s: float) -> None:
        """Have a peer read all of `flood`, and time pass before it goes on.

        No time passes until the kernel can tell the server of a read that it has not seen yet: it may take its own
        time over that, and what it reports may move on at any moment, also while the server looks.
        """
        connection, received = self.connection, 0
        while received < self.flood.blocks * BLOCK_BYTES:
            if _acknowledged(connection) != connection._progress._mark:
                self.clock.advance(step_s)
            received += len(await peer._more())
            await asyncio.sleep(0)

    async def waiting(self, path: str = "/hold") -> "Peer":
        """A peer whose request runs."""
        peer, _ = await self._connected()
        before = len(self.told)
        await peer.ask(path)
        await until(lambda: len(self.told) > before)
        return peer

    async def _dial(self, peer: "Peer") -> int:
        """Connect the socket of a peer; how many connections there were before."""
        if self.serving is None:
            self.serving = asyncio.ensure_future(self._server.serve())
        before = len(self.connections)
        self._peers.append(peer)
        await asyncio.get_running_loop().sock_connect(peer.socket, self.address)
        return before

    async def _connected(self, receive_buffer: int | None = None) -> "tuple[Peer, Connection]":
        before = set(self.connections)
        peer = await self.connect(receive_buffer=receive_buffer)
        (connection,) = set(self.connections) - before
        return peer, connection

    @property
    def connections(self) -> list[Connection]:
        """The server's sides, in no order."""
        return list(self._server._traffic.state.connections)

    @property
    def handshakes(self) -> int:
        """How many TLS handshakes are not over."""
        return len(self._server._traffic.handshakes)

    @property
    def connection(self) -> Connection:
        """The only one."""
        (connection,) = self.connections
        return connection

    async def begin_stop(self) -> None:
        """Tell it to stop; it has heeded that when this returns."""
        self.stop.begun.set()
        await until(lambda: self._server._look_s < 0.1)

    async def returned(self) -> None:
        """Let time pass until it has returned."""
        assert self.serving is not None
        while not self.serving.done():
            self.clock.advance(0.02)
            await asyncio.sleep(0)
        await self.serving

    async def at_end(self) -> None:
        """Stop, and leave nothing behind."""
        self.release.set()
        for peer in self._peers:
            peer.socket.close()
        if self.serving is not None:
            self.stop.begun.set()
            await self.returned()
            assert self.connections == []
        self._bound.close()
        assert self.clock.statistics().pending == (), "a timer outlives the server"

    def _app(self) -> DrainUnreadBodies:
        app = FastAPI()

        async def held() -> Response:
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.told.append("left")
                raise
            return Response("done")

        @app.get("/hold")
        async def hold(request: Request) -> Response:
            self.told.append("hold")
            return await while_connected(request, held())

        @app.get("/deaf")
        async def deaf() -> Response:
            self.told.append("deaf")
            return await held()

        @app.post("/body")
        async def body(request: Request) -> Response:
            self.told.append("body")
            return Response(str(len(await read_bytes(request, 2**24))))

        @app.get("/flood")
        async def flood() -> Response:
            return OwningResponse(self.flood, "text/plain")

        self._add_routes(app)
        install(app)
        return DrainUnreadBodies(app, 2**24)

    def _add_routes(self, app: FastAPI) -> None:
        """Routes of a stage that is made of this one."""


class Peer:
    """A client that does what it is told and nothing else."""

    def __init__(self, receive_buffer: int | None) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def ask(self, path: str, method: str = "GET", *fields: str) -> None:
        """Send a request without a body."""
        await self.send(head(path, method, *fields))

    async def read(self, count: int = BLOCK_BYTES) -> bytes:
        """What has come, nothing at the end."""
        return await asyncio.get_running_loop().sock_recv(self.socket, count)

    async def answer(self) -> "Answer":
        """The next answer with a length."""
        status, fields, body = await self.answer_head()
        while len(body) < int(fields["content-length"]):
            body += await self._more()
        return Answer(status, fields, body)

    async def answer_head(self) -> "tuple[int, dict[str, str], bytes]":
        """The status and the fields of the next answer, and what has come behind them."""
        received = await self.read_until(b"\r\n\r\n")
        top, _, rest = received.partition(b"\r\n\r\n")
        lines = top.decode().split("\r\n")
        return int(lines[0].split()[1]), dict(line.lower().split(": ", 1) for line in lines[1:]), rest

    async def read_until(self, mark: bytes, received: bytes = b"") -> bytes:
        """All that comes, at least as far as `mark`; `received` is what has come before."""
        while mark not in received:
            received += await self._more()
        return received

    async def is_closed(self) -> bool:
        """Wait for the end; whether nothing came before it."""
        try:
            return await self.read() == b""
        except ConnectionResetError:
            return True

    async def _more(self) -> bytes:
        data = await self.read()
        assert data, "the connection was closed before an answer was whole"
        return data


class TlsPeer(Peer):
    """A client over TLS. It answers a goodbye no more than anything else: only what it is told to read is looked at."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(None)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    async def shake_hands(self) -> None:
        """Do so; nothing can be sent before."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                self._incoming.write(await super().read())
            else:
                return await self._flush()

    async def send(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    async def read(self, count: int = BLOCK_BYTES) -> bytes:
        while True:
            try:
                return self._tls.read(count)
            except ssl.SSLWantReadError:
                self._incoming.write(await super().read())

    async def _flush(self) -> None:
        await super().send(self._outgoing.read())


class Answer:
    """A whole answer."""

    def __init__(self, status: int, fields: dict[str, str], body: bytes) -> None:
        self.status = status
        self.fields = fields
        self.body = body

    @property
    def code(self) -> str | None:
        """The code of an error in our shape."""
        error = json.loads(self.body)["error"]
        assert set(error) == {"message", "type", "param", "code"}
        code: str | None = error["code"]
        return code

    @property
    def message(self) -> str:
        """The message of an error."""
        message: str = json.loads(self.body)["error"]["message"]
        return message


def head(path: str, method: str = "GET", *fields: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: here", *fields, "", ""]).encode()


def _acknowledged(connection: Connection) -> int | None:
    """How many bytes the peer's side has acknowledged; None once the server is done with it."""
    info = None if connection.transport.is_closing() else connection._progress._tcp_info()
    return struct.unpack_from("Q", info, _ACKED_AT)[0] if info else None


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop run until something holds that nothing announces."""
    while not holds():  # noqa: ASYNC110 (see above)
        await asyncio.sleep(0)
