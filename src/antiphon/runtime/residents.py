"""What is in memory: loading a model whole, making room for it, freeing it. It takes no lease but an eviction's."""

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from antiphon.admission.policy import effective_timeout_s, seconds
from antiphon.ports.host import SlotHost
from antiphon.residency.eviction import plan_eviction
from antiphon.residency.lifecycle import Step
from antiphon.residency.registry import Entry, Registry
from antiphon.runtime.api import MemoryChange
from antiphon.runtime.deaths import Deaths, death_of
from antiphon.runtime.evictions import Evictions
from antiphon.runtime.idle_alarms import IdleAlarms
from antiphon.runtime.leases import LeaseDesk
from antiphon.runtime.memory_needs import MemoryNeeds
from antiphon.runtime.owned import OwnedTasks, Told, log_unheard, tell
from antiphon.runtime.pool import Pool, Staged, build_pool, load_failure, require_slots, stage
from antiphon.runtime.resident import Resident
from antiphon.runtime.room import WaitingRoom
from antiphon.runtime.scales import Scales
from antiphon.runtime.watch import LifecycleLimits
from antiphon.runtime.wiring import RuntimePorts
from antiphon.vocabulary.errors import (
    AntiphonError,
    InsufficientMemory,
    LoadFailed,
    ServerBusy,
    ShuttingDown,
    WorkerDied,
)
from antiphon.vocabulary.spec import Capability, ModelSpec, Registration
from antiphon.vocabulary.states import EvictionCause, ModelState


@dataclass(frozen=True, slots=True)
class Candidate:
    """A registration that an unloaded model is loaded as, before it is committed.

    `max_slots` is what the audit list allows it. `commit` makes it the model's registration; it is called once, while
    the model is loading.
    """

    registration: Registration
    capability: Capability
    max_slots: int
    commit: Callable[[], None]


@dataclass(frozen=True, slots=True)
class HeadStart:
    """What a registration hands to the load that it ends in, so that nothing is done, or allowed its time, twice.

    `staged` is a host whose weights are loaded already; `limits` are those that a probe has drawn on.
    """

    staged: Staged | None = None
    candidate: Candidate | None = None
    limits: LifecycleLimits | None = None


