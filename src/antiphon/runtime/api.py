"""What the service asks of a server runtime, whichever of the two runs."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias, TypeVar

from antiphon.admission.gate import GateView
from antiphon.vocabulary.audio import Handover, Pcm
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.spec import Capability, Registration, SessionFacts
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Interface, StreamEvent, TaskRequest, TaskResult

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Timing:
    """Where a request's time went, in seconds: waiting for its slot, for the model, and in the engine."""

    queue_s: float = 0.0
    load_s: float = 0.0
    run_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BoundModel:
    """A model's configuration as its lease found it: it cannot change before the lease ends."""

    registration: Registration
    capability: Capability


Bind: TypeAlias = Callable[[BoundModel, TaskRequest], Awaitable[TaskRequest]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A request as the client wrote it, and what makes it one for the model, after the grant.

    `bind` raises InvalidRequest where that cannot be.
    """

    request: TaskRequest
    bind: Bind


@dataclass(frozen=True, slots=True)
class Inference:
    """A piece of work for one model.

    `request` and `bind` are those of a `Draft`. Its audio may have any rate: the runtime converts it to the session's.
    Handed over as `audio` instead, it lives no longer than it takes to have it converted, however long the engine works
    on it after that. `busy_timeout_ms` None takes the configured bound, 0 asks for none; `run_timeout_ms` likewise, for
    the engine's time without progress. `live` is audio that is still being spoken, for a stream: pieces of one rate and
    number of channels, taken as the engine wants them. What it raises ends the stream; close it after that. If it
    `continues` something that was accepted before the server began to stop, it is still admitted during the drain.
    """

    model_id: str
    request: TaskRequest
    bind: Bind
    interface: Interface = Interface.OFFLINE
    busy_timeout_ms: int | None = None
    run_timeout_ms: int | None = None
    live: AsyncIterator[Pcm] | None = None
    audio: Handover | None = None
    continues: bool = False


@dataclass(frozen=True, slots=True)
class BatchInference:
    """Several requests for one native batch of one model, in one slot; as `Inference` otherwise."""

    model_id: str
    drafts: tuple[Draft, ...]
    busy_timeout_ms: int | None = None
    run_timeout_ms: int | None = None


class Strategy(StrEnum):
    """How a working model is replaced: in its own place, or by one that was built beside it."""

    REPLACE = "replace"
    SIDE_BY_SIDE = "side_by_side"


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """What the server's process held before and after a load or an unload, in bytes; None where nothing tells.

    `alone` says that nothing else loaded, ran or left meanwhile: only then is the difference the model's.
    """

    before_bytes: int | None
    after_bytes: int | None
    alone: bool

    @property
    def grown_bytes(self) -> int | None:
        """What a load took."""
        return self._difference(1)

    @property
    def returned_bytes(self) -> int | None:
        """What an unload gave back."""
        return self._difference(-1)

    def _difference(self, sign: int) -> int | None:
        if self.before_bytes is None or self.after_bytes is None or not self.alone:
            return None
        return max(0, sign * (self.after_bytes - self.before_bytes))


@dataclass(frozen=True, slots=True)
class Unloaded:
    """What a bulk unload did, in the order asked for; every known id is in one list, every other in the second."""

    unloaded: tuple[str, ...]
    not_found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelView:
    """A model as status shows it. The last four are None where the runtime does not report them.

    `loaded` says whether a pool is published; one that is to be replaced still is, until it is retired.
    `max_parallel_slots` is None until a pool is published, and again once it is retired (rule.status_fields).
    """

    registration: Registration
    capability: Capability
    state: ModelState
    last_error: str | None
    loaded: bool
    slots: int | None = None
    active_slots: int | None = None
    queued_requests: int | None = None
    max_parallel_slots: int | None = None


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A model with its leases and its queue, at one moment.

    `estimates_s` says how long each waiter that is listed will wait yet; None until a request has run. `resident_bytes`
    is what the model's process was last seen to take, or what the server's grew by when the model was loaded into it;
    None for one that is not loaded, and where it could not be told.
    """

    view: ModelView
    gate: GateView
    estimates_s: tuple[float | None, ...]
    resident_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Foresight:
    """A dry run. `waits_for` names leases and waiters, with "model/" before them where several models are meant.

    `refusal` is what the call would be refused with, as far as that is known without loading anything; what it would
    have unloaded and evicted by then is told with it.
    Units: bytes; `estimate_s` is how long the call would wait and then load, None where one of them was never measured.
    """

    waits_for: tuple[str, ...] = ()
    evicts: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    unloads: tuple[str, ...] = ()
    free_bytes: int = 0
    needed_bytes: int = 0
    estimate_s: float | None = None
    refusal: AntiphonError | None = None


class OpenStream(Protocol[T_co]):
    """A stream or a batch whose engine is prepared; it holds its lease until `aclose` has returned."""

    @property
    def facts(self) -> SessionFacts: ...
    @property
    def timing(self) -> Timing:
        """What is known so far; the run's time is complete once the stream has ended."""
        ...

    def __aiter__(self) -> AsyncIterator[T_co]: ...
    async def __anext__(self) -> T_co: ...
    async def aclose(self) -> None:
        """Stop the engine, wait until it is quiescent, and release the lease; harmless when done twice."""
        ...


class Runtime(Protocol):
    """The lifecycle of all models. Every method is called on the event loop.

    Errors: ModelNotFound for an unknown id, ServerBusy, LoadFailed, EngineError, WorkerDied, RunTimeout and
    InvalidRequest as they apply.
    """

    parallel: bool

    def views(self) -> tuple[ModelView, ...]:
        """All models, at one moment, in the order of their registration."""
        ...

    def view(self, model_id: str) -> ModelView: ...

    def wait_limit_s(self, model_id: str, busy_timeout_ms: int | None) -> float:
        """How long a request to this model may wait for what it shares with others, 0 without bound."""
        ...

    def status(self) -> tuple[ModelStatus, ...]:
        """All models with their leases and queues, at one moment."""
        ...

    async def start(self) -> None:
        """Begin to load the models that are not lazy; call it once the server listens."""
        ...

    def awaited(self) -> tuple[str, ...]:
        """The models that `start` has not brought into memory yet; raises ShuttingDown once no work is taken."""
        ...

    async def run(self, inference: Inference, finish: Callable[[TaskResult, Timing], Awaitable[T]]) -> T:
        """Run offline. `finish` serialises the result while the slot is still held (phase.executing)."""
        ...

    async def open_stream(self, inference: Inference) -> OpenStream[StreamEvent]:
        """Acquire, load and prepare; what fails until then fails before any answer is begun."""
        ...

    async def open_batch(self, batch: BatchInference) -> OpenStream[tuple[int, TaskResult]]:
        """The same for a batch, whose results come as (index, result)."""
        ...

    async def load(self, model_id: str, busy_timeout_ms: int | None = None) -> ModelView:
        """Bring a registered model into memory as it is registered."""
        ...

    async def register(
        self,
        registration: Registration,
        busy_timeout_ms: int | None = None,
        strategy: Strategy = Strategy.REPLACE,
    ) -> ModelView:
        """Add a model, or replace a registration in one transaction, and have it in memory."""
        ...

    async def foresee_load(
        self,
        model_id: str,
        registration: Registration | None = None,
        strategy: Strategy = Strategy.REPLACE,
        busy_timeout_ms: int | None = None,
    ) -> Foresight:
        """Report what `load`, or `register` with this registration, would do, without doing it."""
        ...

    def foresee_unload(self, model_id: str, busy_timeout_ms: int | None = None) -> Foresight:
        """Report what `unload` would do, without doing it."""
        ...

    def foresee_unload_many(self, model_ids: Sequence[str] | None = None) -> tuple[Foresight, Unloaded]:
        """Report what `unload_many` would do, without doing it."""
        ...

    async def unload(
        self, model_id: str, busy_timeout_ms: int | None = None, *, force: bool = False
    ) -> tuple[ModelView, MemoryChange | None]:
        """Free a model after all earlier work on it; harmless when it is not loaded, and then no memory is told of.

        With `force` the earlier work fails with ServerBusy, and an engine in a process is killed.
        """
        ...

    async def unload_many(self, model_ids: Sequence[str] | None = None, *, force: bool = False) -> Unloaded:
        """Free several models, all when None, each after the earlier work on it, or by force."""
        ...

    def refuse(self) -> None:
        """Take no new work from now on; what was admitted or is queued goes on."""
        ...

    async def close(self) -> None:
        """Refuse new work from now on, wait for what was admitted or is queued, and free each model after its own."""
        ...

    def cut(self) -> None:
        """Let `close` wait no longer than it must: refuse all who wait, and tell the engines to end what runs."""
        ...
