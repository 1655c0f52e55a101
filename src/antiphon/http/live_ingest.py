"""Live audio as a client sends it, within its limits; it knows neither the protocol that it comes by nor a model."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from antiphon.audio.raw import RawFormat, RawReader
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import RequestTimeout, TooLarge
from antiphon.vocabulary.spec import LiveLimits


async def live_pieces(
    hear: Callable[[], Awaitable[bytes | None]], raw: RawFormat, limits_of: Callable[[], LiveLimits]
) -> AsyncGenerator[Pcm]:
    """Yield the audio that `hear` gives, piece by piece, until that is None; close the generator when it is left early.

    The limits are asked for when the first piece is: by then their model's configuration cannot change any more. The
    client's time runs while a piece is waited for, so that a slow engine is not its fault. A frame that is cut off at
    the end is dropped. Raises RequestTimeout for a client that says nothing for too long or too much in all, TooLarge
    for more audio than there may be, and what `hear` raises. What a chunk is only `hear` knows.
    """
    limits = limits_of()
    reader, received, ending = RawReader(raw), 0, _deadline(limits.total_timeout_s)
    while (data := await _heard(hear, limits, ending)) is not None:
        received += len(data)
        if 0 < limits.max_body_bytes < received:
            raise TooLarge(f"the live audio is larger than the limit of {limits.max_body_bytes} bytes (live_ingest)")
        pcm = reader.feed(data)
        if pcm.frames:
            yield pcm


def whole_chunks(
    hear: Callable[[], Awaitable[bytes | None]], limits_of: Callable[[], LiveLimits]
) -> Callable[[], Awaitable[bytes | None]]:
    """Hear chunks that each come as one message, and raise TooLarge for one over the limit of a chunk.

    The limit is asked for at each chunk, so under the lease: nobody hears before it is granted.
    """

    async def hear_chunk() -> bytes | None:
        data = await hear()
        limit = limits_of().max_chunk_bytes
        if data is not None and len(data) > limit:
            raise TooLarge(f"a message is larger than the limit of {limit} bytes (live_ingest.max_chunk_bytes)")
        return data

    return hear_chunk


async def _heard(hear: Callable[[], Awaitable[bytes | None]], limits: LiveLimits, ending: float | None) -> bytes | None:
    try:
        async with asyncio.timeout_at(ending):
            return await _heard_in_time(hear, limits)
    except TimeoutError:
        told = f"the live audio took longer than {limits.total_timeout_s:g} s (live_ingest.total_timeout_ms)"
        raise RequestTimeout(told) from None


async def _heard_in_time(hear: Callable[[], Awaitable[bytes | None]], limits: LiveLimits) -> bytes | None:
    """The next bytes; pieces without any are no sign of life."""
    deadline = asyncio.timeout_at(_deadline(limits.idle_timeout_s))
    try:
        async with deadline:
            while (data := await hear()) == b"":
                pass
            return data
    except TimeoutError:
        if not deadline.expired():
            raise
        told = f"no audio came for {limits.idle_timeout_s:g} s (live_ingest.idle_timeout_ms)"
        raise RequestTimeout(told) from None


def _deadline(limit_s: float) -> float | None:
    return asyncio.get_running_loop().time() + limit_s if limit_s else None