class Residents:
    """The registered models and their pools. Whoever calls `pool`, `detach` or `destroy` holds the model's lease."""

    def __init__(self, ports: RuntimePorts, desk: LeaseDesk, tasks: OwnedTasks) -> None:
        self.registry = Registry()
        self.memory = MemoryNeeds(ports, tasks)
        self.awaited: list[str] = []
        """The models that the start is to bring into memory and that have not been there yet."""
        self._by_id: dict[str, Resident] = {}
        self._ports = ports
        self._desk = desk
        self._tasks = tasks
        self._room = WaitingRoom(ports.clock, ports.limits.residency_wait_s)
        self._deaths = Deaths()
        self._scales = Scales(ports.memory, ports.clock, self.registry, desk)
        self.evictions = Evictions(
            self.registry,
            desk,
            tasks,
            observer=ports.observer,
            max_loaded_models=ports.limits.max_loaded_models,
            detach=self.detach,
            destroy=self.destroy,
        )
        retire = partial(self.evictions.evict, cause=EvictionCause.IDLE)
        self._idle_alarms = IdleAlarms(ports.clock, ports.limits.idle_unload_s, retire)
        desk.on_idle = self._became_idle

    def __iter__(self) -> Iterator[Resident]:
        return iter(tuple(self._by_id.values()))

    def find(self, model_id: str) -> Resident:
        """Look a model up by its id or an alias; raises ModelNotFound."""
        return self._by_id[self.registry.find(model_id).id]

    def get(self, model_id: str) -> Resident | None:
        """Look a model up by its id; None for an unknown one."""
        return self._by_id.get(model_id)

    def add(self, entry: Entry, max_slots: int) -> Resident:
        """Publish a new model; its gate is there already."""
        resident = Resident(entry, max_slots)
        self.registry.insert(entry)
        self._by_id[entry.id] = resident
        self._ports.observer.registered(entry.id)
        return resident

    async def pool(self, resident: Resident, head_start: HeadStart | None = None) -> Pool:
        """The published pool. Callers that find none share the one attempt to build it, and its outcome.

        `head_start` is what a registration has done already for the attempt that begins now. Raises LoadFailed,
        ServerBusy, InsufficientMemory or WorkerDied, a separate exception for each caller.
        """
        if head_start is None:  # what has been staged must be given up, which the load does
            resident.require_not_stopping()
        if resident.pool is not None:
            return resident.pool
        if resident.attempt is None:
            resident.attempt = self._tasks.start(self._load(resident, head_start or HeadStart()))
        try:
            return await asyncio.shield(resident.attempt)
        except LoadFailed as fault:
            raise type(fault)(fault.message) from fault
        except ServerBusy as fault:
            raise type(fault)(fault.message, retry_after_s=fault.retry_after_s) from fault
        except ShuttingDown as fault:
            raise ShuttingDown from fault

    def detach(self, resident: Resident) -> Pool | None:
        """Take the pool out of use, at once: from here on the model counts as not loaded (fail.slow_teardown)."""
        if resident.pool is not None and resident.entry.state is ModelState.READY:
            self.take(resident.entry, Step.RETIRE)
        pool, resident.pool = resident.pool, None
        resident.entry.facts = None
        resident.used_bytes = None
        return pool

    async def destroy(self, resident: Resident, pool: Pool | None) -> None:
        """Free a pool that was detached. Errors of its engine are reported to the observer and otherwise ignored."""
        if pool is None:
            return
        self._room.retry()  # its place is free since it was detached, however long its teardown takes
        try:
            await pool.close()
        except Exception as fault:  # noqa: BLE001 (the model is out of use, whatever the fault is)
            self.failed(resident.entry, "unload", fault)
        finally:
            resident.overdue = None
            if resident.entry.state is ModelState.UNLOADING:
                self.take(resident.entry, Step.DESTROY)

    async def unload(self, resident: Resident) -> None:
        """Detach the pool, if there is one, and free it."""
        await self.destroy(resident, self.detach(resident))

    async def unload_weighed(self, resident: Resident) -> MemoryChange | None:
        """The same, and say what became of the memory; None where there is no pool."""
        pool = resident.pool
        if pool is None:
            return None
        if pool.host.killable:  # its process ends, and with it goes all that it had
            used_bytes = await pool.host.resident_bytes()
            await self.unload(resident)
            return MemoryChange(used_bytes, 0, alone=True)
        before = await self._scales.weigh()
        await self.unload(resident)
        return await self._scales.change(before, resident.entry)

    def publish(self, resident: Resident, pool: Pool, step: Step = Step.PUBLISH) -> None:
        """Make a complete pool usable; raises WorkerDied, and changes nothing, if its host has died meanwhile."""
        self._deaths.require_alive(pool.host)
        entry = resident.entry
        self.take(entry, step)
        resident.pool = pool
        resident.used_bytes, resident.next_sample = pool.resident_bytes, -math.inf
        entry.facts = pool.facts
        entry.last_error = None
        self._ports.observer.loaded(entry.id, pool.load_s)
        if entry.id in self.awaited:
            self.awaited.remove(entry.id)

    def take(self, entry: Entry, step: Step) -> None:
        """Change a model's state, and tell the observer."""
        before = entry.state
        entry.take(step)
        self._ports.observer.transitioned(entry.id, before, entry.state)

    def commit(self, entry: Entry, registration: Registration, capability: Capability) -> None:
        """Replace what a model is registered as, and tell the observer."""
        entry.commit(registration, capability)
        self._ports.observer.registered(entry.id)

    def make_host(self, spec: ModelSpec) -> SlotHost:
        """Make a host; raises LoadFailed where no thread or adapter is to be had, ShuttingDown after `cut`."""
        try:
            return self._deaths.watched(spec.id, partial(self._ports.make_host, spec), partial(self._died, spec.id))
        except ShuttingDown:
            raise
        except Exception as fault:
            raise load_failure(fault) from fault

    def limits_of(
        self, registration: Registration, resident: Resident | None = None, told: Told | None = None
    ) -> LifecycleLimits:
        """How long an engine may take for one load under this registration.

        If it takes longer and cannot be killed, `told` is released, and with a `resident` everyone who waits for it.
        """

        def release(what: str, fault: Callable[[], AntiphonError]) -> None:
            tell(told, fault)
            if resident is not None:
                self.failed(resident.entry, what, fault())
                resident.release_waiters(fault)

        limits = self._ports.engine_limits
        load_s = effective_timeout_s(None, seconds(registration.load_timeout_ms), limits.load_s)
        teardown_s = effective_timeout_s(None, seconds(registration.teardown_timeout_ms), limits.teardown_s)
        return LifecycleLimits(self._ports.clock, load_s, teardown_s, release)

    @contextmanager
    def beside(self, resident: Resident) -> Iterator[None]:
        """Count a second pool of a model that is being built beside its first; nothing is evicted for it.

        Nor is the model itself meanwhile: its first pool is to work until the second takes its place. Raises ServerBusy
        where there is no room.
        """
        try:
            with self.evictions.sparing(resident), self._scales.building_beside():
                yield
        finally:
            self._idle_alarms.set(resident)  # it may have rung meanwhile, in vain
            self._room.retry()

    def require_loadable(self, resident: Resident) -> None:
        """Raise what refuses a load of an unloaded model as it is registered: WorkerDied or UnsupportedSlots."""
        resident.require_rested(self._ports.clock.now())
        require_slots(resident.entry.registration.spec, resident.max_slots)

    def no_room(self) -> ServerBusy:
        """What a load is told that finds too few idle models to evict."""
        told = "the models that are loaded are all in use (max_loaded_models)"
        if wait_s := self._ports.limits.residency_wait_s:
            told += f", and none became idle within {wait_s * 1000:g} ms"
        return ServerBusy(told, retry_after_s=self._until_idle_s())

    def no_memory(self) -> InsufficientMemory:
        """What a load is told that still lacks memory when every idle model has left."""
        told = "there is not enough free memory (min_free_memory_mb), and no model is idle"
        return InsufficientMemory(told, retry_after_s=self._until_idle_s())

    def cut(self) -> None:
        """Begin no load any more, and refuse those that wait for room; one that is under way ends by itself."""
        self._deaths.close()
        self._room.dismiss(ShuttingDown)

    def kill_all(self) -> None:
        """Kill every host that can be killed: what is under way in one raises, and soon ends."""
        self._deaths.kill_all()

    def kill_hosts_of(self, model_id: str) -> None:
        """Kill every host of a model that can be killed: a run, a load or a teardown in it ends, however it hangs."""
        self._deaths.kill_hosts_of(model_id)

    def _died(self, model_id: str, host: SlotHost) -> None:
        """Take a pool whose host has died out of use, at once: its memory is gone with its process.

        Its leases end as their calls fail, and whoever is granted next loads anew. A host that never was a pool, or is
        one no more, fails those who call it, and that is all.
        """
        if not self._deaths.closed:
            self._ports.observer.died(model_id)
        resident = self.get(model_id)
        if resident is None or resident.pool is None or resident.pool.host is not host:
            return
        self._tasks.start(resident.pool.abandon()).add_done_callback(log_unheard)
        self.detach(resident)
        if resident.entry.state is ModelState.UNLOADING:
            self.take(resident.entry, Step.DESTROY)
        if not self._deaths.closed and not resident.forced_unloads:  # otherwise it was killed on purpose
            self.failed(resident.entry, "run", death_of(host))
            resident.crashes = resident.crashes.crashed(self._ports.clock.now())
        self._room.retry()

    def close(self) -> None:
        """Stop the alarms, and let go of what is remembered."""
        self._ports.peaks.close()
        for resident in self:
            self._idle_alarms.cancel(resident)

    async def _load(self, resident: Resident, head_start: HeadStart) -> Pool:
        entry, candidate = resident.entry, head_start.candidate
        evictions: list[asyncio.Task[None]] = []
        try:
            # A model that is being reconfigured keeps its place, so nothing staged beside it ever waits for room.
            if entry.state is ModelState.UNLOADED:
                await self._make_room(resident, candidate, evictions)
            pool = await self._build_guarded(resident, head_start, evictions)
            try:
                self.publish(resident, pool)
            except BaseException:
                await pool.abandon()
                raise
        except BaseException as fault:
            # What a candidate that was not committed did wrong is its caller's business: the model is as it was.
            is_candidate = candidate is not None and entry.registration is not candidate.registration
            if not is_candidate:
                self.failed(entry, "load", fault)
            had_begun = entry.state is not ModelState.UNLOADED
            if had_begun:
                self.take(entry, Step.FAIL)
                self._ports.observer.load_failed(entry.id)
            self._room.retry()
            if isinstance(fault, WorkerDied) and had_begun and not is_candidate and not resident.forced_unloads:
                resident.crashes = resident.crashes.crashed(self._ports.clock.now())
            if self._deaths.closed and isinstance(fault, AntiphonError):
                raise ShuttingDown from fault
            raise
        finally:
            resident.attempt = resident.overdue = None
        self.memory.sample(resident)
        return pool

    async def _make_room(
        self, resident: Resident, candidate: Candidate | None, evictions: "list[asyncio.Task[None]]"
    ) -> None:
        if candidate is None:  # a candidate has not crashed yet, and its count was checked
            self.require_loadable(resident)  # or a model would be evicted for a load that cannot succeed
        await self._room.enter(partial(self._reserve, resident, evictions), self.no_room)

    def _until_idle_s(self) -> float:
        """When the first of the models that may be evicted will probably be idle, in seconds; 1 where none can tell."""
        movable = plan_eviction(self.registry, None, 1).candidates
        waits = [wait_s for it in movable if (wait_s := self._desk.drain_s(it.id)) is not None]
        return min(waits, default=1.0)

    def _reserve(self, resident: Resident, evictions: "list[asyncio.Task[None]]") -> bool:
        """Evict as many idle models as must go, and take their place, in one step (ops.loading.evict).

        What was evicted stays so, also where it was not enough.
        """
        plan = self.evictions.plan(resident.entry)
        made = self._evict_some(plan.candidates, plan.excess, EvictionCause.ROOM, resident)
        evictions += made
        if len(made) < plan.excess:
            return False
        self.take(resident.entry, Step.LOAD)
        return True

    async def _build_guarded(
        self, resident: Resident, head_start: HeadStart, evictions: "list[asyncio.Task[None]]"
    ) -> Pool:
        """Build a pool once there is memory for it, beside others that fit; evictions are waited for in no queue.

        `evictions` were made for this load already; no more are made before the memory of these is freed.
        """
        if head_start.staged is not None or not self.memory.guard.keeps:
            return await self._build(resident, head_start)
        target = head_start.candidate or resident.entry.metadata
        needed_bytes = self.memory.needed_bytes(target.registration.spec, target.capability)
        while True:
            if await self.memory.guard.reserve(needed_bytes):
                try:
                    return await self._build(resident, head_start)
                finally:
                    self.memory.guard.release(needed_bytes)
            candidates = self.evictions.plan(resident.entry).candidates
            evictions = evictions or self._evict_some(candidates, 1, EvictionCause.MEMORY, resident)
            if not evictions:
                raise self.no_memory()
            await asyncio.wait(evictions)
            evictions = []

    async def _build(self, resident: Resident, head_start: HeadStart) -> Pool:
        staged, candidate = head_start.staged, head_start.candidate
        registration = (candidate or resident.entry.metadata).registration
        if self._deaths.closed or resident.forced_unloads:
            if staged is not None:
                await staged.abandon()
            resident.require_not_stopping()
            raise ShuttingDown
        if staged is not None:  # its weights came before, beside another pool
            return await build_pool(staged, registration.spec, resident.max_slots)
        before = await self._scales.weigh()
        limits = head_start.limits or self.limits_of(registration, resident)
        if candidate is not None:
            staged = await self._stage_candidate(candidate, limits)
        else:
            staged = await stage(self.make_host(registration.spec), limits)
        pool = await build_pool(staged, registration.spec, resident.max_slots)
        try:
            self._desk.run_times(resident.entry.id).note_load(pool.load_s)
            if pool.host.killable:  # it has a process of its own, which is measured
                return pool
            change = await self._scales.change(before, resident.entry)
        except BaseException:
            await pool.abandon()
            raise
        return replace(pool, resident_bytes=change.grown_bytes)

    async def _stage_candidate(self, candidate: Candidate, limits: LifecycleLimits) -> Staged:
        """Load a candidate's weights, and commit it as soon as it is known that it can serve its slots.

        Any session can serve one slot, so that is known before anything is read. A higher count is known once the
        primary session is open; if it is too high, the model stays registered as it was.
        """
        spec = candidate.registration.spec
        if spec.slots == 1:
            candidate.commit()
            return await stage(self.make_host(spec), limits)
        staged = await stage(self.make_host(spec), limits)
        try:
            limits.require_in_time()
            require_slots(spec, min(candidate.max_slots, staged.primary.capacity))
            candidate.commit()
        except BaseException:
            await staged.abandon()
            raise
        return staged

    def _evict_some(
        self, candidates: Iterable[Entry], count: int, cause: EvictionCause, newcomer: Resident
    ) -> "list[asyncio.Task[None]]":
        victims = (self._by_id[candidate.id] for candidate in candidates)
        return self.evictions.evict_some(victims, count, cause, newcomer.entry.id)

    def _became_idle(self, model_id: str) -> None:
        """Least recently used and idle are counted from here: only an idle model is ever retired for either."""
        resident = self.find(model_id)
        resident.entry.last_used = self._ports.clock.now()
        self._idle_alarms.set(resident)
        self._room.retry()

    def failed(self, entry: Entry, what: str, fault: BaseException) -> None:
        """Remember what went wrong with a model, and tell the observer."""
        entry.last_error = fault.message if isinstance(fault, AntiphonError) else "internal error"
        self._ports.observer.failed(entry.id, what, fault)
