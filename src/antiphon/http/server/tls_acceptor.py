"""Accepts connections that begin with a TLS handshake, and counts them from the moment that they are accepted.

asyncio's own server for TLS makes a connection known only after its handshake, which a silent peer can put off. Peers
that never begin one would be in no count, and take all descriptors.
"""

import asyncio
import logging
import socket
import ssl
from contextlib import suppress
from functools import partial

from antiphon.http.server.connection import MAX_SURPLUS, Connection
from antiphon.http.server.traffic import Traffic

log = logging.getLogger(__name__)

_RETRY_S = 1.0
"""How long to wait, in seconds, before the next attempt where the system has no descriptor for a connection."""


class TlsAcceptor:
    """Accepts on one socket that listens, from the moment that it is made until it is closed."""

    def __init__(self, bound: socket.socket, context: ssl.SSLContext, traffic: Traffic) -> None:
        self._bound = bound
        self._context = context
        self._traffic = traffic
        self._accepting = asyncio.ensure_future(self._accept())

    def close(self) -> None:
        """Accept no more, give the address back, and let go of peers whose handshake is not over."""
        self._accepting.cancel()
        for handshake in self._traffic.handshakes.values():
            handshake.cancel()

    async def _accept(self) -> None:
        with (
            self._bound
        ):  # closed here, and not in `close`: a loop cannot stop watching a socket that is closed already
            await self._accept_each()

    async def _accept_each(self) -> None:
        loop = asyncio.get_running_loop()
        self._bound.setblocking(False)
        while True:
            try:
                peer, _ = await loop.sock_accept(self._bound)
            except ConnectionError:  # it has left already
                continue
            except OSError as fault:
                log.error("no connection can be accepted: %s", fault.strerror)  # noqa: TRY400 (no traceback helps)
                await asyncio.sleep(_RETRY_S)
                continue
            if self._is_full():
                peer.close()  # it can be told nothing before the handshake
                continue
            connection = Connection(self._traffic)
            handshake = loop.create_task(self._shake_hands(peer, connection))
            self._traffic.handshakes[connection] = handshake
            handshake.add_done_callback(partial(self._forget, peer, connection))

    async def _shake_hands(self, peer: socket.socket, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        limit_s = self._traffic.limits.header_timeout_s or None
        with suppress(OSError):  # no TLS, or not in time, or the peer has left
            await loop.connect_accepted_socket(
                lambda: connection, peer, ssl=self._context, ssl_handshake_timeout=limit_s
            )

    def _forget(self, peer: socket.socket, connection: Connection, handshake: asyncio.Task[None]) -> None:
        """The handshake is over; one that was cancelled before it began has left its socket open."""
        self._traffic.handshakes.pop(connection, None)
        if handshake.cancelled():
            peer.close()

    def _is_full(self) -> bool:
        limit = self._traffic.limits.max_connections
        return limit > 0 and self._traffic.open_connections >= limit + MAX_SURPLUS
