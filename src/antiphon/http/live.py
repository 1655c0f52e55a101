"""What a session of minutes asks of its listener: to be told of the stop, and to leave the body's timing to it.

A request or a WebSocket finds both in its scope, where its listener offers them. One that calls the application in
process may leave them out: then no stop is heard of, and nobody but the application times the body anyway.
"""

import asyncio
from collections.abc import Callable

from starlette.types import Scope

STOPPING = "antiphon.stopping"
"""Where a scope has the `asyncio.Event` that is set, once and for good, when the server begins to stop."""

PACE = "antiphon.pace"
"""Where an HTTP scope has what `take_pace` calls; a WebSocket's messages are timed by its application alone."""


def stopping(scope: Scope) -> asyncio.Event:
    """Set once the server stops: a live session then says so, ends its answer, and sends nothing more."""
    event: asyncio.Event | None = scope.get(STOPPING)
    return asyncio.Event() if event is None else event


def take_pace(scope: Scope, max_chunk_bytes: int = 0) -> None:
    """Take the timing of this request's body over, and have a client that waits to be asked for it begin.

    From here on the listener's limit of a body that stalls is off, also while the server stops. A body that breaks
    raises InvalidRequest from `receive`, also under an answer that has begun, and one with a chunk of more than
    `max_chunk_bytes` (0 is no limit) TooLarge; a client that leaves is an `http.disconnect`, and none of these is the
    body's end. An answer that ends before its body does reaches the client
    whole, and the connection ends with it.
    """
    take: Callable[[int], None] | None = scope.get(PACE)
    if take is not None:
        take(max_chunk_bytes)


def counts_chunks(scope: Scope) -> bool:
    """Whether the listener counts the bytes of each chunk, as `take_pace` asks it to; in process nobody does."""
    return PACE in scope
