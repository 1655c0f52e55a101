"""`ServerState`: the runtime without `--parallel-jobs`, one session a model behind a busy guard (rule.default_runtime).

The guard is a gate of one slot, so order, time-outs and the overdue check are the same code as in the other runtime.
"""

from antiphon.runtime.models import ModelRuntime
from antiphon.runtime.resident import Resident
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.states import ModelState


class ServerState(ModelRuntime):
    """One session a model; it reports neither slots nor queues."""

    parallel = False

    def _max_slots(self, spec: ModelSpec) -> int:
        del spec
        return 1

    def _unloads_in_bulk(self, resident: Resident) -> bool:
        """A first load that is not published yet is skipped: here, nothing of it is there to be unloaded."""
        return resident.entry.state is not ModelState.LOADING
