"""Adding a model and replacing its registration, as one transaction each: refused whole, or committed whole.

A replacement takes these steps in this order (fail.unsupported_capacity, fail.capacity_probe, fail.post_commit_load):
it is validated privately; it waits for the exclusive lease; it is compared with the entry as it is then; its slot count
is checked; only then is the old pool retired, the new registration committed in one assignment, and the model loaded.
If the model is not loaded, the count is checked in the course of that one load (`Candidate`).
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from functools import partial

from antiphon.admission.gate import Lease
from antiphon.ports.host import SlotHost
from antiphon.residency.crashes import CrashRecord
from antiphon.residency.lifecycle import Step
from antiphon.residency.registry import Entry
from antiphon.runtime.api import BoundModel, Strategy
from antiphon.runtime.isolation import isolated
from antiphon.runtime.leases import LeaseDesk
from antiphon.runtime.owned import Told
from antiphon.runtime.pool import Pool, abandon, build_pool, load_failure, require_slots, stage
from antiphon.runtime.resident import Resident
from antiphon.runtime.residents import Candidate, HeadStart, Residents
from antiphon.runtime.threads import with_threads
from antiphon.runtime.watch import LifecycleLimits
from antiphon.vocabulary.errors import (
    AntiphonError,
    ConfigError,
    InvalidRequest,
    InvariantError,
    LoadFailed,
    UnsupportedSlots,
)
from antiphon.vocabulary.spec import Capability, ModelSpec, Registration
from antiphon.vocabulary.states import Isolation, ModelState, Operation

_BESIDE = "there is not enough free memory for a second pool beside the first"
_TO_TRY = "there is not enough free memory to try the new model beside the old one"


class Course(Enum):
    """What carrying a registration out takes. A dry run reports the course that the real call would take."""

    KEEP = "keep"
    """The model is loaded and no engine input changes: only the server's policy for it is committed."""
    LOAD = "load"
    """Nothing is loaded: the model is loaded as registered, under the same rules as any other load."""
    REBUILD = "rebuild"
    """The count is known to fit: the working pool is retired, then the new one is built in its place."""
    PROBE = "probe"
    """As REBUILD, once a private session over the loaded weights has shown how many slots it can serve."""
    STAGE = "stage"
    """As REBUILD, once the new weights have been loaded beside the working pool and can serve the slots."""
    BESIDE = "beside"
    """A whole second pool is built while the first one works, and then takes its place."""


