"""What a management operation would wait for, evict, load and need, told without doing any of it."""

from collections.abc import Sequence

from antiphon.runtime.api import Foresight
from antiphon.runtime.leases import LeaseDesk
from antiphon.runtime.resident import Resident
from antiphon.runtime.residents import Residents
from antiphon.runtime.wiring import RuntimePorts
from antiphon.vocabulary.spec import Capability, ModelSpec


class Planner:
    """Tells what would happen now; by the time that it is done for real, the world may have moved on."""

    def __init__(self, ports: RuntimePorts, residents: Residents, desk: LeaseDesk) -> None:
        self._ports = ports
        self._residents = residents
        self._desk = desk

    def of_unload(self, residents: Sequence[Resident]) -> Foresight:
        """What unloading these models would wait for, and which of them are in memory."""
        waits = [name for resident in residents for name in self._waits_for(resident, prefix=len(residents) > 1)]
        return Foresight(
            waits_for=tuple(waits),
            unloads=tuple(it.entry.id for it in residents if it.pool is not None),
            free_bytes=self._ports.memory.available_bytes(),
            estimate_s=self._longest_wait_s(residents),
        )

    def of_load(self, model_id: str, spec: ModelSpec | None, capability: Capability) -> Foresight:
        """What loading a model as `spec` would take; None is as it is registered."""
        resident = self._residents.get(model_id)
        known = [] if resident is None else [resident]
        unchanged = resident is not None and spec in (None, resident.entry.registration.spec)
        loaded = resident is not None and resident.pool is not None
        stays = unchanged and loaded
        wanted = spec if resident is None or spec is not None else resident.entry.registration.spec
        needed_bytes = capability.weight_bytes if wanted is None else self._residents.needed_bytes(wanted, capability)
        tried_beside = loaded and spec is not None and spec.slots > 1  # and nobody leaves for that
        return Foresight(
            waits_for=tuple(name for it in known for name in self._waits_for(it, prefix=False)),
            evicts=() if stays or tried_beside else self._evicts(resident, needed_bytes),
            loads=() if stays else (model_id,),
            unloads=(model_id,) if loaded and not stays else (),
            free_bytes=self._ports.memory.available_bytes(),
            needed_bytes=0 if stays else needed_bytes,
            estimate_s=self._longest_wait_s(known),
        )

    def _waits_for(self, resident: Resident, *, prefix: bool) -> list[str]:
        """What a barrier that entered now would wait for: every lease that is out, and the last of the queue."""
        view = self._desk.view(resident.entry.id)
        names = ["lease:exclusive" if it.slot is None else f"lease:{it.slot}" for it in view.leases]
        names += [f"waiter:{view.waiting}"] if view.waiting else []
        return [f"{resident.entry.id}/{name}" for name in names] if prefix else names

    def _evicts(self, newcomer: Resident | None, needed_bytes: int) -> tuple[str, ...]:
        """The idle models that would leave, least recently used first: for their places, then for their memory."""
        plan = self._residents.eviction_plan(None if newcomer is None else newcomer.entry)
        idle = [entry for entry in plan.candidates if self._desk.is_idle(entry.id)]
        leaving = plan.excess
        missing_bytes = self._residents.missing_bytes(needed_bytes)
        missing_bytes -= sum(entry.capability.weight_bytes for entry in idle[:leaving])
        if newcomer is not None and newcomer.pool is not None:
            missing_bytes -= newcomer.entry.capability.weight_bytes
        while missing_bytes > 0 and leaving < len(idle):
            missing_bytes -= idle[leaving].capability.weight_bytes
            leaving += 1
        return tuple(entry.id for entry in idle[:leaving])

    def _longest_wait_s(self, residents: Sequence[Resident]) -> float | None:
        longest_s = 0.0
        for resident in residents:
            if (wait_s := self._desk.drain_s(resident.entry.id)) is None:
                return None
            longest_s = max(longest_s, wait_s)
        return longest_s
