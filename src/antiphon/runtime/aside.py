"""Computation on what a client has sent, beside the event loop where there is much of it. It knows no format.

There is one thread for all: Python's lock lets no two of them compute at once, and what waits for it is bounded by the
limits on bodies.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

from antiphon.runtime.hosts.crew import Crew

T = TypeVar("T")

LOOP_BYTES = 256 * 1024
"""As much is computed on the loop itself: a body of that size is read and decoded in 2 ms."""


async def aside(size_bytes: int, function: Callable[..., T], *args: object) -> T:
    """Call the function, which does work on so many bytes, and return what it returns; raises what it raises.

    It is to be made of steps of a few milliseconds: each holds Python's lock, and the loop stands still for as long.
    """
    if size_bytes <= LOOP_BYTES:
        return function(*args)
    return await _crew().call(function, *args)


@cache
def _crew() -> Crew:
    return Crew("antiphon-aside")
