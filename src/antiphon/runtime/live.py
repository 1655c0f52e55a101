"""Live audio under a lease: as its speaker sends it, as the session takes it, and ended by whoever has to end it.

It knows no protocol that audio comes by, and no engine.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Self

from antiphon.ports.codec import ChunkConverter, Codec
from antiphon.ports.host import Flow
from antiphon.runtime.watch import RunWatch
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.spec import SessionFacts
from antiphon.vocabulary.tasks import StreamEvent

LONGEST_CHUNK_S = 1.0
"""Audio that comes in longer pieces is cut into such, so that no engine is given more at a time."""


class LiveSource:
    """The chunks of a session over the `pieces` of its client, each taken when the engine asks for it.

    The engine's time stands still while it waits for the client. `fault` is what the audio ended in, unless it ended
    properly: the stream's reader gets that, whatever the engine makes of it.
    """

    def __init__(self, pieces: AsyncIterator[Pcm], codec: Codec, facts: SessionFacts, watch: RunWatch) -> None:
        self.fault: AntiphonError | None = None
        self._pieces = pieces
        self._codec = codec
        self._facts = facts
        self._watch = watch
        self._converter: ChunkConverter | None = None
        self._ready: deque[Pcm] = deque()
        self._offset = 0
        self._is_over = False
        self._taking: asyncio.Future[Pcm] | None = None

    def fail(self, fault: AntiphonError) -> None:
        """End the audio here; what was taken before is given yet."""
        if self.fault is None and not self._is_over:
            self.fault = fault
            if self._taking is not None:
                self._taking.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AudioChunk:
        """The next chunk; raises what the client's audio ended in."""
        while not self._ready:
            if self._is_over:
                raise StopAsyncIteration
            self._cut(await self._convert(await self._take()))
        pcm = self._ready.popleft()
        chunk = AudioChunk(pcm, self._offset)
        self._offset += pcm.frames
        return chunk

    async def _take(self) -> Pcm | None:
        """The client's next piece; None at the end."""
        if self.fault is not None:
            raise self.fault
        try:
            with self._watch.resting():
                self._taking = asyncio.ensure_future(_next(self._pieces))
                return await self._taking
        except StopAsyncIteration:
            self._is_over = True
            return None
        except AntiphonError as fault:
            self.fault = fault
            raise
        except asyncio.CancelledError:
            if self.fault is not None:
                raise self.fault from None
            raise
        finally:
            self._taking = None

    async def _convert(self, piece: Pcm | None) -> Pcm | None:
        if self._converter is None:
            if piece is None:
                return None
            self._converter = self._codec.open_converter(piece, self._facts.sample_rate, self._facts.channels)
        return await (self._converter.finish() if piece is None else self._converter.feed(piece))

    def _cut(self, pcm: Pcm | None) -> None:
        if pcm is None:
            return
        longest = int(LONGEST_CHUNK_S * pcm.rate) * pcm.channels
        for start in range(0, len(pcm.samples), longest):
            self._ready.append(Pcm(pcm.samples[start : start + longest], pcm.rate, pcm.channels))


class HearingFlow:
    """What an engine yields over live audio: once that has ended in a fault, the fault and nothing else.

    `over` is told when the flow is closed.
    """

    def __init__(self, flow: Flow[StreamEvent], source: LiveSource, over: Callable[[], None]) -> None:
        self._flow = flow
        self._source = source
        self._over = over

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        """The next event. An engine may have taken a broken end for a proper one: its result is not to be seen."""
        try:
            event = await anext(self._flow)
        except (AntiphonError, StopAsyncIteration):
            self._require_sound()
            raise
        self._require_sound()
        return event

    async def aclose(self) -> None:
        """Stop the engine, and take no more audio."""
        try:
            await self._flow.aclose()
        finally:
            self._over()

    def _require_sound(self) -> None:
        if self._source.fault is not None:
            raise self._source.fault


async def _next(pieces: AsyncIterator[Pcm]) -> Pcm:
    return await anext(pieces)
