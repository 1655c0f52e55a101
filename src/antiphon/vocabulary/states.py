"""The states and kinds that the lifecycle is described in; it knows no rule about them."""

from enum import StrEnum


class ModelState(StrEnum):
    """Where one model stands in its lifecycle (contract: states and ownership)."""

    UNLOADED = "unloaded"
    LOADING = "loading"
    READY = "ready"
    RECONFIGURING = "reconfiguring"
    UNLOADING = "unloading"


class ClaimKind(StrEnum):
    """What a waiter or a lease is for: a slot for one request, or the whole model for management."""

    REQUEST = "request"
    MANAGEMENT = "management"


class Operation(StrEnum):
    """The use case behind a claim, as status reports it."""

    INFER = "infer"
    LOAD = "load"
    UNLOAD = "unload"
    BULK_UNLOAD = "bulk_unload"
    EVICT = "evict"

    @property
    def kind(self) -> ClaimKind:
        """Inference shares the model, everything else manages it."""
        return ClaimKind.REQUEST if self is Operation.INFER else ClaimKind.MANAGEMENT


class EvictionCause(StrEnum):
    """Why an idle model was taken out of memory."""

    ROOM = "room"
    """Another is to be loaded, and `max_loaded_models` are."""
    MEMORY = "memory"
    """Another is to be loaded, and there is too little free memory."""
    IDLE = "idle"
    """Nobody has used it for `idle_unload_ms`."""


class Isolation(StrEnum):
    """Where a model's engine runs: in a thread of the server, or in a worker process of its own."""

    THREAD = "thread"
    PROCESS = "process"
