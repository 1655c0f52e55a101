"""What all requests together hold of their bodies while they arrive and are worked on: one budget, in bytes and files.

A limit for each body is not enough: a thousand connections with a body of the largest size each would fill any disk.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from antiphon.vocabulary.errors import ServerBusy

FREE_BYTES = 64 * 1024
"""What every body may hold without being counted, so that ordinary requests are served when the budget is used up.

The number of connections limits what all of them hold: 64 MiB for a thousand.
"""

RETRY_AFTER_S = 5.0
"""When a refused client may try again: the largest bodies take a few seconds to be worked on."""

_SHARE = "antiphon.body_share"


class BodyBudget:
    """The bytes and the files of all bodies. Units: `limit_bytes` in all, with JSON counted as often as it is copied.

    `limit_files` is for the temporary files of all forms and recordings. It is counted on the event loop only.
    """

    def __init__(self, limit_bytes: int, limit_files: int) -> None:
        self.limit_bytes = limit_bytes
        self.limit_files = limit_files
        self.held_bytes = 0
        self.held_files = 0


class BodyShare:
    """What one request, or one recording of a session, holds of the budget. Units: `free_bytes` are not counted."""

    def __init__(self, budget: BodyBudget | None, free_bytes: int = FREE_BYTES) -> None:
        self._budget = budget
        self._free_bytes = free_bytes
        self._received_bytes = 0
        self._counted_bytes = 0
        self._files = 0

    def beside(self) -> "BodyShare":
        """Another share of the same budget, of which every byte counts."""
        return BodyShare(self._budget, free_bytes=0)

    def add(self, size_bytes: int) -> None:
        """Count bytes before they are kept; raises ServerBusy if all bodies together would hold too many."""
        if self._budget is None:
            return
        received_bytes = self._received_bytes + size_bytes
        more = max(0, received_bytes - self._free_bytes) - self._counted_bytes
        if more and self._budget.held_bytes + more > self._budget.limit_bytes:
            raise ServerBusy(
                "the server holds as many bytes of request bodies as it may (max_pending_body_mb)",
                retry_after_s=RETRY_AFTER_S,
            )
        self._received_bytes = received_bytes
        self._counted_bytes += more
        self._budget.held_bytes += more

    def add_file(self) -> None:
        """Count a temporary file before it is opened; raises ServerBusy if there are too many already."""
        if self._budget is None:
            return
        if self._budget.held_files >= self._budget.limit_files:
            raise ServerBusy(
                "the server keeps as many uploads in temporary files as it may", retry_after_s=RETRY_AFTER_S
            )
        self._files += 1
        self._budget.held_files += 1

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Release the share at once if the block fails: the rest of a refused body is only read to be dropped."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give everything back, because the body was dropped; harmless when done twice."""
        if self._budget is not None:
            self._budget.held_bytes -= self._counted_bytes
            self._budget.held_files -= self._files
        self._received_bytes = self._counted_bytes = self._files = 0


class HoldBodies:
    """ASGI middleware: each request has a share of the budget, which goes back when its answer ends at the latest."""

    def __init__(self, app: ASGIApp, budget: BodyBudget) -> None:
        self._app = app
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        share = BodyShare(self._budget)
        scope[_SHARE] = share  # into the same scope: the ledger reads the route from it afterwards
        try:
            await self._app(scope, receive, send)
        finally:
            share.release()


def share_of(scope: Mapping[str, Any]) -> BodyShare:  # ASGI's own type
    """This request's share; in an application without the middleware it counts nothing."""
    share: BodyShare | None = scope.get(_SHARE)
    return BodyShare(None) if share is None else share
