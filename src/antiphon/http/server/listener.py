"""Serves HTTP on one socket that listens already: from the first connection to the last, in the order of a stop.

It knows the application only as something to call; who gives the order to stop is not its business, nor what a runtime
does meanwhile.
"""

import asyncio
import socket
import ssl
from email.utils import formatdate

import uvicorn

from antiphon.http.server.connection import Connection
from antiphon.http.server.exchange import goodbye
from antiphon.http.server.sockets import BACKLOG
from antiphon.http.server.tls_acceptor import TlsAcceptor
from antiphon.http.server.traffic import STALL_S, Traffic
from antiphon.http.server.websocket import WebSocketConnection
from antiphon.ports.clock import Clock, Timer
from antiphon.ports.listener import Served

_LOOK_S = 0.5
"""How often each connection is looked at, in seconds, unless a limit is shorter than two of that."""

_LOOK_STOPPING_S = 0.02
"""The same while the server stops."""

_CUT_GRACE_S = STALL_S
"""How long, after the cut, requests that were refused by it have to be answered, in seconds."""


class HttpServer:
    """HTTP over one socket. `serve` returns once it was told to stop and none of its requests runs any more."""

    def __init__(self, bound: socket.socket, served: Served, clock: Clock, tls: ssl.SSLContext | None = None) -> None:
        config = uvicorn.Config(
            served.app,
            http=Connection,
            ws="none",  # Connection hands over to ours
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nothing here asks where a client is
        )
        config.load()
        self._bound = bound
        self._tls = tls
        self._clock = clock
        self._stop = served.stop
        ledger = served.ledger
        self._traffic = Traffic(config, served.app, goodbye(ledger), ledger, served.limits, served.stop, clock)
        self._look_s = _look_s(served)
        self._next_look: Timer | None = None
        self._cut_at: float | None = None
        self._is_over = asyncio.Event()

    async def serve(self) -> None:
        """Serve until the order to stop, then let what was accepted end, until the cut.

        From the order on the socket is closed, a new request on an open connection is answered 503 shutting_down, and a
        peer that makes no progress for 250 ms is let go of. After the cut every connection is, whatever it does. What
        the application still does for one that is gone is joined without a bound.
        """
        server = await self._begin_to_accept()
        self._look()
        try:
            await self._stop.begun.wait()
            server.close()
            for connection in self._connections():
                connection.begin_stop()
            self._look_s = _LOOK_STOPPING_S
            self._look()
            await self._is_over.wait()
        finally:
            server.close()
            if self._next_look is not None:
                self._next_look.cancel()
            self._abort_all()

    async def _begin_to_accept(self) -> asyncio.Server | TlsAcceptor:
        if self._tls is not None:
            return TlsAcceptor(self._bound, self._tls, self._traffic)
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: Connection(self._traffic), sock=self._bound, backlog=BACKLOG)

    def _look(self) -> None:
        """Look at every connection, and again a little later."""
        if self._next_look is not None:
            self._next_look.cancel()
        now = self._clock.now()
        self._traffic.state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        for connection in self._connections():
            connection.check(now)
        if self._stop.begun.is_set():
            self._look_for_the_end(now)
        if not self._is_over.is_set():
            self._next_look = self._clock.call_at(now + self._look_s, self._look)

    def _look_for_the_end(self, now: float) -> None:
        if self._stop.cut.is_set():
            self._cut_at = now if self._cut_at is None else self._cut_at
            if now - self._cut_at >= _CUT_GRACE_S:
                self._abort_all()
        if self._traffic.state.tasks or self._traffic.handshakes:
            return
        connections = self._connections()
        if not connections:
            self._is_over.set()
        for connection in connections:
            connection.end()

    def _connections(self) -> list[Connection | WebSocketConnection]:
        connections = list[object](self._traffic.state.connections)  # uvicorn's type names its own classes alone
        return [it for it in connections if isinstance(it, Connection | WebSocketConnection)]

    def _abort_all(self) -> None:
        for connection in self._connections():
            connection.abort()


def _look_s(served: Served) -> float:
    """Look twice in the shortest of the limits."""
    limits = served.limits
    times = (limits.header_timeout_s, limits.body_timeout_s, limits.send_timeout_s, limits.keep_alive_s)
    return min(_LOOK_S, *(time_s / 2 for time_s in times if time_s))
