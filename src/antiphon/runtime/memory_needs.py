"""What loads need of the memory, and whether it is there; it loads nothing and evicts nobody."""

from contextlib import AbstractContextManager

from antiphon.runtime.footprints import Footprints
from antiphon.runtime.owned import OwnedTasks
from antiphon.runtime.reservations import MemoryGuard
from antiphon.runtime.resident import Resident
from antiphon.runtime.wiring import RuntimePorts
from antiphon.vocabulary.spec import Capability, ModelSpec


class MemoryNeeds:
    """The guard of the free memory, asked by models: `guard` reserves bytes, `sample` learns how many a model takes."""

    def __init__(self, ports: RuntimePorts, tasks: OwnedTasks) -> None:
        self.guard = MemoryGuard(ports.memory, ports.limits.min_free_memory_bytes)
        self._footprints = Footprints(ports.clock, tasks, ports.peaks)

    def needed_bytes(self, spec: ModelSpec, capability: Capability) -> int:
        """How much memory a load will need, about."""
        return self._footprints.needed_bytes(spec, capability)

    def require_at_once(self, spec: ModelSpec, capability: Capability, refusal: str) -> None:
        """Raise what `reserved_at_once` would."""
        self.guard.require_at_once(self.needed_bytes(spec, capability), refusal)

    def reserved_at_once(self, spec: ModelSpec, capability: Capability, refusal: str) -> AbstractContextManager[None]:
        """Reserve the memory of a load that evicts nobody, or raise InsufficientMemory with this message."""
        return self.guard.reserved_at_once(self.needed_bytes(spec, capability), refusal)

    def sample(self, resident: Resident) -> None:
        """Measure what a model takes in memory, soon."""
        self._footprints.sample(resident)
