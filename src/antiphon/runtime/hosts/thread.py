"""An engine in the server's own process: one daemon thread a slot, one more for the model's lifecycle."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Generic, Self, TypeVar, cast

from antiphon.ports.adapter import Adapter, BatchSession, LoadedModel, OfflineSession, Session, StreamingSession
from antiphon.runtime.hosts.crew import Crew, report
from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import AntiphonError, EngineError, InsufficientMemory, InvariantError
from antiphon.vocabulary.spec import Capability, ModelSpec, SessionFacts
from antiphon.vocabulary.tasks import StreamEvent, TaskRequest, TaskResult

T = TypeVar("T")

_STREAM_CREDITS = 8
"""Events that an engine may be ahead of the reader of its stream."""


class ThreadHost:
    """`SlotHost` over threads. A call that never returns costs its own slot's thread and nobody else's."""

    killable = False

    def __init__(self, adapter: Adapter, spec: ModelSpec) -> None:
        self._adapter = adapter
        self._spec = spec
        self._lifecycle = Crew(f"antiphon-{spec.id}-lifecycle")
        self._model: LoadedModel | None = None
        self._sessions: dict[int, Session] = {}
        self._threads: dict[int, Crew] = {}

    async def inspect(self) -> Capability:
        """Read the model's files."""
        return await self._lifecycle.call(_guarded, self._adapter.inspect, self._spec)

    async def load(self) -> None:
        """Import the engine and read the weights."""
        self._model = await self._lifecycle.call(_guarded, self._adapter.load, self._spec)

    async def open(self) -> SessionFacts | None:
        """Open the primary session behind slot 0."""
        if self._model is None:
            raise InvariantError("a session is opened after its weights were loaded")
        return await self._lifecycle.call(_guarded, self._seat, 0, self._model.open_session)

    async def probe(self, spec: ModelSpec) -> SessionFacts | None:
        """Open a session as `spec` has it, say what it is and close it."""
        if self._model is None:
            raise InvariantError("a probe is opened after its weights were loaded")
        return await self._lifecycle.call(_guarded, _probe, self._model, spec)

    async def clone(self, slot: int) -> SessionFacts | None:
        """Clone the primary behind `slot`."""
        return await self._lifecycle.call(_guarded, self._seat, slot, self._sessions[0].clone)

    async def run(self, slot: int, request: TaskRequest) -> TaskResult:
        """Prepare and run one request on the slot's thread."""
        session = cast("OfflineSession", self._sessions[slot])
        return await self._threads[slot].call(_guarded, _prepare_and_run, session, request)

    async def run_batch(self, slot: int, requests: Sequence[TaskRequest]) -> "_Bridge[tuple[int, TaskResult]]":
        """Prepare every request, then start the batch on the slot's thread."""
        session = cast("BatchSession", self._sessions[slot])

        def prepare() -> None:
            for request in requests:
                session.prepare(request)

        await self._threads[slot].call(_guarded, prepare)
        cancellations = [request.cancellation.cancel for request in requests]
        return _Bridge(self._threads[slot], lambda: session.run_batch(requests), _nothing, cancellations)

    async def stream(
        self, slot: int, request: TaskRequest, audio: Iterator[AudioChunk] | None
    ) -> "_Bridge[StreamEvent]":
        """Prepare the request, then start its stream on the slot's thread."""
        session = cast("StreamingSession", self._sessions[slot])
        await self._threads[slot].call(_guarded, session.prepare, request)
        cancellations = [request.cancellation.cancel]
        return _Bridge(self._threads[slot], lambda: session.stream(request, audio), session.reset, cancellations)

    async def close(self) -> None:
        """Close the sessions, then the weights; the first fault is raised when all were tried."""
        await self._lifecycle.call(self._close)

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

    def _seat(self, slot: int, opener: Callable[[], Session | None]) -> SessionFacts | None:
        session = opener()
        if session is None:
            return None
        self._sessions[slot] = session
        self._threads[slot] = Crew(f"antiphon-{self._spec.id}-slot{slot}")
        return _facts(session)

    def _close(self) -> None:
        closers = [session.close for session in reversed(self._sessions.values())]
        if self._model is not None:
            closers.append(self._model.close)
        self._sessions.clear()
        self._model = None
        faults: list[AntiphonError] = []
        while closers:
            try:
                _guarded(closers.pop(0))
            except AntiphonError as fault:
                faults.append(fault)
        try:
            if faults:
                raise faults[0]
        finally:
            faults.clear()  # or the fault would refer to itself through this frame


