"""What the connections of one server share: uvicorn's settings and counts, the limits, the clock, the order to stop."""

from dataclasses import dataclass, field

import uvicorn
from uvicorn.server import ServerState

from antiphon.ports.clock import Clock
from antiphon.ports.listener import PeerLimits, StopOrder


@dataclass(frozen=True, slots=True)
class Traffic:
    """The shared state; `state` is uvicorn's own set of connections and of the tasks that answer requests."""

    config: uvicorn.Config
    limits: PeerLimits
    stop: StopOrder
    clock: Clock
    state: ServerState = field(default_factory=ServerState)
