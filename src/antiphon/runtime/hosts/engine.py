"""The blocking side of a host: one load of one model, and the sessions behind its slots; it knows no thread, no loop.

What the engine raises leaves here as a domain error, with its cause. Whoever calls keeps the rules of
`ports/adapter.py`: one call at a time a session, and each slot's calls from one thread.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar, cast

from antiphon.ports.adapter import Adapter, BatchSession, LoadedModel, OfflineSession, Session, StreamingSession
from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import AntiphonError, EngineError, InsufficientMemory, InvariantError
from antiphon.vocabulary.spec import Capability, ModelSpec, SessionFacts
from antiphon.vocabulary.tasks import StreamEvent, TaskRequest, TaskResult

T = TypeVar("T")


class Engine:
    """An adapter's model, whatever of it exists."""

    def __init__(self, adapter: Adapter, spec: ModelSpec) -> None:
        self._adapter = adapter
        self._spec = spec
        self._model: LoadedModel | None = None
        self._sessions: dict[int, Session] = {}
        self._at_work: set[int] = set()  # slots; each is added and dropped in one step of the interpreter

    def inspect(self) -> Capability:
        """Read the model's files."""
        return _guarded(self._adapter.inspect, self._spec)

    def load(self) -> None:
        """Import the engine and read the weights."""
        self._model = _guarded(self._adapter.load, self._spec)

    def open(self) -> SessionFacts | None:
        """Open the primary session behind slot 0."""
        return _guarded(self._seat, 0, self._weights.open_session)

    def probe(self, spec: ModelSpec) -> SessionFacts | None:
        """Open a session as `spec` has it, say what it is and close it."""
        return _guarded(_probe, self._weights, spec)

    def clone(self, slot: int) -> SessionFacts | None:
        """Clone the primary behind `slot`."""
        return _guarded(self._seat, slot, self._sessions[0].clone)

    def run(self, slot: int, request: TaskRequest) -> TaskResult:
        """Prepare and run one request."""
        with self._working(slot, [request]) as (told,):
            return _guarded(_prepare_and_run, cast("OfflineSession", self._sessions[slot]), told)

    def prepare(self, slot: int, requests: Sequence[TaskRequest]) -> None:
        """Prepare every request."""
        session = self._sessions[slot]
        for request in requests:
            _guarded(session.prepare, request)

    def run_batch(
        self, slot: int, requests: Sequence[TaskRequest], deliver: Callable[[tuple[int, TaskResult]], bool]
    ) -> AntiphonError | None:
        """Run a batch that was prepared, as `_produce` does."""
        session = cast("BatchSession", self._sessions[slot])
        with self._working(slot, requests) as told:
            return _produce(lambda: session.run_batch(told), _nothing, deliver)

    def stream(
        self,
        slot: int,
        request: TaskRequest,
        audio: Iterator[AudioChunk] | None,
        deliver: Callable[[StreamEvent], bool],
    ) -> AntiphonError | None:
        """Run a stream that was prepared, as `_produce` does, and reset the session."""
        session = cast("StreamingSession", self._sessions[slot])
        with self._working(slot, [request]) as (told,):
            return _produce(lambda: session.stream(told, audio), session.reset, deliver)

    def close(self) -> None:
        """Close the sessions, then the weights; the first fault is raised when all were tried."""
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

    @contextmanager
    def _working(self, slot: int, requests: Sequence[TaskRequest]) -> Iterator[list[TaskRequest]]:
        """Count a call until it has ended; the requests come back so that they can tell how many there are."""
        self._at_work.add(slot)
        try:
            yield [replace(request, at_work=self._at_work.__len__) for request in requests]
        finally:
            self._at_work.discard(slot)

    @property
    def _weights(self) -> LoadedModel:
        if self._model is None:
            raise InvariantError("a session is opened after its weights were loaded")
        return self._model

    def _seat(self, slot: int, opener: Callable[[], Session | None]) -> SessionFacts | None:
        session = opener()
        if session is None:
            return None
        self._sessions[slot] = session
        return _facts(session)


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


def _produce(
    start: Callable[[], Iterator[T]], reset: Callable[[], None], deliver: Callable[[T], bool]
) -> AntiphonError | None:
    """Iterate until the end, or until `deliver` says that nobody takes more, then reset; the first fault comes back.

    `deliver` may block. All of it happens in the calling thread, which alone closes the engine's iterator.
    """
    faults: list[AntiphonError] = []
    for step in (lambda: _pump(start, deliver), reset):
        try:
            _guarded(step)
        except AntiphonError as error:
            faults.append(error)
    try:
        return faults[0] if faults else None
    finally:
        faults.clear()  # as in `Engine.close`


def _pump(start: Callable[[], Iterator[T]], deliver: Callable[[T], bool]) -> None:
    events = start()
    try:
        for event in events:
            if not deliver(event):
                return
    finally:
        if isinstance(events, Generator):
            events.close()


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
