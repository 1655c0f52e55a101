"""What both server runtimes do with a model: admit, run, stream, batch and manage. They differ above this module."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

from antiphon.admission.estimates import wait_estimates_s
from antiphon.admission.gate import Lease
from antiphon.admission.policy import effective_timeout_s, seconds
from antiphon.ports.clock import Timer
from antiphon.residency.registry import Entry
from antiphon.runtime.api import (
    BatchInference,
    Foresight,
    Inference,
    MemoryChange,
    ModelStatus,
    ModelView,
    Strategy,
    Timing,
    Unloaded,
)
from antiphon.runtime.foresight import LoadCall, Planner
from antiphon.runtime.leases import Claim, LeaseDesk
from antiphon.runtime.owned import AbandonedError, OwnedTasks, Told, all_of, log_unheard
from antiphon.runtime.pool import Pool
from antiphon.runtime.registration import Registrar
from antiphon.runtime.requests import RequestPath
from antiphon.runtime.resident import Resident
from antiphon.runtime.residents import Residents
from antiphon.runtime.streams import LeasedStream
from antiphon.runtime.underway import Admission, Underway
from antiphon.runtime.watch import Limit
from antiphon.runtime.wiring import RuntimePorts
from antiphon.vocabulary.errors import AntiphonError, ModelNotFound, ServerBusy, ShuttingDown
from antiphon.vocabulary.spec import Capability, ModelSpec, Registration
from antiphon.vocabulary.states import Operation
from antiphon.vocabulary.tasks import StreamEvent, TaskResult

T = TypeVar("T")

log = logging.getLogger(__name__)

CUT_GRACE_S = 0.5
"""How long after a cut engines may take to end by themselves before their hosts are killed, in seconds."""

KILL_GRACE_S = 5.0
"""The least that a forced unload waits, in seconds: a process that was killed is gone in milliseconds, but on a busy
machine its end may be noticed late."""


class ModelRuntime:
    """The shared part of `ServerState` and `ParallelServerState`."""

    parallel: bool

    def __init__(self, ports: RuntimePorts) -> None:
        self._ports = ports
        self._desk = LeaseDesk(ports.clock, ports.make_gate)
        self._tasks = OwnedTasks()
        self._underway = Underway(self._tasks)
        self._residents = Residents(ports, self._desk, self._tasks)
        self._registrar = Registrar(self._residents, self._desk, self._max_slots, ports.check, ports.inspect)
        self._requests = RequestPath(ports, self._residents, self._desk, self._tasks, self._underway)
        self._planner = Planner(ports, self._residents, self._desk, self._registrar)
        self._closing = False
        self._closed = False  # the last barriers are in the queues, and nothing may come behind them
        self._barriers: list[Claim] = []
        self._killing: Timer | None = None

    def add(self, registration: Registration, capability: Capability) -> None:
        """Add a model before the server listens."""
        entry = Entry(registration, capability, self._ports.clock.now())
        self._desk.open_gate(entry.id, registration.spec.slots)
        self._residents.add(entry, self._max_slots(registration.spec))

    def views(self) -> tuple[ModelView, ...]:
        """All models, at one moment."""
        return tuple(self._view(entry) for entry in self._residents.registry)

    def view(self, model_id: str) -> ModelView:
        """One model, at one moment."""
        return self._view(self._residents.registry.find(model_id))

    def status(self) -> tuple[ModelStatus, ...]:
        """All models with their leases and queues, at one moment: nothing can run while this does."""
        return tuple(self._status(entry) for entry in self._residents.registry)

    async def start(self) -> None:
        """Begin to load the models that are not lazy, none behind another; the first ones where not all have room."""
        eager = [entry.id for entry in self._residents.registry if not entry.registration.lazy]
        eager = eager[: self._ports.limits.max_loaded_models or None]  # or they would drive each other out
        self._residents.awaited.extend(eager)
        for model_id in eager:
            self._tasks.start(self._load_eagerly(model_id)).add_done_callback(log_unheard)

    def awaited(self) -> tuple[str, ...]:
        """What the start has not brought into memory yet; what leaves it later is not awaited again."""
        self._require_open()
        return tuple(self._residents.awaited)

    async def run(self, inference: Inference, finish: Callable[[TaskResult, Timing], Awaitable[T]]) -> T:
        """Run offline; the lease is released when the engine and `finish` are through, not when the caller leaves."""
        return await self._requests.run(await self._admitted(inference), inference, finish)

    def wait_limit_s(self, model_id: str, busy_timeout_ms: int | None) -> float:
        """How long a request may wait: the limit that holds for its slot holds for a decoder as well."""
        return self._timeout_s(self._residents.find(model_id), busy_timeout_ms)

    async def open_stream(self, inference: Inference) -> LeasedStream[StreamEvent]:
        """Start a stream; if the caller leaves before it has one, it is closed as soon as there is one."""
        return await self._requests.open_stream(await self._admitted(inference), inference)

    async def open_batch(self, batch: BatchInference) -> LeasedStream[tuple[int, TaskResult]]:
        """Start a batch, as a stream is started."""
        return await self._requests.open_batch(await self._admitted(batch), batch)

    async def load(self, model_id: str, busy_timeout_ms: int | None = None) -> ModelView:
        """Bring a registered model into memory as it is registered, under an exclusive lease."""

        async def bring(resident: Resident, lease: Lease) -> None:
            del lease
            await self._residents.pool(resident)

        return await self._manage(self._find(model_id), Operation.LOAD, busy_timeout_ms, bring)

    async def register(
        self,
        registration: Registration,
        busy_timeout_ms: int | None = None,
        strategy: Strategy = Strategy.REPLACE,
    ) -> ModelView:
        """Add a model, or replace the registration of one, and have it in memory."""
        self._require_open()
        self._residents.registry.require_free(registration)
        registration, capability = await self._inspected(registration)
        spec = registration.spec
        self._require_open()
        resident = self._residents.get(spec.id)  # only now: inspecting awaited, and another may have come first
        if resident is None:
            return await self._register_new(registration, capability)
        loaded = resident.pool is not None
        if strategy is Strategy.SIDE_BY_SIDE and loaded and spec != resident.entry.registration.spec:
            self._registrar.course(resident, spec, capability, strategy, loaded=loaded)  # may refuse it
            told = _told()
            replacing = self._replace_beside(resident, registration, capability, busy_timeout_ms, told)
            return await self._tasks.attend(replacing, told)

        async def replace_it(resident: Resident, lease: Lease) -> None:
            await self._registrar.replace(resident, lease, registration, capability)

        return await self._manage(resident, Operation.LOAD, busy_timeout_ms, replace_it)

    async def foresee_load(
        self,
        model_id: str,
        registration: Registration | None = None,
        strategy: Strategy = Strategy.REPLACE,
        busy_timeout_ms: int | None = None,
    ) -> Foresight:
        """Report what `load`, or `register` with this registration, would do; raises what its validation would."""
        self._require_open()
        if registration is None:
            known = self._find(model_id)
            spec, capability = known.entry.registration.spec, known.entry.capability
            timeout_s = self._timeout_s(known, busy_timeout_ms)
            return self._planner.of_load(LoadCall(known, spec, capability, registers=False, timeout_s=timeout_s))
        self._residents.registry.require_free(registration)
        registration, capability = await self._inspected(registration)
        resident = self._residents.get(model_id)  # only now: inspecting awaited, and another may have come first
        timeout_s = 0.0 if resident is None else self._timeout_s(resident, busy_timeout_ms)
        call = LoadCall(resident, registration.spec, capability, registers=True, strategy=strategy, timeout_s=timeout_s)
        return self._planner.of_load(call)

    def foresee_unload(self, model_id: str, busy_timeout_ms: int | None = None) -> Foresight:
        """Report what `unload` would do."""
        resident = self._find(model_id)
        return self._planner.of_unload(resident, self._timeout_s(resident, busy_timeout_ms))

    def foresee_unload_many(self, model_ids: Sequence[str] | None = None) -> tuple[Foresight, Unloaded]:
        """Report what `unload_many` would do."""
        chosen, unknown = self._chosen(model_ids)
        return self._planner.of_bulk_unload(chosen), Unloaded(tuple(it.entry.id for it in chosen), unknown)

    async def unload(
        self, model_id: str, busy_timeout_ms: int | None = None, *, force: bool = False
    ) -> tuple[ModelView, MemoryChange | None]:
        """Free a model under an exclusive lease, and say what became of its memory; idempotent.

        With `force` it is the same barrier, but what holds the model or had queued before it is stopped.
        """
        change: MemoryChange | None = None

        async def free(resident: Resident, lease: Lease) -> None:
            del lease
            nonlocal change
            change = await self._residents.unload_weighed(resident)

        resident = self._find(model_id)
        if not force:
            return await self._manage(resident, Operation.UNLOAD, busy_timeout_ms, free), change
        timeout_s, told = self._timeout_s(resident, busy_timeout_ms), _told()
        # Without a bound of its own: a claim with one is refused at once if what holds the model is older than that.
        claim = self._desk.acquire(resident.entry.id, Operation.UNLOAD, 0)
        stopping = self._stopped(resident, claim, timeout_s)
        return await self._tasks.attend(self._act(resident, stopping, free, told), told), change

    async def unload_many(self, model_ids: Sequence[str] | None = None, *, force: bool = False) -> Unloaded:
        """Free several models, all when None: a barrier on each in one step, each freed as soon as its own is granted.

        With `force` what holds them or had queued before is stopped.

        Ids that are not known do not fail those that are; what is registered later is not touched. If the caller is
        cancelled, or publishing fails part way, barriers that still wait are withdrawn and unloads that were granted
        finish (order.bulk_cancel).
        """
        chosen, unknown = self._chosen(model_ids)
        claims = self._desk.publish([resident.entry.id for resident in chosen], Operation.BULK_UNLOAD)
        freeing: list[asyncio.Task[None]] = []
        detached: dict[str, Pool | None] = {}
        told = _told()
        try:
            # Tasks before pools: a pool that is detached and has no task to free it would be lost.
            for resident, claim in zip(chosen, claims, strict=True):
                freeing.append(self._tasks.start(self._free_in_bulk(resident, claim, detached, told, force=force)))
            # What is granted already goes out of use here and now, before anyone else can run.
            for resident, claim in zip(chosen, claims, strict=True):
                if claim.lease:
                    detached[resident.entry.id] = self._residents.detach(resident)
            await self._tasks.attend(all_of(freeing), told)
        except BaseException:
            # A claim with a task belongs to that task, which finishes the unload if the claim has been granted.
            for claim in claims[: len(freeing)]:
                claim.withdraw()
            for claim in claims[len(freeing) :]:
                claim.give_up()
            raise
        return Unloaded(tuple(it.entry.id for it in chosen), unknown)

    def refuse(self) -> None:
        """Take no new work from now on; what was admitted or is queued goes on, but for live audio, which ends."""
        self._closing = True
        self._underway.refuse()

    async def close(self) -> None:
        """Take no new work, wait for what was admitted or is queued, and free each model after its own.

        That has no bound of its own: `cut` ends what can be ended.
        """
        self.refuse()
        self._closed = True
        for resident in self._residents:
            # A barrier, as any unload: a lease may be out without a task of ours, as that of an open stream is.
            claim = self._desk.acquire(resident.entry.id, Operation.UNLOAD, 0)
            self._barriers.append(claim)
            self._tasks.start(self._free_in_bulk(resident, claim, {})).add_done_callback(log_unheard)
        await self._tasks.join()
        if self._killing is not None:
            self._killing.cancel()
        self._residents.close()
        self._desk.close()

    def cut(self) -> None:
        """Refuse all who wait, begin no load any more, and end what runs; those who asked are told.

        Hosts that can be killed are, where they have not ended after a moment. In the server's own process engines are
        only asked: one that does not heed `cancelled`, and a load that is under way, still hold `close` up.
        """
        self.refuse()
        self._underway.cut()
        self._residents.cut()
        if self._killing is None:
            killing_at = self._ports.clock.now() + CUT_GRACE_S
            self._killing = self._ports.clock.call_at(killing_at, self._residents.kill_all)
        self._desk.dismiss(self._barriers)

    def _max_slots(self, spec: ModelSpec) -> int:
        """How many slots a model may use, whatever its sessions advertise."""
        raise NotImplementedError

    def _unloads_in_bulk(self, resident: Resident) -> bool:
        """Whether a bulk unload that names a model includes it."""
        raise NotImplementedError

    def _view(self, entry: Entry) -> ModelView:
        loaded = entry.facts is not None
        return ModelView(entry.registration, entry.capability, entry.state, entry.last_error, loaded)

    def _status(self, entry: Entry) -> ModelStatus:
        gate, mean_s = self._desk.view(entry.id), self._desk.run_times(entry.id).mean_run_s
        waits = (None,) * len(gate.queue) if mean_s is None else wait_estimates_s(gate, mean_s)
        return ModelStatus(self._view(entry), gate, waits, self._residents.find(entry.id).used_bytes)

    def _find(self, model_id: str) -> Resident:
        self._require_open()
        return self._residents.find(model_id)

    def _require_open(self) -> None:
        if self._closing:
            raise ShuttingDown

    def _require_draining(self) -> None:
        """Raise ShuttingDown if even work that was accepted before the stop cannot be admitted any more."""
        if self._closed or self._underway.is_cut:
            raise ShuttingDown

    def _chosen(self, model_ids: Sequence[str] | None) -> tuple[list[Resident], tuple[str, ...]]:
        """The models that a bulk operation means, each once and in order, and the ids that are unknown."""
        self._require_open()
        if model_ids is None:
            model_ids = [entry.id for entry in self._residents.registry]
        found: dict[str, Resident] = {}
        unknown: dict[str, None] = {}
        for name in model_ids:
            try:
                resident = self._residents.find(name)
            except ModelNotFound:
                unknown[name] = None
            else:
                found[resident.entry.id] = resident  # an alias and its id are one model
        return [it for it in found.values() if self._unloads_in_bulk(it)], tuple(unknown)

    def _claim(self, resident: Resident, operation: Operation, busy_timeout_ms: int | None) -> Claim:
        """Enter the model's queue now, under its configured bound."""
        return self._desk.acquire(resident.entry.id, operation, self._timeout_s(resident, busy_timeout_ms))

    def _timeout_s(self, resident: Resident, busy_timeout_ms: int | None) -> float:
        model_s = seconds(resident.entry.registration.busy_timeout_ms)
        return effective_timeout_s(seconds(busy_timeout_ms), model_s, self._ports.busy_timeout_ms / 1000)

    async def _admitted(self, work: Inference | BatchInference) -> Admission:
        if isinstance(work, Inference) and work.continues:
            self._require_draining()
        else:
            self._require_open()
        resident, asked = self._residents.find(work.model_id), self._ports.clock.now()
        self._ports.observer.asked(resident.entry.id)
        lease = await self._claim(resident, Operation.INFER, work.busy_timeout_ms)
        admission = Admission(resident, lease, asked)
        self._ports.observer.granted(resident.entry.id, admission.queue_s)
        return admission

    async def _manage(
        self,
        resident: Resident,
        operation: Operation,
        busy_timeout_ms: int | None,
        action: Callable[[Resident, Lease], Awaitable[None]],
    ) -> ModelView:
        """Act under the model's exclusive lease. Once asked for it is carried out, also when its caller leaves."""
        claim = self._claim(resident, operation, busy_timeout_ms)
        told = _told()
        return await self._tasks.attend(self._act(resident, claim, action, told), told)

    async def _act(
        self,
        resident: Resident,
        claim: Awaitable[Lease],
        action: Callable[[Resident, Lease], Awaitable[None]],
        told: Told | None = None,
    ) -> ModelView:
        with self._desk.holding(await claim) as lease, resident.releasing(told):
            await action(resident, lease)
            return self._view(resident.entry)

    async def _stopped(self, resident: Resident, claim: Claim, timeout_s: float) -> Lease:
        """The lease of a forced unload; raises ServerBusy if an engine that cannot be killed keeps it too long."""
        limit_s = max(timeout_s, KILL_GRACE_S) if timeout_s else 0.0
        try:
            with ExitStack() as limits:
                with _given_up(claim):
                    limits.enter_context(Limit(self._ports.clock, limit_s, claim.withdraw))
                return await self._granted_by_force(resident, claim)
        except AbandonedError as withdrawn:
            reason = "an engine in the server's own process cannot be killed"
            told = f"model {resident.entry.id!r} did not stop within {limit_s * 1000:g} ms: {reason}"
            raise ServerBusy(told) from withdrawn

    async def _granted_by_force(self, resident: Resident, claim: Claim) -> Lease:
        """Stop whatever is ahead of a barrier, which has its place in the queue, and await its lease.

        What had queued before it is granted in its turn, and refused before it loads or runs anything. What has queued
        behind it is not affected.
        """
        if claim.lease is not None:
            return await claim
        log.warning("model %s is unloaded by force: what holds it is stopped", resident.entry.id)
        resident.forced_unloads += 1
        try:
            with _given_up(claim):
                self._underway.stop(resident)
                self._residents.kill_hosts_of(resident.entry.id)
            return await claim
        finally:
            resident.forced_unloads -= 1

    async def _inspected(self, registration: Registration) -> tuple[Registration, Capability]:
        told = _told()
        return await self._tasks.attend(self._registrar.inspect(registration, told), told)

    async def _register_new(self, registration: Registration, capability: Capability) -> ModelView:
        resident, lease = self._registrar.publish(registration, capability, self._ports.clock.now())
        told = _told()

        async def load() -> ModelView:
            with self._desk.holding(lease), resident.releasing(told):
                await self._registrar.load(resident)
                return self._view(resident.entry)

        return await self._tasks.attend(load(), told)

    async def _replace_beside(
        self,
        resident: Resident,
        registration: Registration,
        capability: Capability,
        busy_timeout_ms: int | None,
        told: Told,
    ) -> ModelView:
        """Build the replacement beside the working pool, then queue for the lease under which the two are swapped.

        If the model has been registered anew meanwhile, the second pool is given up and the ordinary way is taken.
        """
        seen = resident.entry.metadata
        with ExitStack() as place:
            place.enter_context(self._residents.beside(resident))
            built: list[Pool] = [await self._registrar.build_beside(registration, capability, told)]

            async def swap(resident: Resident, lease: Lease) -> None:
                if resident.entry.metadata is seen:
                    old = self._registrar.swap_in(resident, lease, registration, capability, built[0])
                    built.clear()
                    try:
                        # From here on the new pool has the model's own place, and the old one, being freed, none.
                        place.close()
                    finally:
                        await self._residents.destroy(resident, old)
                else:
                    await built.pop().abandon()
                    place.close()  # or the pool that was given up would count against the load that follows
                    await self._registrar.replace(resident, lease, registration, capability)

            try:
                self._require_draining()  # a stop lets managers finish, but nothing may be loaded behind its barriers
                claim = self._claim(resident, Operation.LOAD, busy_timeout_ms)
                return await self._act(resident, claim, swap, told)
            finally:
                for unused in built:
                    await unused.abandon()

    async def _free_in_bulk(
        self,
        resident: Resident,
        claim: Claim,
        detached: dict[str, Pool | None],
        told: Told | None = None,
        *,
        force: bool = False,
    ) -> None:
        """Unload a model under its claim's lease, and free its pool in `detached` if it is there.

        Does nothing if the claim is withdrawn while it waits. `told` is released if the teardown takes too long.
        """
        try:
            lease = await (self._granted_by_force(resident, claim) if force else claim)
        except AbandonedError:
            return
        with self._desk.holding(lease), resident.releasing(told):
            await self._residents.destroy(resident, detached.pop(resident.entry.id, None))
            await self._residents.unload(resident)

    async def _load_eagerly(self, model_id: str) -> None:
        with suppress(AntiphonError):  # the observer has heard of it, and the next request tries again
            await self.load(model_id, busy_timeout_ms=0)


def _told() -> Told:
    """A future that releases a caller from its wait when it is resolved."""
    return asyncio.get_running_loop().create_future()


@contextmanager
def _given_up(claim: Claim) -> Iterator[None]:
    """Give a claim up if the block fails, which comes before it is awaited: its lease would be held for good."""
    try:
        yield
    except BaseException:
        claim.give_up()
        raise
