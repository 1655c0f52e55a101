"""Adding a model and replacing its registration, as one transaction each: refused whole, or committed whole.

Order of a replacement (fail.unsupported_capacity, fail.capacity_probe, fail.post_commit_load): validated privately,
then the exclusive lease, then compared with the entry as it is now, then the count checked; only then is the old pool
retired, the new registration committed in one assignment, and loaded.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum

from antiphon.admission.gate import Lease
from antiphon.ports.host import SlotHost
from antiphon.residency.crashes import CrashRecord
from antiphon.residency.lifecycle import Step
from antiphon.residency.registry import Entry
from antiphon.runtime.api import BoundModel
from antiphon.runtime.isolation import isolated
from antiphon.runtime.leases import LeaseDesk
from antiphon.runtime.owned import Told
from antiphon.runtime.pool import Pool, Staged, abandon, build_pool, require_slots, stage
from antiphon.runtime.resident import Resident
from antiphon.runtime.residents import Residents
from antiphon.runtime.threads import with_threads
from antiphon.vocabulary.errors import (
    AntiphonError,
    ConfigError,
    InvalidRequest,
    LoadFailed,
    UnsupportedSlots,
)
from antiphon.vocabulary.spec import Capability, ModelSpec, Registration
from antiphon.vocabulary.states import Isolation, ModelState, Operation

_BESIDE = "there is not enough free memory for a second pool beside the first"
_TO_TRY = "there is not enough free memory to try the new model beside the old one"


class Trial(Enum):
    """What it takes to learn whether a replacement can serve its slots."""

    NONE = "none"
    """It is known already."""
    SESSION = "session"
    """A private session over the weights that are loaded."""
    WEIGHTS = "weights"
    """The new weights, beside the old ones if those are loaded."""


class Registrar:
    """Carries registrations out. `max_slots_of` says what the audit list allows, `check` is that of RuntimePorts."""

    def __init__(
        self,
        residents: Residents,
        desk: LeaseDesk,
        max_slots_of: Callable[[ModelSpec], int],
        check: Callable[[BoundModel], None],
    ) -> None:
        self._residents = residents
        self._desk = desk
        self._max_slots_of = max_slots_of
        self._check = check

    async def inspect(self, registration: Registration, told: Told) -> tuple[Registration, Capability]:
        """Validate privately: nothing is known of the model afterwards. Raises InvalidRequest.

        The registration comes back with the isolation and the threads that its engine needs. It reads files and no
        engine, so it needs no process of its own. Who is `told` need not wait for one that hangs.
        """
        spec, limits = registration.spec, self._residents.limits_of(registration, told=told)
        host = self._inspector(spec)
        try:
            with limits.loading(host):
                capability = await host.inspect()
            registration = isolated(with_threads(registration, capability), capability)
        except ConfigError as fault:
            raise InvalidRequest(fault.message, param=fault.param or "path") from fault
        finally:
            await abandon(host, limits)
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

    async def load(self, resident: Resident, staged: Staged | None = None) -> None:
        """Load a model as it was registered just now; whatever fails, it stays so (rule.unsupported_new_count)."""
        with _slots_at_fault():
            await self._residents.pool(resident, staged)

    async def replace(
        self, resident: Resident, lease: Lease, registration: Registration, capability: Capability
    ) -> None:
        """Replace a registration under its exclusive lease, and have the model in memory afterwards."""
        entry, staged = resident.entry, None
        with self._names_kept(registration):
            if entry.registration.spec == registration.spec:
                self._residents.commit(entry, registration, capability)
            else:
                staged = await self._checked(resident, registration, capability)
                await self._retire_and_commit(resident, lease, registration, capability, staged)
        await self.load(resident, staged)

    async def build_aside(self, registration: Registration, capability: Capability) -> Pool:
        """Build the whole replacement beside the working pool; whatever fails, that one is untouched."""
        spec, limits = registration.spec, self._residents.limits_of(registration)
        self.require_audited(spec)
        with _slots_at_fault(), self._residents.memory.reserved_at_once(spec, capability, _BESIDE):
            max_slots = self._max_slots_of(spec)
            staged = await stage(self._residents.make_host(spec), limits)
            return await build_pool(staged, spec, max_slots)

    def require_audited(self, spec: ModelSpec) -> None:
        """Raise InvalidRequest for more slots than the audit list allows."""
        with _slots_at_fault():
            require_slots(spec, self._max_slots_of(spec))

    def require_memory_beside(self, spec: ModelSpec, capability: Capability) -> None:
        """Raise InsufficientMemory where `build_aside` would, now."""
        self._residents.memory.require_at_once(spec, capability, _BESIDE)

    def trial(self, resident: Resident, spec: ModelSpec, capability: Capability) -> Trial:
        """Tell how `replace` would learn whether the model can serve its slots.

        Raises what is known already: InvalidRequest for too many, InsufficientMemory where there is too little for it.
        """
        self.require_audited(spec)
        pool, current = resident.pool, resident.entry.registration.spec
        if spec.slots == 1:
            return Trial.NONE  # every session can serve one
        if pool is not None and _same_sessions(spec, current):
            with _slots_at_fault():
                require_slots(spec, pool.facts.capacity)
            return Trial.NONE
        if pool is not None and _same_weights(spec, current):
            return Trial.SESSION
        self._residents.memory.require_at_once(spec, capability, _TO_TRY)
        return Trial.WEIGHTS

    def flip(
        self, resident: Resident, lease: Lease, registration: Registration, capability: Capability, pool: Pool
    ) -> Pool | None:
        """Put a pool that was built aside in the place of the old one, which is returned to be freed.

        Whatever fails, the old one stays.
        """
        before = resident.entry.metadata
        self._residents.registry.require_free(registration)
        self._residents.take(resident.entry, Step.RECONFIGURE)
        try:
            self._commit(resident, lease, registration, capability)
            old = resident.pool
            self._residents.publish(resident, pool)
        except BaseException:
            if resident.entry.metadata is not before:
                self._commit(resident, lease, before.registration, before.capability)
            self._residents.take(resident.entry, Step.PRESERVE)
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

    def _inspector(self, spec: ModelSpec) -> SlotHost:
        try:
            return self._residents.make_host(replace(spec, isolation=Isolation.THREAD))
        except LoadFailed as fault:
            if isinstance(fault.__cause__, ConfigError):  # there is no such family, or it cannot be imported
                raise InvalidRequest(fault.__cause__.message, param="family") from fault
            raise

    async def _checked(self, resident: Resident, registration: Registration, capability: Capability) -> Staged | None:
        """Refuse a count that the replacement cannot serve, before anything changes.

        The result is a host that the check had to load, for the pool to be built on.
        """
        entry = resident.entry
        if entry.state is not ModelState.READY:
            return await self._probe(resident, registration, capability)
        self._residents.take(entry, Step.RECONFIGURE)
        try:
            return await self._probe(resident, registration, capability)
        except BaseException:
            # Where the working pool has died meanwhile, there is none to preserve.
            self._residents.take(entry, Step.FAIL if resident.pool is None else Step.PRESERVE)
            raise

    async def _probe(self, resident: Resident, registration: Registration, capability: Capability) -> Staged | None:
        spec, pool = registration.spec, resident.pool
        max_slots = self._max_slots_of(spec)
        match self.trial(resident, spec, capability):
            case Trial.SESSION if pool is not None:
                with self._residents.limits_of(registration, resident).loading(pool.host):
                    primary = await pool.host.probe(spec)
                if primary is None:
                    raise LoadFailed("the engine opened no session for the new options")
                with _slots_at_fault():
                    require_slots(spec, min(max_slots, primary.capacity))
            case Trial.WEIGHTS:
                return await self._stage_checked(resident, registration, capability, max_slots)
        return None

    async def _stage_checked(
        self, resident: Resident, registration: Registration, capability: Capability, max_slots: int
    ) -> Staged:
        """Load the new weights beside the old ones to learn their capacity; nothing is evicted for that."""
        spec, limits = registration.spec, self._residents.limits_of(registration, resident)
        with self._residents.memory.reserved_at_once(spec, capability, _TO_TRY):
            staged = await stage(self._residents.make_host(spec), limits)
        try:
            with _slots_at_fault():
                require_slots(spec, min(max_slots, staged.primary.capacity))
        except AntiphonError:
            await staged.abandon()
            raise
        return staged

    async def _retire_and_commit(
        self,
        resident: Resident,
        lease: Lease,
        registration: Registration,
        capability: Capability,
        staged: Staged | None,
    ) -> None:
        try:
            await self._residents.destroy(resident, self._residents.detach(resident))
            self._commit(resident, lease, registration, capability)
        except BaseException:
            if resident.entry.state is ModelState.RECONFIGURING:
                self._residents.take(resident.entry, Step.FAIL)
            if staged is not None:
                await staged.abandon()
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
def _slots_at_fault() -> Iterator[None]:
    """Tell whoever registers a model with too many slots that the field is wrong, not that a load failed."""
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
