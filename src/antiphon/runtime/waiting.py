"""Waiting for a worker that requests share, for no longer than a request may wait."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from antiphon.vocabulary.errors import ServerBusy

T = TypeVar("T")


async def no_longer_than(wait_s: float, turn: Awaitable[T], worker: str) -> T:
    """Await the turn of a request for `wait_s` seconds, 0 without bound; raises ServerBusy, which names the worker."""
    try:
        async with asyncio.timeout(wait_s or None):
            return await turn
    except TimeoutError as error:
        raise ServerBusy(f"{worker} was free within the time that the request may wait (busy_timeout_ms)") from error
