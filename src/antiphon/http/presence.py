"""Whether the client is still there: work for one that has left is cancelled. It knows no route and no model."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

T = TypeVar("T")


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

    watching = asyncio.ensure_future(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if has_left and task.uncancel() == 0:
            raise ClientDisconnect from None
        raise
    finally:
        watching.cancel()


async def until_disconnect(receive: Receive) -> None:
    """Return once the client has left; what it sends meanwhile is dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass
