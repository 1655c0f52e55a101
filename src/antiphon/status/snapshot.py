"""What a server says of its models at one moment, as values; how it was asked and how it is shown is not known here."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec


@dataclass(frozen=True, slots=True)
class Lease:
    """Who holds a slot, or with `slot` None the whole model. Units: `age_ms` milliseconds."""

    operation: str
    age_ms: float
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Waiter:
    """One place in a queue; `kind` is "request", or "management" for a barrier. Units: `age_ms` milliseconds."""

    position: int
    kind: str
    operation: str
    age_ms: float


@dataclass(frozen=True, slots=True)
class Model:
    """One model. `waiting` also counts those that `queue` does not list; `task` is "" where nothing told of it.

    `replica` is the one of several servers behind one address that has it so, and "" for one server.
    """

    id: str
    state: str
    slots: int
    leases: tuple[Lease, ...] = ()
    queue: tuple[Waiter, ...] = ()
    waiting: int = 0
    resident_bytes: int | None = None
    last_error: str | None = None
    task: str = ""
    replica: str = ""


@dataclass(frozen=True, slots=True)
class NotServed:
    """An installed model that the server left out at its start, and why."""

    id: str
    error: str
    replica: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All models of a server, in its order, and the installed ones that it does not serve."""

    models: tuple[Model, ...]
    not_served: tuple[NotServed, ...] = ()


@dataclass(frozen=True, slots=True)
class _Named:
    id: str
    task: str


@dataclass(frozen=True, slots=True)
class _Listed:
    data: tuple[_Named, ...]


def snapshot_of(status: bytes, models: bytes) -> Snapshot:
    """Read the answers of `GET /v1/status` and `GET /v1/models`; the second may be a moment older.

    Fields that are not known here are passed over. Raises ValueError for anything else than such answers.
    """
    snapshot = msgspec.json.decode(status, type=Snapshot)
    tasks: Mapping[str, str] = {it.id: it.task for it in msgspec.json.decode(models, type=_Listed).data}
    return replace(snapshot, models=tuple(replace(model, task=tasks.get(model.id, "")) for model in snapshot.models))
