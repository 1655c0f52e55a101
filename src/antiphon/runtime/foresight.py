"""What a management operation would wait for, evict, load and need, reported without doing any of it.

A dry run assumes that everything ahead of it in the queue succeeds, and asks the functions that the real call asks. It
cannot know what an engine only shows when it is called, nor what a registration ahead of it will change; docs/api.md
lists both.
"""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from antiphon.runtime.api import Foresight, Strategy
from antiphon.runtime.leases import LeaseDesk
from antiphon.runtime.registration import Course, Registrar, slots_at_fault
from antiphon.runtime.resident import Resident
from antiphon.runtime.residents import Residents
from antiphon.runtime.wiring import RuntimePorts
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.states import Operation

_LOADING = frozenset({Operation.INFER, Operation.LOAD})
"""The operations that leave their model loaded if they succeed; all others leave it unloaded."""


@dataclass(frozen=True, slots=True)
class LoadCall:
    """A call that loads a model, as `spec`, once it has its turn. `resident` is None for an id that is not registered.

    `registers` says whether the call names the registration itself. Units: `timeout_s` is how long it would wait at
    most, in seconds, 0 without bound.
    """

    resident: Resident | None
    spec: ModelSpec
    capability: Capability
    registers: bool
    strategy: Strategy = Strategy.REPLACE
    timeout_s: float = 0.0


class Planner:
    """Reports what would happen if the call were made now; by the time that it is, things may have changed."""

    def __init__(self, ports: RuntimePorts, residents: Residents, desk: LeaseDesk, registrar: Registrar) -> None:
        self._ports = ports
        self._residents = residents
        self._desk = desk
        self._registrar = registrar

    def of_unload(self, resident: Resident, timeout_s: float) -> Foresight:
        """What unloading this model would wait for, and whether it would be in memory by then.

        `timeout_s` is how long the call would wait at most, 0 without bound.
        """
        waits_for = tuple(self._waits_for(resident))
        if hopeless := self._desk.hopeless(resident.entry.id, timeout_s):
            return replace(self._of_unloads(()), waits_for=waits_for, refusal=hopeless)
        return replace(self._of_unloads([resident]), waits_for=waits_for)

    def of_bulk_unload(self, residents: Sequence[Resident]) -> Foresight:
        """The same for several models; `waits_for` puts the id of its model before each name."""
        waits = [f"{it.entry.id}/{name}" for it in residents for name in self._waits_for(it)]
        return replace(self._of_unloads(residents), waits_for=tuple(waits))

    def of_load(self, call: LoadCall) -> Foresight:
        """What a load would wait for, evict, load and unload."""
        known = [] if call.resident is None else [call.resident]
        try:
            plan = self._plan(call)
        except AntiphonError as refusal:
            plan = Foresight(needed_bytes=self._needed_bytes(call), refusal=refusal)
        return replace(
            plan,
            waits_for=tuple(name for it in known for name in self._waits_for(it)),
            free_bytes=self._ports.memory.available_bytes(),
            estimate_s=_together(self._longest_wait_s(known), self._load_s(call) if plan.loads else 0.0),
        )

    def _of_unloads(self, residents: Sequence[Resident]) -> Foresight:
        return Foresight(
            unloads=tuple(it.entry.id for it in residents if self._will_be_loaded(it)),
            free_bytes=self._ports.memory.available_bytes(),
            estimate_s=self._longest_wait_s(residents),
        )

    def _waits_for(self, resident: Resident) -> list[str]:
        """What a barrier that entered now would wait for: every lease that is out, and the last of the queue."""
        view = self._desk.view(resident.entry.id)
        names = ["lease:exclusive" if it.slot is None else f"lease:{it.slot}" for it in view.leases]
        return [*names, f"waiter:{view.waiting}"] if view.waiting else names

    def _will_be_loaded(self, resident: Resident) -> bool:
        """Whether the model is in memory once everything ahead of a barrier that entered now has succeeded."""
        view = self._desk.view(resident.entry.id, limit=sys.maxsize)
        ahead = [lease.operation for lease in view.leases] + [waiter.operation for waiter in view.queue]
        return ahead[-1] in _LOADING if ahead else resident.pool is not None

    def _plan(self, call: LoadCall) -> Foresight:
        """What a load would do once it has its lease; raises what refuses it before anything changes."""
        resident, spec = call.resident, call.spec
        needed_bytes = self._needed_bytes(call)
        loaded = resident is not None and self._will_be_loaded(resident)
        course = self._registrar.course(resident, spec, call.capability, call.strategy, loaded=loaded)
        if course is Course.BESIDE:  # it queues when the second pool is built, so its wait is not known yet
            return Foresight(loads=(spec.id,), unloads=(spec.id,), needed_bytes=needed_bytes)
        if resident is not None and (hopeless := self._desk.hopeless(spec.id, call.timeout_s)):
            raise hopeless
        if course is Course.KEEP:
            return Foresight()
        if course is Course.LOAD and resident is not None and spec == resident.entry.registration.spec:
            with slots_at_fault() if call.registers else nullcontext():
                self._residents.require_loadable(resident)
        evicts, refusal = self._evictions(resident, needed_bytes, course)
        return Foresight(
            evicts=evicts,
            loads=() if refusal else (spec.id,),
            unloads=(spec.id,) if loaded else (),
            needed_bytes=needed_bytes,
            refusal=refusal,
        )

    def _evictions(
        self, newcomer: Resident | None, needed_bytes: int, course: Course
    ) -> tuple[tuple[str, ...], AntiphonError | None]:
        """The idle models that would be evicted, least recently used first, and the refusal if they are too few.

        They make room first, then memory. A model that is replaced keeps its place, and its own memory comes back
        first. Weights that are staged beside the old ones have their memory by the time that others are evicted.
        """
        plan = self._residents.evictions.plan(None if newcomer is None else newcomer.entry)
        idle = [entry for entry in plan.candidates if self._desk.is_idle(entry.id)]
        leaving = plan.excess if course is Course.LOAD else 0
        if leaving > len(idle):
            waits = self._ports.limits.residency_wait_s > 0
            return tuple(entry.id for entry in idle), None if waits else self._residents.no_room()
        missing_bytes = 0 if course is Course.STAGE else self._residents.memory.guard.missing_bytes(needed_bytes)
        missing_bytes -= sum(entry.capability.weight_bytes for entry in idle[:leaving])
        if newcomer is not None and (course is not Course.LOAD or newcomer.pool is not None):
            missing_bytes -= newcomer.entry.capability.weight_bytes
        while missing_bytes > 0 and leaving < len(idle):
            missing_bytes -= idle[leaving].capability.weight_bytes
            leaving += 1
        refusal = self._residents.no_memory() if missing_bytes > 0 else None
        return tuple(entry.id for entry in idle[:leaving]), refusal

    def _needed_bytes(self, call: LoadCall) -> int:
        return self._residents.memory.needed_bytes(call.spec, call.capability)

    def _load_s(self, call: LoadCall) -> float | None:
        """How long the load itself takes; None for what was never loaded."""
        resident = call.resident
        if resident is None or call.spec != resident.entry.registration.spec:
            return None
        return self._desk.run_times(resident.entry.id).mean_load_s

    def _longest_wait_s(self, residents: Sequence[Resident]) -> float | None:
        longest_s = 0.0
        for resident in residents:
            if (wait_s := self._desk.drain_s(resident.entry.id)) is None:
                return None
            longest_s = max(longest_s, wait_s)
        return longest_s


def _together(wait_s: float | None, load_s: float | None) -> float | None:
    return None if wait_s is None or load_s is None else wait_s + load_s
