"""What both server runtimes do with a model: lease, load, run, stream and unload. They differ above this module."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from antiphon.admission.gate import Lease
from antiphon.admission.policy import effective_timeout_s
from antiphon.ports.clock import Clock
from antiphon.ports.codec import Codec
from antiphon.ports.host import HostFactory
from antiphon.ports.observer import Observer
from antiphon.residency.lifecycle import Step
from antiphon.residency.registry import Entry, Registry
from antiphon.runtime.api import BoundModel, Inference, ModelView, Timing
from antiphon.runtime.leases import LeaseDesk
from antiphon.runtime.owned import AbandonedError, OwnedTasks, log_unheard
from antiphon.runtime.pool import Pool, build_pool, load_failure
from antiphon.runtime.streams import LeasedStream, StreamEnding
from antiphon.vocabulary.errors import AntiphonError, InvalidRequest, InvariantError, LoadFailed, ShuttingDown
from antiphon.vocabulary.spec import Capability, Registration
from antiphon.vocabulary.states import Operation
from antiphon.vocabulary.tasks import TaskRequest, TaskResult

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RuntimePorts:
    """What a runtime acts through. Units: `busy_timeout_ms` is the server's default wait, 0 without bound."""

    clock: Clock
    codec: Codec
    observer: Observer
    make_host: HostFactory
    busy_timeout_ms: int


class Resident:
    """One registered model at run time: its entry, its pool while there is one, and the one attempt to load it."""

    __slots__ = ("attempt", "entry", "max_slots", "pool")

    def __init__(self, entry: Entry, max_slots: int) -> None:
        self.entry = entry
        self.max_slots = max_slots
        self.pool: Pool | None = None
        self.attempt: asyncio.Task[Pool] | None = None


