"""Whether the client is still there: work for one that has left is cancelled. It knows no route and no model."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope

T = TypeVar("T")

PRESENCE = "antiphon.presence"
"""Where a request's scope has its `Presence`, if its listener keeps one."""


class Presence:
    """One request's client, as its listener knows it: `leave` is called the moment that it is seen to have left."""

    def __init__(self) -> None:
        self._left = False
        self._told: Callable[[], object] = _nobody_listens

    def has_left(self) -> bool:
        """Whether nobody is there to be answered any more."""
        return self._left

    def leave(self) -> None:
        """The client has left; may be called again."""
        if not self._left:
            self._left = True
            self._told()

    @contextmanager
    def telling(self, told: Callable[[], object]) -> Iterator[None]:
        """Call `told` when the client leaves within the block."""
        self._told = told
        try:
            yield
        finally:
            self._told = _nobody_listens


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Await `work` for as long as the client stays; the request's body must have been received.

    A client that leaves cancels `work`, which takes its claim out of a queue or tells its engine; for one that has left
    already it does not begin. Raises Starlette's ClientDisconnect then.
    """
    with _presence_of(request) as presence:
        return await _while_present(presence, work)


async def while_present(scope: Scope, work: Coroutine[Any, Any, T]) -> T:
    """Do as `while_connected` for a client that still sends, which only its listener can tell of.

    Where that does not, nothing is known before the client is listened to.
    """
    return await _while_present(scope.get(PRESENCE) or Presence(), work)


async def until_left(scope: Scope) -> None:
    """Return once the listener tells that the client has left; never where it tells nothing."""
    left = asyncio.Event()
    presence: Presence = scope.get(PRESENCE) or Presence()
    with presence.telling(left.set):
        if not presence.has_left():
            await left.wait()


async def _while_present(presence: Presence, work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.current_task()
    assert task is not None
    if presence.has_left():
        work.close()
        raise ClientDisconnect
    try:
        with presence.telling(task.cancel):
            return await work
    except asyncio.CancelledError:
        if presence.has_left() and task.uncancel() == 0:
            raise ClientDisconnect from None
        raise


async def until_disconnect(receive: Receive) -> None:
    """Return once the client has left; what it sends meanwhile is dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass


@contextmanager
def _presence_of(request: Request) -> Iterator[Presence]:
    """The presence that the listener keeps, or one that is kept here, at the price of a task."""
    kept = request.scope.get(PRESENCE)
    if kept is not None:
        yield kept
        return
    presence = Presence()

    async def watch() -> None:
        await until_disconnect(request.receive)
        presence.leave()

    watching = asyncio.create_task(watch())
    try:
        yield presence
    finally:
        watching.cancel()


def _nobody_listens() -> None:
    """What is told of a departure outside of `telling`."""
