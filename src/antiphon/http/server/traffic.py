"""What the connections of one server share: uvicorn's settings and counts, the limits, the clock, the order to stop."""

import asyncio
from dataclasses import dataclass, field

import uvicorn
from uvicorn.server import ServerState

from antiphon.http.server.turns import Turns
from antiphon.ports.clock import Clock
from antiphon.ports.listener import AsgiApp, Ledger, PeerLimits, StopOrder

STALL_S = 0.25
"""How long a peer of a server that stops may make no progress in what it sends or takes, in seconds."""

LINGER_S = 2.0
"""How long a refused peer may go on sending before its connection is aborted, in seconds."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The shared state; `state` is uvicorn's own set of connections and of the tasks that answer requests.

    `goodbye` answers in the place of `app` once the server stops. `handshakes` are those
    of TLS that are not over, by the connection that each may become.
    """

    config: uvicorn.Config
    app: AsgiApp
    goodbye: AsgiApp
    ledger: Ledger
    limits: PeerLimits
    stop: StopOrder
    clock: Clock
    state: ServerState = field(default_factory=ServerState)
    turns: Turns = field(default_factory=Turns)
    handshakes: dict[asyncio.Protocol, asyncio.Task[None]] = field(default_factory=dict)

    @property
    def open_connections(self) -> int:
        """How many connections were accepted and are not closed, whatever has come of them so far."""
        return len(self.state.connections) + len(self.handshakes)
