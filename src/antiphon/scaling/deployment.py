"""The replicas under Ray Serve: started, found, held and ended. Nothing else here knows how Ray is called.

Ray is told to send nothing home and to open no port for people: neither its dashboard nor its own HTTP proxy runs.
"""

import asyncio
import logging
import os
import socket
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from antiphon.scaling.choice import Underway
from antiphon.scaling.fleet import Replica
from antiphon.scaling.replica import Plan, SpeechReplica
from antiphon.vocabulary.errors import ConfigError, ServerBusy

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle

log = logging.getLogger(__name__)

APP = "antiphon"
"""The name of the application in Ray Serve; one that has it already is replaced."""

_ROUTER = "antiphon.scaling.router:ResidencyRouter"
_STATS_PERIOD_S = 0.5
_FIND_S = 10.0
"""How long a request waits for a replica where there is none, in seconds: one that died is replaced in about that."""

_ASK_S = 10.0
"""How long the replicas may take to say where they are, in seconds."""

_NO_LIMIT = 1_000_000
"""Requests at a replica, as Ray Serve counts them: the replica's own queues have the limits."""

_GRACE_S = 30.0
"""What a replica has beyond the time for its drain, in seconds: to give up what is left, and to free its models."""

_NO_BOUND_S = 10.0 * 365 * 86400


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of the cluster; `address` None starts one, and `per_node` None bounds the replicas of no node."""

    replicas: int
    cpus: float = 1.0
    gpus: float = 0.0
    per_node: int | None = None
    address: str | None = None


def require_extra() -> None:
    """Raise ConfigError where antiphon was installed without what this needs."""
    if find_spec("ray") is None or find_spec("aiohttp") is None:
        raise ConfigError("scale-out needs Ray Serve: install antiphon[ray]")


@contextmanager
def running_fleet(plan: Plan, wanted: Wanted) -> Iterator["RayFleet"]:
    """Have the replicas run for the length of the block; it begins when all listen, and ends when all have ended.

    Raises ConfigError where the cluster cannot be reached or a replica cannot start.
    """
    if wanted.address is not None:
        _require_reachable(wanted.address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own, about pydantic
        import ray
        from ray import serve
    try:
        if wanted.address is None:
            ray.init(address="local", include_dashboard=False)
        else:
            ray.init(address=wanted.address)
    except (ConnectionError, RuntimeError, ValueError) as fault:
        raise ConfigError(f"the Ray cluster at {wanted.address or 'this machine'} cannot be used: {fault}") from fault
    try:
        serve.start(proxy_location="Disabled")
        try:
            handle = _run(plan, wanted)
        except RuntimeError as fault:
            raise ConfigError("the replicas cannot start; the log says why") from fault
        try:
            yield RayFleet(handle, wanted.replicas, plan.token)
        finally:
            serve.delete(APP)
    finally:
        ray.shutdown()


class RayFleet:
    """The replicas of one deployment, as `Fleet`. To be used on one loop."""

    def __init__(self, handle: "DeploymentHandle[SpeechReplica]", size: int, token: str) -> None:
        from ray.exceptions import RayError
        from ray.serve.exceptions import RayServeException

        self._faults = (RayError, RayServeException, TimeoutError)
        self._handle = handle
        self._underway = Underway()
        self._orders: set[asyncio.Task[None]] = set()
        self._size = size
        self._token = token

    @property
    def size(self) -> int:
        """How many there are to be."""
        return self._size

    @property
    def token(self) -> str:
        """What proves the front to each of them."""
        return self._token

    @asynccontextmanager
    async def held(self, model: str) -> AsyncIterator[Replica]:
        """As in `Fleet`: Ray Serve reserves a place at the replica, and lets what has one end before it stops that."""
        with closing(self._underway.claim(model)) as claim:
            async with AsyncExitStack() as reserved:
                try:
                    async with asyncio.timeout(_FIND_S):
                        selection = await reserved.enter_async_context(self._handle.choose_replica(claim))
                except self._faults as fault:
                    raise ServerBusy("there is no replica now", retry_after_s=_FIND_S) from fault
                replica = _replica(selection.replica_metadata)
                claim.settle(replica.name)
                yield replica

    async def present(self) -> Sequence[Replica]:
        """Those that answer now, by name."""
        told = self._handle.broadcast("record_replica_metadata")
        try:
            answers = await told.results_async(timeout_s=_ASK_S, return_exceptions=True)
        except self._faults as fault:
            log.warning("the replicas cannot be asked: %s", fault)
            return ()
        return sorted((_replica(it) for it in answers if isinstance(it, dict)), key=lambda it: it.name)

    def refuse(self) -> None:
        """The end begins: each is to begin its own."""
        self._order("begin_stop")

    def cut(self) -> None:
        """The end is now: each is to give up what it has not finished."""
        self._order("cut")

    def _order(self, method: str) -> None:
        order = asyncio.ensure_future(self._tell(method))
        self._orders.add(order)
        order.add_done_callback(self._orders.discard)

    async def _tell(self, method: str) -> None:
        try:
            await self._handle.broadcast(method).results_async(timeout_s=_ASK_S, return_exceptions=True)
        except self._faults as fault:  # Ray Serve ends those that did not hear of it
            log.warning("the replicas cannot be told to end: %s", fault)


def _require_reachable(address: str) -> None:
    """Raise ConfigError where nobody listens: Ray tries for minutes before it says so. `auto` is Ray's to find."""
    host, colon, port = address.rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host, int(port)), _ASK_S).close()
    except (OSError, ValueError, OverflowError) as fault:
        raise ConfigError(f"no Ray cluster can be reached at {address}: {fault}") from fault


def _run(plan: Plan, wanted: Wanted) -> "DeploymentHandle[SpeechReplica]":
    from ray import serve

    drain_s = plan.config.drain_timeout_ms / 1000
    deployment = serve.deployment(
        name="speech",
        num_replicas=wanted.replicas,
        max_ongoing_requests=_NO_LIMIT,
        ray_actor_options={"num_cpus": wanted.cpus, "num_gpus": wanted.gpus},
        graceful_shutdown_timeout_s=drain_s + _GRACE_S if drain_s else _NO_BOUND_S,
        graceful_shutdown_wait_loop_s=0.1,
        health_check_period_s=2.0,
        health_check_timeout_s=30.0,
        request_router_config={"request_router_class": _ROUTER, "request_routing_stats_period_s": _STATS_PERIOD_S},
    )(SpeechReplica)
    if wanted.per_node is not None:
        deployment = deployment.options(max_replicas_per_node=wanted.per_node)
    return serve.run(deployment.bind(plan), name=APP, route_prefix=None)


def _replica(told: dict[str, str]) -> Replica:
    return Replica(told["name"], told["url"], told["node"])
