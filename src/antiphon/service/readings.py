"""Every model as numbers, read from one atomic snapshot of the runtime. It knows nothing of how they are shown."""

from antiphon.ports.reading import ModelReading
from antiphon.runtime.api import ModelStatus, Runtime


def readings(runtime: Runtime) -> list[ModelReading]:
    """Every registered model at this moment, in the order of registration; called on the event loop."""
    return [_reading(status) for status in runtime.status()]


def _reading(status: ModelStatus) -> ModelReading:
    gate = status.gate
    return ModelReading(
        registration=status.view.registration,
        state=status.view.state,
        slots=gate.capacity,
        leases=gate.active_slots,
        managing_leases=len(gate.leases) - gate.active_slots,
        waiting=gate.queued_requests,
        managing_waiting=gate.waiting - gate.queued_requests,
        resident_bytes=status.resident_bytes,
    )
