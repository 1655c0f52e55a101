"""`ParallelServerState`: the runtime of `--parallel-jobs`, N slots a model, also at capacity one."""

from dataclasses import replace

from antiphon.residency.registry import Entry
from antiphon.runtime.api import ModelView
from antiphon.runtime.models import ModelRuntime
from antiphon.runtime.resident import Resident
from antiphon.vocabulary.spec import ModelSpec

STARTUP_NOTICE = (
    "--parallel-jobs is experimental. Admission, loading and unloading are exercised with controlled engines on CPU; "
    "the coverage of lifecycles, errors and backends is incomplete. No model may use more than one slot on cuda or "
    "vulkan."
)


class ParallelServerState(ModelRuntime):
    """N slots a model, each with a session of its own over shared weights."""

    parallel = True

    def _max_slots(self, spec: ModelSpec) -> int:
        return self._ports.max_slots_of(spec)

    def _unloads_in_bulk(self, resident: Resident) -> bool:
        """A model that is loading for the first time is waited for, as any other (ops.loading.bulk_unload)."""
        del resident
        return True

    def _view(self, entry: Entry) -> ModelView:
        gate = self._desk.view(entry.id, limit=0)
        return replace(
            super()._view(entry),
            slots=entry.registration.spec.slots,
            active_slots=gate.active_slots,
            queued_requests=gate.queued_requests,
            max_parallel_slots=None if entry.facts is None else entry.facts.capacity,
        )