class Registrar:
    """Carries registrations out. `max_slots_of` says what the audit list allows, `check` is that of RuntimePorts."""

    def __init__(
        self,
        residents: Residents,
        desk: LeaseDesk,
        max_slots_of: Callable[[ModelSpec], int],
        check: Callable[[BoundModel], None],
        inspect: Callable[[ModelSpec], Awaitable[Capability]] | None = None,
    ) -> None:
        self._residents = residents
        self._desk = desk
        self._max_slots_of = max_slots_of
        self._check = check
        self._inspect = inspect

    async def inspect(self, registration: Registration, told: Told) -> tuple[Registration, Capability]:
        """Validate privately: nothing is known of the model afterwards. Raises InvalidRequest.

        The registration comes back with the isolation and the threads that its engine needs. `told` is released if it
        takes longer than a load may.
        """
        spec = registration.spec
        limits = self._residents.limits_of(registration, told=told)
        try:
            capability = await self._inspected(spec, limits)
            registration = isolated(with_threads(registration, capability), capability)
        except ConfigError as fault:
            raise InvalidRequest(fault.message, param=fault.param or "path") from fault
        if spec.task not in capability.tasks:
            raise InvalidRequest(f"task is {spec.task}; this model is for {_listed(capability.tasks)}", param="task")
        if spec.mode not in capability.modes:
            raise InvalidRequest(f"mode is {spec.mode}; this model runs {_listed(capability.modes)}", param="mode")
        self._check(BoundModel(registration, capability))
        return registration, capability

    def publish(self, registration: Registration, capability: Capability, now: float) -> tuple[Resident, Lease]:
        """Publish a new id with its exclusive lease taken already, so that nobody barges into its first load.

        The entry is inserted last: an exception before leaves nothing behind (fail.publication).
        """
        self._residents.registry.require_free(registration)
        spec = registration.spec
        lease = self._desk.open_held_gate(spec.id, spec.slots, Operation.LOAD)
        try:
            return self._residents.add(Entry(registration, capability, now), self._max_slots_of(spec)), lease
        except BaseException:
            self._desk.drop_gate(lease)
            raise

    async def load(self, resident: Resident) -> None:
        """Load a model that was registered just now; it stays so if that fails (rule.unsupported_new_count)."""
        with slots_at_fault():
            await self._residents.pool(resident)

    def course(
        self,
        resident: Resident | None,
        spec: ModelSpec,
        capability: Capability,
        strategy: Strategy,
        *,
        loaded: bool,
    ) -> Course:
        """Decide what it takes to register a model as `spec`. `loaded` says whether it is, or will be, in memory.

        Raises what refuses the registration before anything changes: InvalidRequest for too many slots, ServerBusy
        without room for a second pool, InsufficientMemory without memory for the new weights beside the old ones.
        """
        if resident is not None and spec == resident.entry.registration.spec:
            return Course.KEEP if loaded else Course.LOAD
        self.require_audited(spec)
        if resident is None or not loaded:
            return Course.LOAD
        if strategy is Strategy.SIDE_BY_SIDE:
            self._residents.evictions.require_room_beside(resident)
            self._residents.memory.require_at_once(spec, capability, _BESIDE)
            return Course.BESIDE
        current = resident.entry.registration.spec
        if spec.slots == 1:
            return Course.REBUILD  # every session can serve one
        if _same_sessions(spec, current):
            if resident.pool is not None:  # otherwise its load is still under way, and will show
                with slots_at_fault():
                    require_slots(spec, resident.pool.facts.capacity)
            return Course.REBUILD
        # A probe that hangs or crashes in a worker process would take the working pool with it. There the weights are
        # loaded once more, in a process of their own, which then becomes the new pool.
        if _same_weights(spec, current) and current.isolation is Isolation.THREAD:
            return Course.PROBE
        self._residents.memory.require_at_once(spec, capability, _TO_TRY)
        return Course.STAGE

    async def replace(
        self, resident: Resident, lease: Lease, registration: Registration, capability: Capability
    ) -> None:
        """Replace a registration under its exclusive lease, and have the model in memory afterwards."""
        spec, loaded = registration.spec, resident.pool is not None
        with self._names_kept(registration), slots_at_fault():
            course = self.course(resident, spec, capability, Strategy.REPLACE, loaded=loaded)
            head_start = HeadStart()
            if spec == resident.entry.registration.spec:
                self._residents.commit(resident.entry, registration, capability)
            elif course is Course.LOAD:
                # Nothing is live, so there is nothing to protect by trying the new weights first: this load is the
                # load. It commits the registration itself, when it has room, memory and enough slots.
                commit = partial(self._commit, resident, lease, registration, capability)
                head_start = HeadStart(candidate=Candidate(registration, capability, self._max_slots_of(spec), commit))
            else:
                head_start = await self._checked(resident, registration, capability, course)
                await self._retire_and_commit(resident, lease, registration, capability, head_start)
            await self._residents.pool(resident, head_start)

    async def build_beside(self, registration: Registration, capability: Capability, told: Told) -> Pool:
        """Build the whole replacement beside the working pool, which is untouched whatever fails.

        `told` is released if the engine takes too long in a thread. What it builds after that is not used.
        """
        spec, limits = registration.spec, self._residents.limits_of(registration, told=told)
        self.require_audited(spec)
        with slots_at_fault(), self._residents.memory.reserved_at_once(spec, capability, _BESIDE):
            max_slots = self._max_slots_of(spec)
            staged = await stage(self._residents.make_host(spec), limits)
            pool = await build_pool(staged, spec, max_slots)
        try:
            limits.require_in_time()
        except LoadFailed:
            await pool.abandon()
            raise
        return pool

    def require_audited(self, spec: ModelSpec) -> None:
        """Raise InvalidRequest for more slots than the audit list allows."""
        with slots_at_fault():
            require_slots(spec, self._max_slots_of(spec))

    def swap_in(
        self, resident: Resident, lease: Lease, registration: Registration, capability: Capability, pool: Pool
    ) -> Pool | None:
        """Make a pool that was built beside the old one the model's pool. Returns the old one, to be freed.

        There is no old one if the model was unloaded while the new one was built. Whatever fails, the model stays as
        it was.
        """
        entry, before, old = resident.entry, resident.entry.metadata, resident.pool
        self._residents.registry.require_free(registration)
        if old is not None:
            self._residents.take(entry, Step.RECONFIGURE)
        try:
            self._commit(resident, lease, registration, capability)
            self._residents.publish(resident, pool, Step.ADOPT if old is None else Step.PUBLISH)
        except BaseException:
            if entry.metadata is not before:
                self._commit(resident, lease, before.registration, before.capability)
            if old is not None:
                self._residents.take(entry, Step.PRESERVE)
            raise
        return old

    @contextmanager
    def _names_kept(self, registration: Registration) -> Iterator[None]:
        """Let nobody take a name of it meanwhile; raises InvalidRequest where one is taken already."""
        self._residents.registry.claim(registration)
        try:
            yield
        finally:
            self._residents.registry.unclaim(registration)

    async def _inspected(self, spec: ModelSpec, limits: LifecycleLimits) -> Capability:
        if self._inspect is not None:
            with limits.inspecting():
                return await self._inspect(spec)
        host = self._inspector(spec)
        try:
            with limits.loading(host):
                return await host.inspect()
        finally:
            await abandon(host, limits)

    def _inspector(self, spec: ModelSpec) -> SlotHost:
        try:
            return self._residents.make_host(replace(spec, isolation=Isolation.THREAD))
        except LoadFailed as fault:
            if isinstance(fault.__cause__, ConfigError):  # there is no such family, or it cannot be imported
                raise InvalidRequest(fault.__cause__.message, param="family") from fault
            raise

    async def _checked(
        self, resident: Resident, registration: Registration, capability: Capability, course: Course
    ) -> HeadStart:
        """Refuse a count that the replacement cannot serve, before anything of the working pool changes."""
        entry = resident.entry
        self._residents.take(entry, Step.RECONFIGURE)
        try:
            match course:
                case Course.PROBE:
                    return await self._probe(resident, registration)
                case Course.STAGE:
                    return await self._stage_beside(resident, registration, capability)
                case _:
                    return HeadStart()
        except BaseException:
            # There is no pool to preserve if the working one has died meanwhile.
            self._residents.take(entry, Step.FAIL if resident.pool is None else Step.PRESERVE)
            raise
        finally:
            resident.overdue = None

    async def _probe(self, resident: Resident, registration: Registration) -> HeadStart:
        """Open and close a private session over the loaded weights, to learn how many slots it can serve."""
        spec, pool = registration.spec, resident.pool
        if pool is None:
            raise InvariantError(f"there is nothing to probe: {resident.entry} has no pool")
        limits = self._residents.limits_of(registration, resident)
        try:
            with limits.loading(pool.host):
                primary = await pool.host.probe(spec)
        except Exception as fault:
            raise load_failure(fault) from fault  # as a check in a process of its own reports it
        limits.require_in_time()
        if primary is None:
            raise LoadFailed("the engine opened no session for the new options")
        require_slots(spec, min(self._max_slots_of(spec), primary.capacity))
        return HeadStart(limits=limits)

    async def _stage_beside(self, resident: Resident, registration: Registration, capability: Capability) -> HeadStart:
        """Load the new weights beside the old ones to learn their capacity; nothing is evicted for that."""
        spec, limits = registration.spec, self._residents.limits_of(registration, resident)
        with self._residents.memory.reserved_at_once(spec, capability, _TO_TRY):
            staged = await stage(self._residents.make_host(spec), limits)
        try:
            limits.require_in_time()
            require_slots(spec, min(self._max_slots_of(spec), staged.primary.capacity))
        except AntiphonError:
            await staged.abandon()
            raise
        return HeadStart(staged=staged)

    async def _retire_and_commit(
        self,
        resident: Resident,
        lease: Lease,
        registration: Registration,
        capability: Capability,
        head_start: HeadStart,
    ) -> None:
        try:
            await self._residents.destroy(resident, self._residents.detach(resident))
            self._commit(resident, lease, registration, capability)
        except BaseException:
            if resident.entry.state is ModelState.RECONFIGURING:
                self._residents.take(resident.entry, Step.FAIL)
            if head_start.staged is not None:
                await head_start.staged.abandon()
            raise

    def _commit(self, resident: Resident, lease: Lease, registration: Registration, capability: Capability) -> None:
        max_slots, slots = self._max_slots_of(registration.spec), resident.entry.registration.spec.slots
        if registration.spec != resident.entry.registration.spec:
            self._desk.run_times(resident.entry.id).forget_loads()
        self._desk.resize(lease, registration.spec.slots)
        try:
            self._residents.commit(resident.entry, registration, capability)
        except BaseException:
            self._desk.resize(lease, slots)
            raise
        resident.max_slots = max_slots
        resident.crashes = CrashRecord()  # what is registered now has not crashed yet


@contextmanager
def slots_at_fault() -> Iterator[None]:
    """Report too many slots as an error of that field, for a caller who has named it, and not as a failed load."""
    try:
        yield
    except UnsupportedSlots as fault:
        raise InvalidRequest(fault.message, param="slots") from fault


def _same_sessions(spec: ModelSpec, current: ModelSpec) -> bool:
    """Whether sessions are made of the same inputs: the count and the threads of a call say nothing of capacity."""
    like = replace(spec, slots=current.slots, threads=current.threads, auto_threads=current.auto_threads)
    return like == current


def _same_weights(spec: ModelSpec, current: ModelSpec) -> bool:
    """Whether the loaded weights serve, and only what sessions are opened with differs."""
    session_side = replace(spec, task=current.task, mode=current.mode, session_options=current.session_options)
    return _same_sessions(session_side, current)


def _listed(values: frozenset[str]) -> str:
    return ", ".join(sorted(values))
