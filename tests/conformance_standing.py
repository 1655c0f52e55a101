"""How a model stands, as `GET /v1/status` tells it: seen and expected, whole but for what no test can foresee."""

from collections.abc import Sequence

from conformance_client import Pending, eventually
from conformance_server import Model, Server

CAPACITY = 4
"""What a controlled checkpoint advertises unless a file in it says otherwise."""


def standing(model: Model) -> dict[str, object]:
    """The model in the snapshot, without ages and estimates."""
    return _foreseeable(model.status())


def standings(server: Server, *models: Model) -> list[dict[str, object]]:
    """Several models in one snapshot."""
    seen = {it["id"]: it for it in server.status()["models"]}
    return [_foreseeable(seen[model.id]) for model in models]


def wait_standing(model: Model, wanted: dict[str, object]) -> None:
    """Block until the model stands so; for what no answer announces."""
    eventually(lambda: standing(model), lambda it: it == wanted, f"{wanted}")


def expected(
    model: Model,
    slots: int,
    state: str = "ready",
    *,
    leases: int | str = 0,
    queue: Sequence[str] = (),
    capacity: int | None = CAPACITY,
    published: bool | None = None,
    last_error: str | None = None,
) -> dict[str, object]:
    """What `standing` must be.

    `leases` counts requests in the first slots, or is the operation that has the model alone. `capacity` is what a
    published pool advertises. There is one while the model is ready, unless `published` says otherwise.
    """
    published = state == "ready" if published is None else published
    if isinstance(leases, str):
        held = [{"slot": None, "kind": "management", "operation": leases}]
        names = ["lease:exclusive"]
    else:
        held = [{"slot": slot, "kind": "request", "operation": "infer"} for slot in range(leases)]
        names = [f"lease:{slot}" for slot in range(leases)]
    return {
        "id": model.id,
        "state": state,
        "loaded": published,
        "slots": slots,
        "active_slots": leases if isinstance(leases, int) else 0,
        "queued_requests": list(queue).count("infer"),
        "max_parallel_slots": capacity if published else None,
        "waiting": len(queue),
        "leases": held,
        "queue": [
            {
                "position": position,
                "kind": "request" if operation == "infer" else "management",
                "operation": operation,
                "waits_for": [*names, f"waiter:{position - 1}"] if position > 1 else names,
            }
            for position, operation in enumerate(queue, start=1)
        ],
        "last_error": last_error,
    }


def occupy(model: Model, count: int, name: str = "earlier") -> list[Pending]:
    """Start as many requests, and return once each is in a run; the test holds `run`. Their texts are `NAME 0` ..."""
    calls = [model.infer(f"{name} {number}") for number in range(count)]
    for number in range(count):
        model.checkpoint.wait_for("run", text=f"{name} {number}")
    return calls


def steps(model: Model, *wanted: str) -> list[tuple[str, str | None]]:
    """The events of the first checkpoint, step and text of each, all or those of the steps named."""
    return [(it.step, it.request) for it in model.checkpoint.events() if not wanted or it.step in wanted]


def _foreseeable(status: dict[str, object]) -> dict[str, object]:
    return {
        **status,
        "leases": [_without_times(lease) for lease in status["leases"]],
        "queue": [_without_times(waiter) for waiter in status["queue"]],
    }


def _without_times(item: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in item.items() if name not in {"age_ms", "estimate_ms"}}
