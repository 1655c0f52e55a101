"""One live stream of a session: audio is put in as it comes, and what the model finds is told. It holds a slot."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial

from antiphon.http.live_ingest import live_pieces, whole_chunks
from antiphon.http.realtime.items import Conversation, Event
from antiphon.http.realtime.settings import Settings
from antiphon.http.realtime.turns import Turns
from antiphon.service.transcription import TranscriptionService
from antiphon.vocabulary.errors import AntiphonError

_ROOM_BYTES = 512 * 1024
"""How much audio may lie before the model; beyond it nothing more is taken from the client."""

Tell = Callable[[Event], Awaitable[None]]


class Inbox:
    """Audio on its way to a stream: pieces in their order, then its end, or its fault."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_over = False
        self._fault: AntiphonError | None = None
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()

    async def put(self, data: bytes) -> None:
        """Add a piece; waits for room. After the end it is dropped."""
        while self._waiting_bytes >= _ROOM_BYTES and not self._is_over:
            self._taken.clear()
            await self._taken.wait()
        if data and not self._is_over:
            self._pieces.append(data)
            self._waiting_bytes += len(data)
            self._arrived.set()

    def end(self, fault: AntiphonError | None = None) -> None:
        """Nothing more comes; a fault says that there should have."""
        if not self._is_over:
            self._is_over, self._fault = True, fault
            self._arrived.set()
            self._taken.set()

    async def take(self) -> bytes | None:
        """The next piece, None at the end; raises the fault."""
        while not self._pieces:
            if self._fault is not None:
                raise self._fault
            if self._is_over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        data = self._pieces.popleft()
        self._waiting_bytes -= len(data)
        self._taken.set()
        return data


class Hearing:
    """A stream that is under way. `run` is its life; the other calls come from beside it."""

    def __init__(self, settings: Settings, conversation: Conversation, start_ms: int, tell: Tell) -> None:
        self._order = settings.order()
        self._wire = settings.wire
        self._conversation = conversation
        self._start_ms = start_ms
        self._tell = tell
        self._inbox = Inbox()
        self._heard_bytes = 0
        self.items = 0
        """How many items it has made."""

    @property
    def end_ms(self) -> int:
        """How much audio of the session has come by now, in milliseconds."""
        return self._start_ms + round(1000 * self._wire.seconds(self._heard_bytes))

    async def put(self, data: bytes) -> None:
        """Hear more; waits while the model has enough before it."""
        self._heard_bytes += len(data)
        await self._inbox.put(data)

    def end(self, fault: AntiphonError | None = None) -> None:
        """There is no more; what has come is told of yet, or that it came to a bad end."""
        self._inbox.end(fault)

    async def run(self, service: TranscriptionService) -> None:
        """Tell what is found until the audio's end; raises what it came to instead, with the slot free in any case."""
        turns: Turns | None = None
        order = service.resolved(self._order)
        limits = partial(service.live_limits, order.model)
        pieces = live_pieces(whole_chunks(self._inbox.take, limits), self._wire.raw, limits)
        try:
            async with aclosing(pieces), aclosing(await service.live(order, pieces)) as stream:
                turns = Turns(self._conversation, stream.sample_rate, self._start_ms)
                async for found in stream:
                    await self._tell_all(turns.tell(found))
        except AntiphonError as error:
            if turns is not None:
                await self._tell_all(turns.fail(error))
            raise
        finally:
            self._inbox.end()
        await self._tell_all(turns.finish(self.end_ms))
        self.items = turns.count

    async def _tell_all(self, events: list[Event]) -> None:
        for told in events:
            await self._tell(told)
