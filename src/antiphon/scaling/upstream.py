"""The front's side of its connections to replicas: one request, one connection, its answer in pieces.

A connection serves one request only: one that lay idle could be dead, and nobody could tell that from a dead replica.
It knows no route.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import aiohttp
from starlette.requests import HTTPConnection, Request
from yarl import URL

from antiphon.http.ledger import REQUEST_ID
from antiphon.observability.records import CURRENT
from antiphon.scaling.fleet import TOKEN_HEADER, Replica
from antiphon.vocabulary.errors import WorkerDied

CONNECT_S = 5.0
"""How long a replica may take to accept a connection, in seconds: it listens already, so only its node can be gone."""

_HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
"""What is said between two ends of one connection. Source: RFC 9110, 7.6.1."""

_NOT_SENT = _HOP_BY_HOP | {"accept", "expect", "content-length", "origin", TOKEN_HEADER, REQUEST_ID}
"""Nor what the front has done itself, or says anew: it has judged the page that a request comes from, and reads numbers
in one form alone.
"""

_NOT_ANSWERED = _HOP_BY_HOP | {"date", "server", REQUEST_ID}


@dataclass(frozen=True, slots=True)
class Answered:
    """A whole answer of one replica; `status` 503 and no body stand for one that has died."""

    replica: Replica
    status: int
    headers: Mapping[str, str]
    body: bytes


class Upstream:
    """Asks replicas, each time with the front's token. Use it as a context manager, on the loop."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    def headers(self, request_headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
        """What is said to a replica for a request with these headers."""
        kept = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request_headers]
        ours = [(TOKEN_HEADER, self._token)]
        if (record := CURRENT.get(None)) is not None:
            ours.append((REQUEST_ID, record.id))
        return [(name, value) for name, value in kept if name not in _NOT_SENT] + ours

    async def begin(
        self,
        replica: Replica,
        request: Request,
        body: AsyncIterator[bytes] | bytes | None,
        size_bytes: int | None = None,
    ) -> aiohttp.ClientResponse:
        """Send a request on, as it came, and return its answer once that begins; `size_bytes` None is a chunked body.

        Raises WorkerDied where the replica cannot be reached, or is gone before it answers.
        """
        headers = self.headers(request.scope["headers"])
        if size_bytes is not None:
            headers.append(("content-length", str(size_bytes)))
        try:
            return await self._session.request(
                request.method, url_of(replica, request), headers=headers, data=body, allow_redirects=False
            )
        except (aiohttp.ClientError, OSError) as fault:
            raise died(replica) from fault

    async def ask(self, replica: Replica, request: Request, body: bytes | None) -> Answered:
        """Send a request on and return its whole answer. A replica that dies meanwhile is told of in it."""
        try:
            response = await self.begin(replica, request, body, None if body is None else len(body))
            async with response:
                whole = await response.read()
                return Answered(replica, response.status, answer_headers(response), whole)
        except (WorkerDied, aiohttp.ClientError, OSError):
            return Answered(replica, 503, {}, b"")

    async def ask_all(self, replicas: Iterable[Replica], request: Request, body: bytes | None = None) -> list[Answered]:
        """Ask each of them at once; the answers come in their order."""
        return list(await asyncio.gather(*(self.ask(it, request, body) for it in replicas)))


class AnswerPieces:
    """The pieces of an answer as they come, and what is held until their end."""

    def __init__(self, response: aiohttp.ClientResponse, replica: Replica, held: AsyncExitStack) -> None:
        self._response = response
        self._replica = replica
        self._held = held

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._response.content.iter_any():
                yield piece
        except (aiohttp.ClientError, OSError) as fault:
            raise died(self._replica) from fault

    async def aclose(self) -> None:
        """Let go of the connection: a replica that still works on the answer sees its client leave."""
        self._response.close()
        await self._held.aclose()


def answer_headers(response: aiohttp.ClientResponse) -> Mapping[str, str]:
    """What a replica's answer says, as the front repeats it."""
    return {name.lower(): value for name, value in response.headers.items() if name.lower() not in _NOT_ANSWERED}


def url_of(replica: Replica, request: HTTPConnection) -> URL:
    """Where a replica has what was asked, byte for byte as it was asked."""
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    query = request.scope["query_string"]
    target = raw + b"?" + query if query else raw
    return URL(replica.url + target.decode("latin-1"), encoded=True)


def died(replica: Replica) -> WorkerDied:
    """What is said of a replica that is gone."""
    return WorkerDied(f"the replica {replica.name} has ended before its answer had; the next request finds another")
