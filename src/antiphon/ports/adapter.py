"""What an engine must offer: blocking calls, made only from the thread or the worker process that owns them.

A family is one class that fulfils `Adapter`, found by its entry point in the group `antiphon.adapters`. The module's
top imports nothing but the standard library, `antiphon.ports` and `antiphon.vocabulary`; the engine's library is
imported in `load`. Errors: raise `InvalidRequest` for a request that this model cannot serve; any other exception is an
engine fault.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Interface, Mode, StreamEvent, Task, TaskRequest, TaskResult


@runtime_checkable
class Session(Protocol):
    """The engine's private, mutable state behind one slot; called from one thread at a time."""

    @property
    def family(self) -> str: ...
    @property
    def task(self) -> Task: ...
    @property
    def mode(self) -> Mode: ...
    @property
    def interfaces(self) -> frozenset[Interface]:
        """The ways in which this session can be called; each promises the Protocol of its name below."""
        ...

    @property
    def sample_rate(self) -> int:
        """The rate of the audio that it takes or gives, in Hz; audio comes resampled to it."""
        ...

    @property
    def channels(self) -> int: ...
    @property
    def capacity(self) -> int:
        """How many slots a (re)load could serve, this session included; 1 says that `clone` is not to be called."""
        ...

    def clone(self) -> "Session | None":
        """Open an independent session over the same weights."""
        ...

    def prepare(self, request: TaskRequest) -> None:
        """Check the request and do what can fail cheaply: an answer's headers go out after this returns."""
        ...

    def close(self) -> None:
        """Free what this session owns; the weights outlive it."""
        ...


@runtime_checkable
class OfflineSession(Session, Protocol):
    """A session that answers a whole request at once."""

    def run(self, request: TaskRequest) -> TaskResult: ...


@runtime_checkable
class BatchSession(Session, Protocol):
    """A session that takes several requests in one native call and yields (index, result) as each is done."""

    def run_batch(self, requests: Sequence[TaskRequest]) -> Iterator[tuple[int, TaskResult]]: ...


@runtime_checkable
class StreamingSession(Session, Protocol):
    """A session that answers piece by piece; `reset` makes it fit for the next request after any end of a stream."""

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        """Answer piece by piece.

        A `live` request has its audio in `audio`: chunks of any length at the session's rate and channels, neighbours
        of each other. Taking the next one waits until somebody has spoken it; the iterator's end is the end of the
        audio, and an `AntiphonError` out of it, which is to be passed on, means that there is no proper end.
        """
        ...

    def reset(self) -> None: ...


@runtime_checkable
class LoadedModel(Protocol):
    """Immutable weights in memory, shared by every session that they opened."""

    def open_session(self, spec: ModelSpec | None = None) -> Session | None:
        """Open a session: the primary, or with a `spec` a private probe; None is a load failure.

        `spec` differs from the one that was loaded in session options, task, mode and slots alone.
        """
        ...

    def close(self) -> None:
        """Free the weights; every session was closed before."""
        ...


@runtime_checkable
class Adapter(Protocol):
    """One kind of model."""

    @property
    def family(self) -> str: ...

    def inspect(self, spec: ModelSpec) -> Capability:
        """Say what the model can do, from its files alone; raises ConfigError when they are not such a model."""
        ...

    def load(self, spec: ModelSpec) -> LoadedModel:
        """Import the engine and read the weights."""
        ...


@runtime_checkable
class ConvertingAdapter(Adapter, Protocol):
    """An adapter that does not load what its packages bring, but what it makes of that."""

    def convert(self, folder: Path) -> None:
        """Write the files that `load` reads into the folder, beside those that a package brought, which stay.

        It is called once, at install, in a process of its own. What it reads may be anything: run nothing of it. Raises
        ConfigError for what is no such model.
        """
        ...
