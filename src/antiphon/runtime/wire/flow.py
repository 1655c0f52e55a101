"""A stream of answers from a process, with credit and a proper end; it does not know what they mean."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Generic, Self, TypeVar

from antiphon.runtime.wire.calls import Following, worker_died
from antiphon.runtime.wire.coding import Message
from antiphon.runtime.wire.faults import Failed, error_of, failed
from antiphon.runtime.wire.feeding import Feeding
from antiphon.runtime.wire.parcels import Parcel
from antiphon.runtime.wire.signals import Began, Ended, Grant, Heard, Hushed, Leave, Want
from antiphon.runtime.wire.window import WINDOW
from antiphon.runtime.wire.worker import WorkerProcess
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import AntiphonError, EngineError
from antiphon.vocabulary.tasks import Cancellation

T = TypeVar("T")
Told = TypeVar("Told")


class RemoteFlow(Generic[Told, T]):
    """`Flow` over a call whose answers are `Began`, events and `Ended`; a `Failed` is an end as well.

    `event_of` reads one event with the sounds that came with it. Live `audio` goes the other way as it is wanted.
    """

    def __init__(
        self,
        worker: WorkerProcess[Told],
        event_of: Callable[[Told, list[Pcm]], T],
        cancellations: Sequence[Cancellation],
        audio: AsyncIterator[AudioChunk] | None = None,
    ) -> None:
        self._worker = worker
        self._feeding = None if audio is None else Feeding(audio, self._send_chunk, self._send_end)
        self._event_of = event_of
        self._cancellations = cancellations
        self._prepared = False
        self._arrived: deque[tuple[Told, Parcel]] = deque()
        self._news = asyncio.Event()
        self._quiescent = asyncio.Event()
        self._fault: Exception | None = None
        self._left = False
        self._taken = 0
        self._call = worker.open(self)
        self._following: Following | None = None

    async def begin(self, order: Message, sounds: Sequence[Pcm]) -> Self:
        """Give the order, and wait until it is prepared; raises what its preparation does."""
        self._worker.send(self._call, order, sounds)
        self._following = self._worker.following(self._call, self._cancellations)
        while not self._prepared:
            if self._fault is not None:
                raise self._take_fault()
            if self._quiescent.is_set():
                raise EngineError("the worker ended a stream before its beginning")
            self._news.clear()
            await self._news.wait()
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._arrived:
            if self._fault is not None and not self._left:
                raise self._take_fault()  # after all that came before it
            if self._quiescent.is_set():
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        self._taken += 1
        if self._taken == WINDOW // 2:
            self._worker.send(self._call, Grant(self._taken))
            self._taken = 0
        answer, parcel = self._arrived.popleft()
        return self._event_of(answer, parcel.take())

    async def aclose(self) -> None:
        """Stop the engine at its next step and wait until the session is reset."""
        if not self._left:
            self._left = True
            for cancellation in self._cancellations:
                cancellation.cancel()
            self._worker.send(self._call, Leave())
        if self._feeding is not None:
            await self._feeding.aclose()
        await self._quiescent.wait()
        self._drop()
        self._fault = None  # a fault after the reader has left is nobody's answer

    def hear(self, answer: Told, parcel: Parcel) -> None:
        """Take the next answer."""
        if isinstance(answer, Failed):
            self._end(error_of(answer))
        elif isinstance(answer, Ended):
            self._end(None)
        elif isinstance(answer, Began):
            self._prepared = True
            self._news.set()
        elif isinstance(answer, Want):
            if self._feeding is not None:
                self._feeding.ask()
        else:
            self._arrived.append((answer, parcel))
            self._news.set()

    def lose(self, death: str) -> None:
        """Fail, as every call does whose process has ended."""
        self._end(worker_died(death))

    def _send_chunk(self, chunk: AudioChunk) -> None:
        self._worker.send(self._call, Heard(chunk.offset), [chunk.pcm])

    def _send_end(self, fault: AntiphonError | None) -> None:
        self._worker.send(self._call, Hushed(None if fault is None else failed(fault)))

    def _end(self, fault: Exception | None) -> None:
        self._worker.close(self._call)
        if self._following is not None:
            self._following.close()
        self._quiescent.set()
        self._news.set()
        self._fault = fault

    def _take_fault(self) -> Exception:
        """Hand the fault out once: kept here, it would refer to itself through the frames that it passes."""
        fault, self._fault = self._fault, None
        assert fault is not None
        return fault

    def _drop(self) -> None:
        for _, parcel in self._arrived:
            parcel.close()
        self._arrived.clear()
