"""A replica: the whole server, in a process that Ray Serve runs. It is put together as every server is.

It listens on the address of its node, for the front alone. It knows of Ray Serve no more than what that calls here.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from secrets import compare_digest

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from antiphon.bootstrap import ANYONE, Assembly, Callers, assemble, serve
from antiphon.config import ServerConfig
from antiphon.http.envelope import error_response
from antiphon.http.keys import values
from antiphon.observability.lines import FORMATS, log_lines
from antiphon.runtime.discovery import AdapterFinder
from antiphon.scaling.fleet import TOKEN_HEADER
from antiphon.vocabulary.errors import Forbidden, Starting
from antiphon.vocabulary.spec import DamagedModel

_OF_RAY = "OMP_NUM_THREADS"
"""Ray sets it to the CPUs that a replica is counted with, and engines would take it for their number of threads."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What every replica is made of. `config` is complete: no file is read where a replica starts."""

    config: ServerConfig
    families: Sequence[str]
    parallel_jobs: bool
    token: str
    log_level: str = "INFO"
    log_format: str = "pretty"
    damaged: Sequence[DamagedModel] | None = None
    """As `assemble` takes it."""


class SpeechReplica:
    """One server, from its start to its end, as Ray Serve drives it: coroutines on one loop, all else in threads."""

    def __init__(self, plan: Plan) -> None:
        from ray import serve as ray_serve
        from ray.util import get_node_ip_address

        log_lines(plan.log_level, FORMATS[plan.log_format]())
        os.environ.pop(_OF_RAY, None)
        self._name = ray_serve.get_replica_context().replica_id.unique_id
        self._node = str(get_node_ip_address())  # type: ignore[no-untyped-call]  # Ray's
        config = as_replica(plan.config, self._name, self._node)
        made = assemble(
            config,
            AdapterFinder(plan.families),
            parallel_jobs=plan.parallel_jobs,
            source="the plan",
            damaged=plan.damaged,
        )
        self._assembly = _Guarded(**{field.name: getattr(made, field.name) for field in fields(made)}, token=plan.token)
        self._stop = _Stop()
        self._url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.ensure_future(serve(self._assembly, self._url.set_result, self._stop))

    async def record_replica_metadata(self) -> dict[str, str]:
        """Where it is reached; Ray Serve tells the front. Raises what kept it from listening."""
        await asyncio.wait((self._url, self._serving), return_when=asyncio.FIRST_COMPLETED)
        if not self._url.done():
            self._serving.result()
        return {"name": self._name, "url": self._url.result(), "node": self._node}

    async def record_routing_stats(self) -> dict[str, list[int]]:
        """Every name of a model: whether it is in memory, and its slots."""
        told = {}
        for status in self._assembly.services.models.status():
            registration = status.view.registration
            for name in (registration.spec.id, *registration.aliases):
                told[name] = [int(status.view.loaded), status.gate.capacity]
        return told

    async def check_health(self) -> None:
        """Raise once it serves no more, so that Ray Serve starts another."""
        if self._serving.done() and not self._stop.is_asked:
            raise Starting("the replica has ended")

    async def begin_stop(self) -> None:
        """Begin to end, as at a first stop signal."""
        if not self._stop.is_asked:
            self._stop.ask()

    async def cut(self) -> None:
        """End now, as at a second stop signal."""
        await self.begin_stop()
        self._stop.ask()

    async def __del__(self) -> None:
        """Ray Serve's order to end: what was begun ends first, within the time for the drain."""
        await self.begin_stop()
        await asyncio.wait((self._serving,))


def as_replica(config: ServerConfig, name: str, node: str) -> ServerConfig:
    """The configuration of one replica: what the front does is left out, and its files are its own.

    The front checks Host and Origin, speaks HTTPS and has the other listeners. Keys stay: the front passes them on.
    A replica may listen beyond its machine without one, as it answers to nobody but the front.
    """
    journal = config.journal
    if journal is not None:
        path = Path(journal)
        journal = str(path.with_name(f"{path.stem}.{name}{path.suffix}"))
    ours = {"host": node, "port": 0, "insecure": True, "cors_origins": "", "tls_cert": None, "tls_key": None}
    return config.model_copy(update={**ours, "listeners": (), "journal": journal})


class OnlyTheFront:
    """ASGI middleware: who does not prove to be the front is not answered, whatever is asked."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_front(scope):
            await self._app(scope, receive, send)
        else:
            await error_response(Forbidden("this is a replica; it is called through its front"))(scope, receive, send)

    def _is_front(self, scope: Scope) -> bool:
        return compare_digest(next(values(scope, TOKEN_HEADER.encode()), b""), self._token)


@dataclass(frozen=True, slots=True)
class _Guarded(Assembly):
    token: str

    def app(self, callers: Callers = ANYONE) -> FastAPI:
        """The application, for the front alone: that has checked the name that it was called by."""
        del callers
        app = super(_Guarded, self).app()
        app.add_middleware(OnlyTheFront, token=self.token)
        return app


class _Stop:
    """What stop signals are to a server that has a process of its own."""

    def __init__(self) -> None:
        self.is_asked = False
        self._ask: Callable[[], None] | None = None

    def tell(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        if self.is_asked:
            ask()

    def ask(self) -> None:
        self.is_asked = True
        if self._ask is not None:
            self._ask()
