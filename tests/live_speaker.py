"""A client that speaks live: the test says each piece, and how the audio ends."""

import asyncio
from typing import Self

from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import AntiphonError


class LiveSpeaker:
    """Live audio as a runtime takes it; `asked` counts how often a piece was wanted."""

    def __init__(self, rate: int = 16_000, channels: int = 1) -> None:
        self.asked = 0
        self._rate = rate
        self._channels = channels
        self._said: asyncio.Queue[Pcm | AntiphonError | None] = asyncio.Queue()

    def say(self, frames: int) -> None:
        """Speak so many frames of silence."""
        self._said.put_nowait(Pcm.from_bytes(bytes(4 * frames * self._channels), self._rate, self._channels))

    def end(self, fault: AntiphonError | None = None) -> None:
        """Fall silent, properly or not."""
        self._said.put_nowait(fault)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Pcm:
        self.asked += 1
        piece = await self._said.get()
        if piece is None:
            raise StopAsyncIteration
        if isinstance(piece, AntiphonError):
            raise piece
        return piece
