"""Where an engine runs: the async seam between the runtime and a model's sessions.

A host owns one load of one model: its weights and the sessions behind its slots. The runtime promises one call at a
time a slot. Every awaitable returns only when the engine is quiescent on that slot: so the runtime never cancels one,
it sets the request's `cancellation` and waits (docs/architecture.md: leases in asyncio, rule 1).
Errors: what the engine raises arrives as the domain error that it is, or as `EngineError`; `WorkerDied` where the
process that it ran in has ended, for what was under way and for every call that comes later.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol, TypeVar

from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.spec import Capability, ModelSpec, SessionFacts
from antiphon.vocabulary.tasks import StreamEvent, TaskRequest, TaskResult

T_co = TypeVar("T_co", covariant=True)


class Flow(Protocol[T_co]):
    """What a started call yields; it must be closed, and the engine is quiescent when `aclose` returns."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...
    async def __anext__(self) -> T_co: ...
    async def aclose(self) -> None:
        """Stop the engine at its next step and wait until the session is reset."""
        ...


class SlotHost(Protocol):
    """One load of one model. `prepare` travels with the call that it prepares: one hop (docs/adr)."""

    async def inspect(self) -> Capability: ...
    async def load(self) -> None:
        """Read the weights; nothing is open yet."""
        ...

    async def open(self) -> SessionFacts | None:
        """Open the primary session behind slot 0; None when the engine gave none."""
        ...

    async def probe(self, spec: ModelSpec) -> SessionFacts | None:
        """Open a session over the loaded weights as `spec` has it, close it, and say what it was."""
        ...

    async def clone(self, slot: int) -> SessionFacts | None:
        """Clone the primary behind `slot`; slots are cloned in order, one after another."""
        ...

    async def run(self, slot: int, request: TaskRequest) -> TaskResult:
        """Prepare and run one request."""
        ...

    async def run_batch(self, slot: int, requests: Sequence[TaskRequest]) -> Flow[tuple[int, TaskResult]]:
        """Prepare every request, then start the batch."""
        ...

    async def stream(
        self, slot: int, request: TaskRequest, audio: AsyncIterator[AudioChunk] | None
    ) -> Flow[StreamEvent]:
        """Prepare the request, then start its stream, over live audio where there is some.

        Each chunk is asked for only when the engine waits for it. An AntiphonError out of `audio` is raised in the
        engine. Once the flow is closed no more is asked for.
        """
        ...

    async def close(self) -> None:
        """Close the sessions, then the weights, whatever of them exists."""
        ...

    async def terminate(self) -> None:
        """Let go of the threads or the process, after `close`, and wait until it is gone.

        Nothing may be called afterwards but `kill`, which a process that does not go may need.
        """
        ...

    def kill(self) -> None:
        """Stop the engine now, whatever it does: what is under way raises WorkerDied.

        A thread cannot be killed: there it does nothing. `close` and `terminate` follow all the same.
        """
        ...

    @property
    def killable(self) -> bool:
        """Whether `kill` does anything."""
        ...

    @property
    def death(self) -> str | None:
        """How the engine's process ended, in words; None while it lives, and where it has none."""
        ...

    async def resident_bytes(self) -> int | None:
        """Proportional set size of the engine's own process, in bytes; None where it has none."""
        ...


class HostFactory(Protocol):
    """Makes the host for one load of a model; it starts nothing yet."""

    def __call__(self, spec: ModelSpec, on_death: Callable[[], None]) -> SlotHost:
        """Make a host.

        `on_death` is told, once, on the event loop, that the engine's process ended before `terminate`, by itself or by
        `kill`, after every call under way was failed. A host of threads never calls it.
        """
        ...
