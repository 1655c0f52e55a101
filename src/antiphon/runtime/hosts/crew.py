"""Daemon threads with one inbox: how blocking calls are made without asyncio's default executor."""

import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Crew:
    """`size` threads that take blocking calls in order; a crew of one makes them one after another.

    The threads are daemons, so that an engine that never returns cannot keep the process from ending. Every call runs
    to its end: cancelling the coroutine that awaits it only stops the waiting.
    """

    def __init__(self, name: str, size: int = 1) -> None:
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._size = size
        for number in range(size):
            threading.Thread(target=self._work, name=f"{name}/{number}", daemon=True).start()

    def post(self, call: Callable[[], None]) -> None:
        """Have `call` made; it must not raise."""
        self._inbox.put(call)

    async def call(self, function: Callable[..., T], *args: object) -> T:
        """Make a blocking call, in the caller's context, and await what it returns or raises."""
        import asyncio  # a worker process has crews and no event loop, and starts sooner without one

        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._inbox.put(partial(copy_context().run, _perform, loop, future, function, args))
        try:
            return await future
        finally:
            del future  # what it raised must not refer to itself through this frame, or it keeps the arguments alive

    def stop(self) -> None:
        """Let the threads end after what is in the inbox."""
        for _ in range(self._size):
            self._inbox.put(None)

    def _work(self) -> None:
        while (call := self._inbox.get()) is not None:
            call()
            del call  # or the idle thread would keep the last call's arguments alive


def report(loop: "asyncio.AbstractEventLoop", callback: Callable[..., object], *args: object) -> None:
    """Call back on the loop from any thread; a loop that has closed meanwhile has nobody left to tell."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _perform(
    loop: "asyncio.AbstractEventLoop", future: "asyncio.Future[T]", function: Callable[..., T], args: tuple[object, ...]
) -> None:
    try:
        result = function(*args)
    except BaseException as error:  # noqa: BLE001 (the awaiting coroutine owns it)
        report(loop, _set_exception, future, error)
    else:
        report(loop, _set_result, future, result)
    finally:
        del future  # as in `Crew.call`


def _set_result(future: "asyncio.Future[Any]", result: object) -> None:
    if not future.done():
        future.set_result(result)


def _set_exception(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if future.done():
        return
    if isinstance(error, StopIteration):  # a future refuses it, and it means nothing here
        error = RuntimeError("a blocking call raised StopIteration")
    future.set_exception(error)
