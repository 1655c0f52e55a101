"""All connections of one listener: how many there may be, who looks after them, and how they end together."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace

from wyoming.error import Error

from antiphon.http.server.traffic import STALL_S
from antiphon.listeners.in_process import InProcessApp
from antiphon.listeners.wyoming.catalogue import Catalogue
from antiphon.listeners.wyoming.options import Options
from antiphon.listeners.wyoming.peer import Peer, Terms
from antiphon.listeners.wyoming.talk import Talk
from antiphon.ports.clock import Clock, Timer
from antiphon.ports.listener import PeerLimits, Served

log = logging.getLogger(__name__)

_LOOK_S = 0.5
"""How often each connection is looked at, in seconds, unless a limit is shorter than two of that."""

_LOOK_STOPPING_S = 0.02
"""The same while the server stops."""

_MAX_SURPLUS = 64
"""Connections over the limit that are told so at one time; those beyond are just dropped."""


class Service:
    """The connections, each with the task that speaks on it."""

    def __init__(self, served: Served, options: Options, clock: Clock) -> None:
        self._terms = Terms(_limits(served.limits, options), served.stop, clock)
        self._app = InProcessApp(served.app, options.api_key, served.stop.begun)
        self._catalogue = Catalogue(self._app, options.asr_model, options.tts_model)
        self._options = options
        self._peers: set[Peer] = set()
        self._talks: set[asyncio.Task[None]] = set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._next_look: Timer | None = None
        self._cut_at: float | None = None

    def accept(self) -> Peer:
        """The protocol of a new connection."""
        return Peer(self._terms, self._welcome)

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look at every connection now and then while the block lasts, and when the server begins to stop."""
        watching = asyncio.ensure_future(self._look_at_the_stop())
        self._look()
        try:
            yield
        finally:
            watching.cancel()
            if self._next_look is not None:
                self._next_look.cancel()

    async def drain(self) -> None:
        """Wait until the last connection is gone; all are, a moment after the cut."""
        await self._is_empty.wait()

    async def end(self) -> None:
        """Cut off what is left, and join everything that called the application."""
        for peer in list(self._peers):
            peer.abort()
        while self._talks:
            await asyncio.wait(self._talks)
        await self._app.join()

    def _welcome(self, peer: Peer) -> None:
        self._peers.add(peer)
        self._is_empty.clear()
        surplus = len(self._peers) - self._terms.limits.max_connections
        if not self._terms.limits.max_connections or surplus <= 0:
            talk = asyncio.ensure_future(_ended(peer, Talk(peer, self._app, self._catalogue, self._options).run()))
        elif surplus <= _MAX_SURPLUS:
            full = Error("the server has too many connections", "server_busy")
            talk = asyncio.ensure_future(_ended(peer, peer.part(full.event())))
        else:
            peer.on_closed = lambda: self._forget(peer)
            peer.abort()
            return
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)
        peer.on_left = talk.cancel
        peer.on_closed = lambda: self._forget(peer)

    def _forget(self, peer: Peer) -> None:
        self._peers.discard(peer)
        if not self._peers:
            self._is_empty.set()

    async def _look_at_the_stop(self) -> None:
        await self._terms.stop.begun.wait()
        self._look()

    def _look(self) -> None:
        """Look at every connection, and again a little later."""
        if self._next_look is not None:
            self._next_look.cancel()
        now, stop = self._terms.clock.now(), self._terms.stop
        for peer in list(self._peers):
            peer.check(now)
        if stop.cut.is_set():
            self._cut_at = now if self._cut_at is None else self._cut_at
            if now - self._cut_at >= STALL_S:  # whom the cut refused has been told
                for peer in list(self._peers):
                    peer.abort()
        pause_s = _LOOK_STOPPING_S if stop.begun.is_set() else _look_s(self._terms.limits)
        self._next_look = self._terms.clock.call_at(now + pause_s, self._look)


async def _ended(peer: Peer, talk: Coroutine[object, object, None]) -> None:
    """Speak with a peer, and close its connection."""
    try:
        await talk
    except (OSError, asyncio.IncompleteReadError):  # the peer has left
        pass
    except Exception:  # the edge that owns what becomes of a connection
        log.exception("a Wyoming connection broke")
    finally:
        peer.close()


def _limits(limits: PeerLimits, options: Options) -> PeerLimits:
    if options.max_connections is not None:
        limits = replace(limits, max_connections=options.max_connections)
    if options.idle_timeout_ms is not None:
        limits = replace(limits, keep_alive_s=options.idle_timeout_ms / 1000)
    return limits


def _look_s(limits: PeerLimits) -> float:
    times = (limits.header_timeout_s, limits.body_timeout_s, limits.send_timeout_s, limits.keep_alive_s)
    return min(_LOOK_S, *(time_s / 2 for time_s in times if time_s))
