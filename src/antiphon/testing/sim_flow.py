"""A simulated stream or batch: one item a step, each in its own time, over live audio where there is some."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Generic, Self, TypeVar

from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import AntiphonError, ClientLeft

T = TypeVar("T")


class SimFlow(Generic[T]):
    """What a started call yields; `advance` lets a step of that name take its time, `leave` frees the slot at the end.

    Live audio is heard first: each chunk is an item.
    """

    def __init__(
        self, advance: Callable[[str], Awaitable[None]], leave: Callable[[], None], items: Sequence[T]
    ) -> None:
        self._advance = advance
        self._leave = leave
        self._items = list(items)
        self._audio: AsyncIterator[AudioChunk] | None = None
        self._item_of: Callable[[AudioChunk], T] | None = None
        self._hearing: asyncio.Future[AudioChunk] | None = None
        self._step: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    def over(self, audio: AsyncIterator[AudioChunk], item_of: Callable[[AudioChunk], T]) -> Self:
        """Hear this before all else."""
        self._audio = audio
        self._item_of = item_of
        return self

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        if self._ending is not None or not self._items:
            await self.aclose()
            raise StopAsyncIteration
        # The engine works on when its reader is cancelled: so the step is a task of its own.
        step = self._step or asyncio.ensure_future(self._work())
        self._step = step
        try:
            await asyncio.shield(step)
        except asyncio.CancelledError:
            step.add_done_callback(_heard)
            raise
        except AntiphonError:
            self._items.clear()
            raise
        self._step = None
        return self._items.pop(0)

    async def aclose(self) -> None:
        """Wait for the step that runs, then reset the session."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _work(self) -> None:
        if self._audio is not None:
            await self._hear(self._audio)
        await self._advance("step")

    async def _hear(self, audio: AsyncIterator[AudioChunk]) -> None:
        self._hearing = asyncio.ensure_future(_next(audio))
        try:
            chunk = await self._hearing
        except StopAsyncIteration:
            self._audio = None
        except asyncio.CancelledError:
            raise ClientLeft("the stream is closed") from None
        else:
            assert self._item_of is not None
            self._items.insert(0, self._item_of(chunk))
        finally:
            self._hearing = None

    async def _end(self) -> None:
        if self._step is not None:
            if self._hearing is not None:
                self._hearing.cancel()
            await asyncio.wait([self._step])
            _heard(self._step)
        try:
            await self._advance("reset")
        except AntiphonError:
            self._items.clear()  # a fault after the end is nobody's answer
        finally:
            self._leave()


async def _next(audio: AsyncIterator[AudioChunk]) -> AudioChunk:
    return await anext(audio)


def _heard(step: Awaitable[None]) -> None:
    """Retrieve a fault that nobody waits for any more."""
    if isinstance(step, asyncio.Task) and step.done() and not step.cancelled():
        step.exception()
