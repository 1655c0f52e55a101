"""The front as a process: it listens as every server does, over replicas, until it is told to stop."""

import os
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from functools import partial

from starlette.types import Scope

from antiphon.bootstrap import ANYONE, access_rules, bind_as_allowed, body_budget, peer_limits
from antiphon.config import ServerConfig
from antiphon.http.access import AccessRules
from antiphon.http.held_bodies import BodyBudget
from antiphon.http.keys import KeyRing
from antiphon.http.ledger import RequestLedger
from antiphon.http.server import HttpServer, address_of
from antiphon.http.tls import tls_context
from antiphon.listeners.kinds import make_listener
from antiphon.listeners.side import SideListeners
from antiphon.observability.counts import Counts
from antiphon.ports.listener import AsgiApp, HouseRules, Served
from antiphon.runtime.clock import LoopClock
from antiphon.runtime.shutdown import Shutdown
from antiphon.runtime.signals import StopSource
from antiphon.runtime.supervisor import Supervisor
from antiphon.scaling.changes import Changes
from antiphon.scaling.fleet import Fleet
from antiphon.scaling.forwarding import Forwarding
from antiphon.scaling.front import create_front
from antiphon.scaling.merged import Merged
from antiphon.scaling.sockets import SocketForwarding
from antiphon.scaling.upstream import Upstream


async def serve_front(
    config: ServerConfig, fleet: Fleet, on_listening: Callable[[str], None], signals: StopSource
) -> None:
    """Serve until told to stop, then drain; the replicas hear when the end begins, and end with whoever has them.

    Raises ConfigError where it cannot listen as the configuration says.
    """
    clock, ledger = LoopClock(), RequestLedger(Counts())
    with ExitStack() as opened:
        tls = tls_context(config.tls_cert, config.tls_key) if config.tls_cert and config.tls_key else None
        bound, callers = bind_as_allowed(config)
        opened.callback(bound.close)
        own, elsewhere = access_rules(config, callers), access_rules(config, ANYONE)
        rules = HouseRules(own.accepted_keys, config.insecure)
        side = SideListeners([make_listener(it.kind, it.options(), rules) for it in config.listeners])
        side.open()
        opened.callback(side.close)
        supervisor = Supervisor(os.environ, clock)
        opened.callback(supervisor.close)
        shutdown = Shutdown(fleet, clock, config.drain_timeout_ms / 1000, on_begun=supervisor.stopping)
        opened.callback(shutdown.close)
        signals.tell(shutdown.ask)
        limits, order, bodies = peer_limits(config), shutdown.order, body_budget(config)
        async with AsyncExitStack() as until_end:
            upstream = await until_end.enter_async_context(Upstream(fleet.token))
            url = address_of(bound, secure=tls is not None)
            on_listening(url)
            if config.listeners:
                app = _app(config, fleet, upstream, elsewhere, ledger, bodies=bodies)
                side.start(Served(app, limits, order, ledger), shutdown.begin)
            supervisor.ready(f"answering at {url}, replicas: {fleet.size}")
            served = Served(_app(config, fleet, upstream, own, ledger, bodies=bodies), limits, order, ledger)
            try:
                await HttpServer(bound, served, clock, tls).serve()
            finally:
                shutdown.begin()
                await side.join()


def _app(
    config: ServerConfig,
    fleet: Fleet,
    upstream: Upstream,
    access: AccessRules,
    ledger: RequestLedger,
    *,
    bodies: BodyBudget,
) -> AsgiApp:
    limit_bytes, piece_bytes = config.max_request_body_bytes, peer_limits(config).max_message_bytes
    return create_front(
        Forwarding(fleet, upstream, limit_bytes, piece_bytes),
        SocketForwarding(fleet, upstream, piece_bytes),
        Changes(fleet, upstream, partial(_admits, KeyRing(config.admin_keys), management=config.ui_management)),
        Merged(fleet, upstream),
        access=access,
        ledger=ledger,
        limit_bytes=limit_bytes,
        bodies=bodies,
    )


def _admits(admin_keys: KeyRing, scope: Scope, *, management: bool) -> bool:
    """Whether a replica's own door would let this caller manage."""
    return management and (not admin_keys or admin_keys.opens_for(scope))
