"""What a runtime is wired to, and the limits that it keeps: values only."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from antiphon.admission.gate import Gate
from antiphon.ports.clock import Clock
from antiphon.ports.codec import Codec
from antiphon.ports.host import HostFactory
from antiphon.ports.memory import MemoryMeter
from antiphon.ports.observer import Observer
from antiphon.runtime.api import BoundModel
from antiphon.runtime.audit import audited_slots
from antiphon.runtime.peaks import PeakMemory
from antiphon.vocabulary.spec import Capability, ModelSpec


@dataclass(frozen=True, slots=True)
class ResidencyLimits:
    """What may be in memory. 0 is "no limit" or "never", each time; seconds and bytes."""

    max_loaded_models: int = 0
    idle_unload_s: float = 0.0
    min_free_memory_bytes: int = 0
    residency_wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """How long engines may take where a model does not say: in a run without progress, a load, a teardown.

    `reader_s` is the grace of a stream's reader while others wait for its slot, and `cancel_s` how long an engine may
    go on with a request after it was cancelled. Units: seconds, 0 for no limit.
    """

    run_s: float = 0.0
    load_s: float = 0.0
    teardown_s: float = 0.0
    reader_s: float = 0.0
    cancel_s: float = 0.0


def accept(model: BoundModel) -> None:
    """Refuse nothing."""


@dataclass(frozen=True, slots=True)
class RuntimePorts:
    """What a runtime acts through.

    Units: `busy_timeout_ms` is the server's default wait, 0 without bound. `max_slots_of` is what the audit list
    allows. `check` raises InvalidRequest for a registration that does not fit what the model's files say. `make_gate`
    makes a model's gate from its name and its slots: one that keeps a journal can take its place.
    """

    clock: Clock
    codec: Codec
    observer: Observer
    make_host: HostFactory
    memory: MemoryMeter
    busy_timeout_ms: int
    limits: ResidencyLimits = field(default_factory=ResidencyLimits)
    engine_limits: EngineLimits = field(default_factory=EngineLimits)
    max_slots_of: Callable[[ModelSpec], int] = audited_slots
    check: Callable[[BoundModel], None] = accept
    make_gate: Callable[[str, int], Gate] = Gate
    peaks: PeakMemory = field(default_factory=PeakMemory)
    inspect: Callable[[ModelSpec], Awaitable[Capability]] | None = None
    """Says what a model can do, under limits of its own; None asks a host in a thread."""