class _Bridge(Generic[T]):
    """Carries what a blocking iterator yields to an async reader, with a bounded lead.

    Only the slot's thread iterates and closes the engine's iterator. Whoever leaves sets the cancellation and wakes the
    thread, which may wait for credit, and then waits until the session is reset.
    """

    def __init__(
        self,
        thread: Crew,
        start: Callable[[], Iterator[T]],
        reset: Callable[[], None],
        cancellations: Sequence[Callable[[], None]],
    ) -> None:
        self._cancellations = cancellations
        self._loop = asyncio.get_running_loop()
        self._credits = threading.Semaphore(_STREAM_CREDITS)
        self._leaving = False
        self._arrived: deque[T] = deque()
        self._news = asyncio.Event()
        self._fault: AntiphonError | None = None
        self._quiescent = asyncio.Event()
        # The calls into the engine are not kept here: a reader may hold on to a stream that has long ended.
        thread.post(partial(self._produce, start, reset))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._arrived:
            if self._fault is not None and not self._leaving:
                raise self._take_fault()  # after all that came before it
            if self._quiescent.is_set():
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        self._credits.release()
        return self._arrived.popleft()

    async def aclose(self) -> None:
        """Stop the engine at its next step and wait until the session is reset."""
        self._leaving = True
        for cancel in self._cancellations:
            cancel()
        self._credits.release()
        await self._quiescent.wait()
        self._arrived.clear()
        self._fault = None  # a fault after the reader has left is nobody's answer

    def _take_fault(self) -> AntiphonError:
        """Hand the fault out once: kept here, it would refer to itself through the frames that it passes."""
        fault, self._fault = self._fault, None
        assert fault is not None
        return fault

    def _produce(self, start: Callable[[], Iterator[T]], reset: Callable[[], None]) -> None:
        faults: list[AntiphonError] = []
        for step in (lambda: self._pump(start), reset):
            try:
                _guarded(step)
            except AntiphonError as error:
                faults.append(error)
        report(self._loop, self._end, faults[0] if faults else None)
        faults.clear()  # as in `_take_fault`

    def _pump(self, start: Callable[[], Iterator[T]]) -> None:
        events = start()
        try:
            for event in events:
                self._credits.acquire()
                if self._leaving:
                    return
                report(self._loop, self._arrive, event)
        finally:
            if isinstance(events, Generator):
                events.close()

    def _arrive(self, event: T) -> None:
        self._arrived.append(event)
        self._news.set()

    def _end(self, fault: AntiphonError | None) -> None:
        self._fault = fault
        self._quiescent.set()
        self._news.set()


def _guarded(function: Callable[..., T], *args: object) -> T:
    """Call into the engine: what it raises is a domain error afterwards, with its cause."""
    try:
        return function(*args)
    except AntiphonError:
        raise
    except MemoryError as error:
        raise InsufficientMemory("the engine ran out of memory") from error
    except BaseException as error:
        raise EngineError(f"the engine failed ({type(error).__name__})") from error


def _probe(model: LoadedModel, spec: ModelSpec) -> SessionFacts | None:
    session = model.open_session(spec)
    if session is None:
        return None
    try:
        return _facts(session)
    finally:
        session.close()


def _facts(session: Session) -> SessionFacts:
    return SessionFacts(
        family=session.family,
        task=session.task,
        mode=session.mode,
        interfaces=session.interfaces,
        sample_rate=session.sample_rate,
        channels=session.channels,
        capacity=session.capacity,
    )


def _prepare_and_run(session: OfflineSession, request: TaskRequest) -> TaskResult:
    session.prepare(request)
    return session.run(request)


def _nothing() -> None:
    """A batch leaves nothing to reset."""
