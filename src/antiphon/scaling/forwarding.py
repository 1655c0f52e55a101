"""Requests that one replica answers: received, sent on to the one that suits them best, and answered piece by piece.

What is live is sent on while it comes. A client that leaves ends the connection to the replica, which sees it leave.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from antiphon.http.envelope import error_body
from antiphon.http.live import take_pace
from antiphon.http.presence import until_left, while_connected, while_present
from antiphon.http.routes.live import PATH as LIVE
from antiphon.http.streaming import SSE_TYPE, OwningResponse, event
from antiphon.scaling.fleet import Fleet, Replica
from antiphon.scaling.spooled import Spool
from antiphon.scaling.upstream import AnswerPieces, Upstream, answer_headers
from antiphon.vocabulary.errors import AntiphonError, InvalidRequest

NAMED = "replica"
"""The query parameter of requests that only read: the replica that is to answer, instead of whichever suits."""


class Forwarding:
    """Sends requests on. Units: `limit_bytes` of a whole body, `chunk_bytes` of a piece of a live one."""

    def __init__(self, fleet: Fleet, upstream: Upstream, limit_bytes: int, chunk_bytes: int) -> None:
        self._fleet = fleet
        self._upstream = upstream
        self._limit_bytes = limit_bytes
        self._chunk_bytes = chunk_bytes

    async def forward(self, request: Request) -> Response:
        """Have it answered by one replica."""
        if request.method == "POST" and request.url.path == LIVE:
            return await self._forward_live(request)
        named = request.query_params.get(NAMED)
        if named is not None and request.method in {"GET", "HEAD"}:
            return await self._begin(request, await named_replica(self._fleet, named), None, None, AsyncExitStack())
        async with AsyncExitStack() as held:
            spool = held.enter_context(Spool())
            await spool.receive(request, self._limit_bytes)
            model = spool.model or request.query_params.get("model", "")
            body, size = (spool.blocks(), spool.size_bytes) if spool.size_bytes else (None, None)
            return await while_connected(request, self._choose_and_begin(request, model, body, size, held.pop_all()))

    async def _forward_live(self, request: Request) -> Response:
        take_pace(request.scope, self._chunk_bytes)
        model, body = request.query_params.get("model", ""), _live_body(request)
        begin = self._choose_and_begin(request, model, body, None, AsyncExitStack())
        return await while_present(request.scope, begin)

    async def _choose_and_begin(
        self,
        request: Request,
        model: str,
        body: AsyncIterator[bytes] | None,
        size_bytes: int | None,
        held: AsyncExitStack,
    ) -> Response:
        async with held:
            replica = await held.enter_async_context(self._fleet.held(model))
            return await self._begin(request, replica, body, size_bytes, held.pop_all())

    async def _begin(
        self,
        request: Request,
        replica: Replica,
        body: AsyncIterator[bytes] | None,
        size_bytes: int | None,
        held: AsyncExitStack,
    ) -> Response:
        async with held:
            response = await self._upstream.begin(replica, request, body, size_bytes)
            return _Relayed(response, replica, held.pop_all())


async def named_replica(fleet: Fleet, name: str) -> Replica:
    """The replica of this name; raises InvalidRequest where there is none."""
    present = await fleet.present()
    for replica in present:
        if replica.name == name:
            return replica
    names = ", ".join(it.name for it in present)
    raise InvalidRequest(f"there is no replica {name[:100]!r}; there are {names}", param=NAMED)


class _Relayed(OwningResponse):
    """An answer of a replica, as it comes. What ends it early is an event in a stream of such, and a cut else."""

    def __init__(self, response: aiohttp.ClientResponse, replica: Replica, held: AsyncExitStack) -> None:
        headers = answer_headers(response)
        content_type = headers.get("content-type", "")
        super().__init__(AnswerPieces(response, replica, held), content_type, headers)
        self.status_code = response.status
        self._is_stream = content_type.partition(";")[0] == SSE_TYPE
        if not content_type:
            del self.headers["content-type"]
        if length := headers.get("content-length"):
            self.headers["content-length"] = length

    def farewell(self, error: AntiphonError) -> bytes | None:
        return event({"type": "error", **error_body(error)}) if self._is_stream else None

    async def until_left(self, scope: Scope, receive: Receive) -> None:
        del receive  # a live body may still be read from it
        await until_left(scope)


async def _live_body(request: Request) -> AsyncGenerator[bytes]:
    """The body as it comes. Raises ClientDisconnect when the client leaves: then the replica must not see an end."""
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        if chunk := message.get("body", b""):
            yield chunk
        more = message.get("more_body", False)
