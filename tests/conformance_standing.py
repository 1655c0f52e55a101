"""How a model stands, as `/v1/models` and `/v1/status` tell it: expected and seen, each whole. It starts nothing."""

from collections.abc import Sequence

from conformance_client import eventually
from conformance_server import Model, Server

CAPACITY = 4
"""What a controlled session advertises unless its folder says otherwise."""

Snapshot = dict[str, object]


def standing(
    state: str,
    *,
    slots: int | None,
    leases: Sequence[str] = (),
    queue: Sequence[str] = (),
    mode: str = "offline",
    capacity: int | None = None,
    last_error: str | None = None,
) -> Snapshot:
    """All that the server says of a model, but for its id and what is measured: ages, estimates, memory.

    `slots` None is a server without slots. `leases` and `queue` name operations; the leases of requests are in the
    first slots. `capacity` is that of the published pool: by default a ready model has one, and no other has.
    """
    if state == "ready" and capacity is None:
        capacity = CAPACITY
    requests = list(leases).count("infer")
    held = [f"lease:{slot}" for slot in range(requests)] + ["lease:exclusive"] * (len(leases) - requests)
    counted = {
        "slots": slots,
        "active_slots": requests,
        "queued_requests": list(queue).count("infer"),
        "max_parallel_slots": capacity,
    }
    loaded = capacity is not None
    listed = {"object": "model", "family": "controlled", "task": "tts", "mode": mode, "loaded": loaded}
    if slots is None:
        counted |= {"slots": 1, "max_parallel_slots": None}
    else:
        listed |= counted
    return {
        "listed": listed,
        "status": {"state": state, "loaded": loaded, "waiting": len(queue), "last_error": last_error, **counted},
        "leases": [
            {"slot": slot if operation == "infer" else None, "kind": _kind(operation), "operation": operation}
            for slot, operation in enumerate(leases)
        ],
        "queue": [
            {
                "position": position,
                "kind": _kind(operation),
                "operation": operation,
                "waits_for": [*held, f"waiter:{position - 1}"] if position > 1 else held,
            }
            for position, operation in enumerate(queue, start=1)
        ],
    }


def seen(model: Model) -> Snapshot:
    """How the model stands now, in the shape of `standing`."""
    return _told(model, model.status())


def seen_together(server: Server, *models: Model) -> list[Snapshot]:
    """How several models stand, in one answer of `/v1/status`."""
    statuses = {status["id"]: status for status in server.status()["models"]}
    return [_told(model, statuses[model.id]) for model in models]


def comes_to(model: Model, wanted: Snapshot) -> None:
    """Wait until the model stands so; it must be a standing that stays until the test lets go."""
    eventually(lambda: seen(model), lambda it: it == wanted, f"{model}: {wanted}")


def wait_age(model: Model, kind: str, place: int, age_ms: int) -> None:
    """Wait until the lease or the waiter at this place, of the status's "leases" or "queue", is older than that."""
    eventually(model.status, lambda it: it[kind][place]["age_ms"] > age_ms, f"an age of {age_ms} ms in {kind}")


def last_error(model: Model) -> str:
    """What the server says of the model's last failure; there must have been one."""
    error = model.status()["last_error"]
    assert error
    return error


def _told(model: Model, status: dict[str, object]) -> Snapshot:
    listed = model.listed()
    leases, queue = status.pop("leases"), status.pop("queue")
    assert (listed.pop("id"), status.pop("id")) == (model.id, model.id)
    assert all(it.pop("age_ms") >= 0 for it in [*leases, *queue])
    assert all((it.pop("estimate_ms") or 0) >= 0 for it in queue)
    assert status.pop("resident_bytes") is None or status["loaded"]
    for unsteered in ("created", "owned_by", "aliases", "voices", "languages"):
        listed.pop(unsteered)
    return {"listed": listed, "status": status, "leases": leases, "queue": queue}


def _kind(operation: str) -> str:
    return "request" if operation == "infer" else "management"
