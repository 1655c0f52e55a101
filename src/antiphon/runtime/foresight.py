"""What a management operation would wait for, evict, load and need, told without doing any of it."""

from collections.abc import Sequence
from dataclasses import replace

from antiphon.runtime.api import Foresight, Strategy
from antiphon.runtime.leases import LeaseDesk
from antiphon.runtime.pool import require_slots
from antiphon.runtime.registration import Registrar, Trial
from antiphon.runtime.resident import Resident
from antiphon.runtime.residents import Residents
from antiphon.runtime.wiring import RuntimePorts
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.spec import Capability, ModelSpec


class Planner:
    """Tells what would happen now; by the time that it is done for real, the world may have moved on."""

    def __init__(self, ports: RuntimePorts, residents: Residents, desk: LeaseDesk, registrar: Registrar) -> None:
        self._ports = ports
        self._residents = residents
        self._desk = desk
        self._registrar = registrar

    def of_unload(self, residents: Sequence[Resident]) -> Foresight:
        """What unloading these models would wait for, and which of them are in memory."""
        waits = [name for resident in residents for name in self._waits_for(resident, prefix=len(residents) > 1)]
        return Foresight(
            waits_for=tuple(waits),
            unloads=tuple(it.entry.id for it in residents if it.pool is not None),
            free_bytes=self._ports.memory.available_bytes(),
            estimate_s=self._longest_wait_s(residents),
        )

    def of_load(
        self, model_id: str, spec: ModelSpec | None, capability: Capability, strategy: Strategy = Strategy.REPLACE
    ) -> Foresight:
        """What loading a model as `spec` would take; None is as it is registered."""
        resident = self._residents.get(model_id)
        known = [] if resident is None else [resident]
        try:
            course = self._course(model_id, spec, capability, strategy)
        except AntiphonError as refusal:
            course = Foresight(needed_bytes=self._needed_bytes(resident, spec, capability), refusal=refusal)
        return replace(
            course,
            waits_for=tuple(name for it in known for name in self._waits_for(it, prefix=False)),
            free_bytes=self._ports.memory.available_bytes(),
            estimate_s=_together(self._longest_wait_s(known), self._load_s(resident, spec) if course.loads else 0.0),
        )

    def _waits_for(self, resident: Resident, *, prefix: bool) -> list[str]:
        """What a barrier that entered now would wait for: every lease that is out, and the last of the queue."""
        view = self._desk.view(resident.entry.id)
        names = ["lease:exclusive" if it.slot is None else f"lease:{it.slot}" for it in view.leases]
        names += [f"waiter:{view.waiting}"] if view.waiting else []
        return [f"{resident.entry.id}/{name}" for name in names] if prefix else names

    def _course(self, model_id: str, spec: ModelSpec | None, capability: Capability, strategy: Strategy) -> Foresight:
        """What a load would do once it has its lease; raises what refuses it before anything changes."""
        resident = self._residents.get(model_id)
        needed_bytes = self._needed_bytes(resident, spec, capability)
        loaded = resident is not None and resident.pool is not None
        trial = Trial.NONE
        if resident is None or spec is None or spec == resident.entry.registration.spec:
            if loaded:
                return Foresight()
            self._require_audited(resident, spec)
        elif loaded and strategy is Strategy.SIDE_BY_SIDE:
            self._residents.evictions.require_room_beside(resident)
            self._registrar.require_audited(spec)
            self._registrar.require_memory_beside(spec, capability)
            return Foresight(loads=(model_id,), unloads=(model_id,), needed_bytes=needed_bytes)
        else:
            trial = self._registrar.trial(resident, spec, capability)
        evicts, refusal = self._evictions(resident, needed_bytes, trial)
        return Foresight(
            evicts=evicts,
            loads=() if refusal else (model_id,),
            unloads=(model_id,) if loaded else (),
            needed_bytes=needed_bytes,
            refusal=refusal,
        )

    def _require_audited(self, resident: Resident | None, spec: ModelSpec | None) -> None:
        """Raise what a load without a trial would for its slots: whoever names no registration has no field wrong."""
        if spec is not None:
            self._registrar.require_audited(spec)
        elif resident is not None:
            require_slots(resident.entry.registration.spec, resident.max_slots)

    def _evictions(
        self, newcomer: Resident | None, needed_bytes: int, trial: Trial
    ) -> tuple[tuple[str, ...], AntiphonError | None]:
        """The idle models that would leave, least recently used first, and the refusal where they are too few.

        They leave for their places, then for their memory. A model that is loaded has a place, and its own memory
        comes back first; new weights that are tried beside the old ones have theirs when the others are asked.
        """
        plan = self._residents.evictions.plan(None if newcomer is None else newcomer.entry)
        idle = [entry for entry in plan.candidates if self._desk.is_idle(entry.id)]
        in_place = newcomer is not None and newcomer.pool is not None
        leaving = 0 if in_place else plan.excess
        if leaving > len(idle):
            waits = self._ports.limits.residency_wait_s > 0
            return tuple(entry.id for entry in idle), None if waits else self._residents.no_room()
        missing_bytes = 0 if trial is Trial.WEIGHTS else self._residents.memory.guard.missing_bytes(needed_bytes)
        missing_bytes -= sum(entry.capability.weight_bytes for entry in idle[:leaving])
        if newcomer is not None and in_place:
            missing_bytes -= newcomer.entry.capability.weight_bytes
        while missing_bytes > 0 and leaving < len(idle):
            missing_bytes -= idle[leaving].capability.weight_bytes
            leaving += 1
        refusal = self._residents.no_memory() if missing_bytes > 0 else None
        return tuple(entry.id for entry in idle[:leaving]), refusal

    def _needed_bytes(self, resident: Resident | None, spec: ModelSpec | None, capability: Capability) -> int:
        if spec is None and resident is not None:
            spec = resident.entry.registration.spec
        return capability.weight_bytes if spec is None else self._residents.memory.needed_bytes(spec, capability)

    def _load_s(self, resident: Resident | None, spec: ModelSpec | None) -> float | None:
        """How long the load itself takes; None for what was never loaded."""
        if resident is None or spec not in (None, resident.entry.registration.spec):
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
