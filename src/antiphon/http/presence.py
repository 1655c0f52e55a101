"""Whether the client is still there: work for one that has left is cancelled. It knows no route and no model."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

T = TypeVar("T")

_GRACE_S = 0.02
"""How long nobody looks, in seconds: refusals and short work are over by then, and a watcher costs a task each."""


async def while_connected(request: Request, work: Awaitable[T]) -> T:
    """Await `work` for as long as the client stays; the request's body must have been received.

    A client that leaves cancels `work`, which takes its claim out of a queue or tells its engine. Raises Starlette's
    ClientDisconnect then.
    """
    task = asyncio.current_task()
    assert task is not None
    has_left = False

    async def watch() -> None:
        nonlocal has_left
        await until_disconnect(request.receive)
        has_left = True
        task.cancel()

    watching: list[asyncio.Task[None]] = []
    beginning = asyncio.get_running_loop().call_later(_GRACE_S, lambda: watching.append(asyncio.create_task(watch())))
    try:
        return await work
    except asyncio.CancelledError:
        if has_left and task.uncancel() == 0:
            raise ClientDisconnect from None
        raise
    finally:
        beginning.cancel()
        for watcher in watching:
            watcher.cancel()


async def until_disconnect(receive: Receive) -> None:
    """Return once the client has left; what it sends meanwhile is dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass
