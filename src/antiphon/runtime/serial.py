"""`ServerState`: the runtime without `--parallel-jobs`, one session a model behind a busy guard (rule.default_runtime).

The guard is a gate of one slot, so order, time-outs and the overdue check are the same code as in the other runtime.
"""

from antiphon.runtime.models import ModelRuntime


class ServerState(ModelRuntime):
    """One session a model; it reports neither slots nor queues."""

    parallel = False