class ModelRuntime:
    """The shared part of `ServerState` and `ParallelServerState`."""

    parallel: bool

    def __init__(self, ports: RuntimePorts) -> None:
        self._ports = ports
        self._registry = Registry()
        self._residents: dict[str, Resident] = {}
        self._desk = LeaseDesk(ports.clock)
        self._tasks = OwnedTasks()
        self._closing = False

    def register(self, registration: Registration, capability: Capability, max_slots: int = 1) -> None:
        """Add a model before the server listens. `max_slots` is the cap that the audit list sets."""
        entry = Entry(registration, capability, self._ports.clock.now())
        self._desk.open_gate(entry.id, registration.spec.slots)
        self._residents[entry.id] = Resident(entry, max_slots)
        self._registry.insert(entry)

    def views(self) -> tuple[ModelView, ...]:
        """All models, at one moment."""
        return tuple(self._view(entry) for entry in self._registry)

    def view(self, model_id: str) -> ModelView:
        """One model, at one moment."""
        return self._view(self._registry.find(model_id))

    async def start(self) -> None:
        """Begin to load the models that are not lazy, one after another."""
        eager = [entry.id for entry in self._registry if not entry.registration.lazy]
        self._tasks.start(self._load_each(eager)).add_done_callback(log_unheard)

    async def run(self, inference: Inference, finish: Callable[[TaskResult, Timing], Awaitable[T]]) -> T:
        """Run offline; the lease is released when the engine and `finish` are through, not when the caller leaves."""
        resident = self._find(inference.model_id)
        asked = self._ports.clock.now()
        timeout_s = self._timeout_s(resident, inference.busy_timeout_ms)
        lease = await self._desk.acquire(resident.entry.id, Operation.INFER, timeout_s)
        return await self._attended(self._run(resident, inference, lease, asked, finish), inference.request)

    async def open_stream(self, inference: Inference) -> LeasedStream:
        """Start a stream; if the caller leaves before it has one, it is closed as soon as there is one."""
        resident = self._find(inference.model_id)
        asked = self._ports.clock.now()
        timeout_s = self._timeout_s(resident, inference.busy_timeout_ms)
        lease = await self._desk.acquire(resident.entry.id, Operation.INFER, timeout_s)
        return await self._attended(self._open_stream(resident, inference, lease, asked), inference.request)

    async def load(self, model_id: str, busy_timeout_ms: int | None = None) -> ModelView:
        """Bring a registered model into memory, under an exclusive lease."""
        return await self._manage(model_id, Operation.LOAD, busy_timeout_ms, self._pool)

    async def unload(self, model_id: str, busy_timeout_ms: int | None = None) -> ModelView:
        """Free a model under an exclusive lease; idempotent."""
        return await self._manage(model_id, Operation.UNLOAD, busy_timeout_ms, self._teardown)

    async def close(self) -> None:
        """Wait for the work that was admitted, streams and queues included, then free every model."""
        self._closing = True
        for resident in self._residents.values():
            # A barrier, as any unload: a lease may be out without a task of ours, as that of an open stream is.
            freeing = self._under_exclusive_lease(resident, Operation.UNLOAD, 0, self._teardown)
            self._tasks.start(freeing).add_done_callback(log_unheard)
        await self._tasks.join()
        self._desk.close()

    def _view(self, entry: Entry) -> ModelView:
        return ModelView(entry.registration, entry.capability, entry.state, entry.last_error)

    def _find(self, model_id: str) -> Resident:
        if self._closing:
            raise ShuttingDown("the server is shutting down")
        return self._residents[self._registry.find(model_id).id]

    async def _attended(self, work: Coroutine[Any, Any, T], request: TaskRequest) -> T:
        """Await owned work; a caller that is cancelled detaches and lets the engine know (rule 1)."""
        try:
            return await self._tasks.attend(work)
        except asyncio.CancelledError:
            request.cancellation.cancel()
            raise

    async def _manage(
        self,
        model_id: str,
        operation: Operation,
        busy_timeout_ms: int | None,
        action: Callable[[Resident], Awaitable[object]],
    ) -> ModelView:
        """Act under the model's exclusive lease. Once asked for it is carried out, also when its caller leaves."""
        resident = self._find(model_id)
        timeout_s = self._timeout_s(resident, busy_timeout_ms)
        return await self._tasks.attend(self._under_exclusive_lease(resident, operation, timeout_s, action))

    def _under_exclusive_lease(
        self,
        resident: Resident,
        operation: Operation,
        timeout_s: float,
        action: Callable[[Resident], Awaitable[object]],
    ) -> Coroutine[Any, Any, ModelView]:
        """Enter the queue now, and act when what is returned runs: a task's first step would be too late to enter."""
        claim = self._desk.acquire(resident.entry.id, operation, timeout_s)

        async def act() -> ModelView:
            lease = await claim
            try:
                await action(resident)
                return self._view(resident.entry)
            finally:
                self._desk.release(lease)

        return act()

    async def _run(
        self,
        resident: Resident,
        inference: Inference,
        lease: Lease,
        asked: float,
        finish: Callable[[TaskResult, Timing], Awaitable[T]],
    ) -> T:
        now = self._ports.clock.now
        try:
            request, pool, load_s = await self._prepare(resident, inference)
            started = now()
            result = await pool.host.run(_slot(lease), request)
            _require_attended(request)
            return await finish(result, Timing(lease.since - asked, load_s, now() - started))
        finally:
            self._release(resident, lease)

    async def _open_stream(self, resident: Resident, inference: Inference, lease: Lease, asked: float) -> LeasedStream:
        try:
            request, pool, load_s = await self._prepare(resident, inference)
            events = await pool.host.stream(_slot(lease), request, None)
        except BaseException:
            self._release(resident, lease)
            raise
        ending = StreamEnding(events, lambda: self._release(resident, lease), self._tasks, self._ports.clock)
        # Where nobody takes this stream any more, it is dropped here, and so ended by its finaliser.
        return LeasedStream(ending, pool.facts, lease.since - asked, load_s)

    async def _prepare(self, resident: Resident, inference: Inference) -> tuple[TaskRequest, Pool, float]:
        """Bind the configuration under the lease, then have the model in memory and the audio as it takes it."""
        entry, now = resident.entry, self._ports.clock.now
        request = inference.bind(BoundModel(entry.registration, entry.capability), inference.request)
        asked = now()
        pool = await self._pool(resident)
        load_s = now() - asked
        _require_attended(request)
        if inference.interface not in pool.facts.interfaces:
            raise InvalidRequest(f"model {entry.id!r} cannot be called {inference.interface}", param="model")
        if request.audio is not None:
            audio = await self._ports.codec.convert(request.audio, pool.facts.sample_rate, pool.facts.channels)
            request = replace(request, audio=audio)
            _require_attended(request)
        return request, pool, load_s

    async def _pool(self, resident: Resident) -> Pool:
        """The published pool; whoever finds none shares the one attempt to build it, and its outcome."""
        if resident.pool is not None:
            return resident.pool
        if resident.attempt is None:
            resident.attempt = self._tasks.start(self._load(resident))
        try:
            return await asyncio.shield(resident.attempt)
        except LoadFailed as fault:
            raise LoadFailed(fault.message) from fault  # an exception of its own for each who waited

    async def _load(self, resident: Resident) -> Pool:
        entry = resident.entry
        self._take(entry, Step.LOAD)
        try:
            pool = await self._build(resident)
        except BaseException as fault:
            resident.attempt = None
            entry.last_error = fault.message if isinstance(fault, AntiphonError) else "internal error"
            self._take(entry, Step.FAIL)
            self._ports.observer.failed(entry.id, "load", fault)
            raise
        resident.attempt = None
        resident.pool = pool
        entry.facts = pool.facts
        entry.last_error = None
        self._take(entry, Step.PUBLISH)
        return pool

    async def _build(self, resident: Resident) -> Pool:
        spec = resident.entry.registration.spec
        try:
            host = self._ports.make_host(spec)
        except Exception as fault:  # no thread or no adapter to be had: a load failure like any other
            raise load_failure(fault) from fault
        return await build_pool(host, spec.slots, resident.max_slots)

    async def _teardown(self, resident: Resident) -> None:
        """Retire the pool at once, then free it; an engine that fails at that has still been left."""
        pool, entry = resident.pool, resident.entry
        if pool is None:
            return
        resident.pool = None
        entry.facts = None
        self._take(entry, Step.RETIRE)
        try:
            await pool.close()
        except Exception as fault:  # noqa: BLE001 (told to the observer; the model is out of use whatever it is)
            entry.last_error = fault.message if isinstance(fault, AntiphonError) else "internal error"
            self._ports.observer.failed(entry.id, "unload", fault)
        finally:
            self._take(entry, Step.DESTROY)

    async def _load_each(self, model_ids: Iterable[str]) -> None:
        for model_id in model_ids:
            with suppress(AntiphonError):  # the observer has heard of it, and the next request tries again
                await self.load(model_id, busy_timeout_ms=0)

    def _release(self, resident: Resident, lease: Lease) -> None:
        resident.entry.last_used = self._ports.clock.now()
        self._desk.release(lease)

    def _take(self, entry: Entry, step: Step) -> None:
        before = entry.state
        entry.take(step)
        self._ports.observer.transitioned(entry.id, before, entry.state)

    def _timeout_s(self, resident: Resident, busy_timeout_ms: int | None) -> float:
        model_ms = resident.entry.registration.busy_timeout_ms
        return effective_timeout_s(_seconds(busy_timeout_ms), _seconds(model_ms), self._ports.busy_timeout_ms / 1000)


def _require_attended(request: TaskRequest) -> None:
    """Go no further for a client that has left."""
    if request.cancelled():
        raise AbandonedError


def _slot(lease: Lease) -> int:
    if lease.slot is None:
        raise InvariantError(f"{lease} has no slot to run in")
    return lease.slot


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
