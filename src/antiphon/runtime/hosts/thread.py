"""An engine in the server's own process: one daemon thread a slot, one more for the model's lifecycle."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Generic, Self, TypeVar

from antiphon.ports.adapter import Adapter
from antiphon.runtime.hosts.crew import Crew, report
from antiphon.runtime.hosts.engine import Engine
from antiphon.runtime.wire.feed import Feed
from antiphon.runtime.wire.feeding import Feeding
from antiphon.runtime.wire.window import Window
from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.spec import Capability, ModelSpec, SessionFacts
from antiphon.vocabulary.tasks import StreamEvent, TaskRequest, TaskResult

T = TypeVar("T")


class ThreadHost:
    """`SlotHost` over threads. A call that never returns costs its own slot's thread and nobody else's."""

    killable = False
    death = None

    def __init__(self, adapter: Adapter, spec: ModelSpec) -> None:
        self._engine = Engine(adapter, spec)
        self._name = f"antiphon-{spec.id}"
        self._lifecycle = Crew(f"{self._name}-lifecycle")
        self._threads: dict[int, Crew] = {}

    async def inspect(self) -> Capability:
        """Read the model's files."""
        return await self._lifecycle.call(self._engine.inspect)

    async def load(self) -> None:
        """Import the engine and read the weights."""
        await self._lifecycle.call(self._engine.load)

    async def open(self) -> SessionFacts | None:
        """Open the primary session behind slot 0."""
        return await self._lifecycle.call(self._staffed, 0, self._engine.open)

    async def probe(self, spec: ModelSpec) -> SessionFacts | None:
        """Open a session as `spec` has it, say what it is and close it."""
        return await self._lifecycle.call(self._engine.probe, spec)

    async def clone(self, slot: int) -> SessionFacts | None:
        """Clone the primary behind `slot`."""
        return await self._lifecycle.call(self._staffed, slot, partial(self._engine.clone, slot))

    async def run(self, slot: int, request: TaskRequest) -> TaskResult:
        """Prepare and run one request on the slot's thread."""
        return await self._threads[slot].call(self._engine.run, slot, request)

    async def run_batch(self, slot: int, requests: Sequence[TaskRequest]) -> "_Bridge[tuple[int, TaskResult]]":
        """Prepare every request, then start the batch on the slot's thread."""
        await self._threads[slot].call(self._engine.prepare, slot, requests)
        return _Bridge(self._threads[slot], partial(self._engine.run_batch, slot, requests), requests)

    async def stream(
        self, slot: int, request: TaskRequest, audio: AsyncIterator[AudioChunk] | None
    ) -> "_Bridge[StreamEvent]":
        """Prepare the request, then start its stream on the slot's thread."""
        await self._threads[slot].call(self._engine.prepare, slot, (request,))
        feed, feeding = (None, None) if audio is None else _fed(audio)
        return _Bridge(self._threads[slot], partial(self._engine.stream, slot, request, feed), (request,), feeding)

    async def close(self) -> None:
        """Close the sessions, then the weights; the first fault is raised when all were tried."""
        await self._lifecycle.call(self._engine.close)

    async def terminate(self) -> None:
        """Let the threads end."""
        for thread in (*self._threads.values(), self._lifecycle):
            thread.stop()
        self._threads.clear()

    def kill(self) -> None:
        """Do nothing: a thread cannot be killed."""

    async def resident_bytes(self) -> int | None:
        """None: the memory is the server's."""
        return None

    def _staffed(self, slot: int, opener: Callable[[], SessionFacts | None]) -> SessionFacts | None:
        facts = opener()
        if facts is not None:
            self._threads[slot] = Crew(f"{self._name}-slot{slot}")
        return facts


def _fed(audio: AsyncIterator[AudioChunk]) -> tuple[Feed, Feeding]:
    """Both ends of live audio: the engine's and the loop's."""
    loop = asyncio.get_running_loop()
    feed = Feed(lambda: report(loop, feeding.ask))
    feeding = Feeding(audio, feed.put, feed.end)
    return feed, feeding


class _Bridge(Generic[T]):
    """Carries what the engine produces to an async reader, with a bounded lead.

    Whoever leaves sets the cancellation and wakes the slot's thread, which may wait for credit, and then waits until
    the session is reset.
    """

    def __init__(
        self,
        thread: Crew,
        produce: Callable[[Callable[[T], bool]], AntiphonError | None],
        requests: Sequence[TaskRequest],
        feeding: Feeding | None = None,
    ) -> None:
        self._feeding = feeding
        self._cancellations = [request.cancellation for request in requests]
        self._loop = asyncio.get_running_loop()
        self._window = Window()
        self._arrived: deque[T] = deque()
        self._news = asyncio.Event()
        self._fault: AntiphonError | None = None
        self._quiescent = asyncio.Event()
        # The calls into the engine are not kept here: a reader may hold on to a stream that has long ended.
        thread.post(partial(self._produce, produce))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._arrived:
            if self._fault is not None and not self._window.left:
                raise self._take_fault()  # after all that came before it
            if self._quiescent.is_set():
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        self._window.give()
        return self._arrived.popleft()

    async def aclose(self) -> None:
        """Stop the engine at its next step and wait until the session is reset."""
        for cancellation in self._cancellations:
            cancellation.cancel()
        self._window.leave()
        if self._feeding is not None:
            await self._feeding.aclose()
        await self._quiescent.wait()
        self._arrived.clear()
        self._fault = None  # a fault after the reader has left is nobody's answer

    def _take_fault(self) -> AntiphonError:
        """Hand the fault out once: kept here, it would refer to itself through the frames that it passes."""
        fault, self._fault = self._fault, None
        assert fault is not None
        return fault

    def _produce(self, produce: Callable[[Callable[[T], bool]], AntiphonError | None]) -> None:
        report(self._loop, self._end, produce(self._deliver))

    def _deliver(self, event: T) -> bool:
        if not self._window.take():
            return False
        report(self._loop, self._arrive, event)
        return True

    def _arrive(self, event: T) -> None:
        self._arrived.append(event)
        self._news.set()

    def _end(self, fault: AntiphonError | None) -> None:
        self._fault = fault
        self._quiescent.set()
        self._news.set()
