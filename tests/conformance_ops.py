"""Models in the middle of something, and how they stand then, told whole. What must happen next is a test's matter."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from antiphon.testing import ControlledCheckpoint
from antiphon.testing.events import FILE_NAME
from conformance_client import Pending, eventually
from conformance_server import Answer, Model, Server, answer_of

CAPACITY = 4
"""What a controlled session advertises unless its folder says otherwise."""

Standing = dict[str, object]


def standing(
    state: str,
    *,
    slots: int,
    leases: Sequence[str] = (),
    queue: Sequence[str] = (),
    mode: str = "offline",
    capacity: int | None = None,
    last_error: str | None = None,
) -> Standing:
    """All that `/v1/models` and `/v1/status` say of a model, but for its id, ages and estimates.

    `leases` and `queue` name operations; `capacity` is that of the published pool: by default a ready model has one.
    """
    if state == "ready" and capacity is None:
        capacity = CAPACITY
    requests = list(leases).count("infer")
    names = [f"lease:{number}" for number in range(requests)] + ["lease:exclusive"] * (len(leases) - requests)
    counted = {
        "loaded": capacity is not None,
        "slots": slots,
        "active_slots": requests,
        "queued_requests": list(queue).count("infer"),
        "max_parallel_slots": capacity,
    }
    return {
        "listed": {"object": "model", "family": "controlled", "task": "tts", "mode": mode, **counted},
        "status": {"state": state, "waiting": len(queue), "last_error": last_error, **counted},
        "leases": [
            {"slot": number if operation == "infer" else None, "kind": _kind(operation), "operation": operation}
            for number, operation in enumerate(leases)
        ],
        "queue": [
            {
                "position": place,
                "kind": _kind(operation),
                "operation": operation,
                "waits_for": [*names, *([f"waiter:{place - 1}"] if place > 1 else [])],
            }
            for place, operation in enumerate(queue, 1)
        ],
    }


def seen(model: Model) -> Standing:
    """How the model stands now, in the shape of `standing`."""
    listed, status = model.listed(), model.status()
    leases, queue = status.pop("leases"), status.pop("queue")
    assert (listed.pop("id"), status.pop("id")) == (model.id, model.id)
    assert all(it.pop("age_ms") >= 0 for it in [*leases, *queue])
    assert all((it.pop("estimate_ms") or 0) >= 0 for it in queue)
    for unsteered in ("created", "owned_by", "voices", "languages"):
        listed.pop(unsteered)
    return {"listed": listed, "status": status, "leases": leases, "queue": queue}


def comes_to(model: Model, wanted: Standing) -> None:
    """Wait until the model stands so; it must be a standing that stays until the test lets go."""
    eventually(lambda: seen(model), lambda it: it == wanted, f"{model}: {wanted}")


def answers(calls: Sequence[Pending]) -> list[Answer]:
    """What the engine said to each call; all must be 200."""
    return [answer_of(call) for call in calls]


def said(calls: Sequence[Pending]) -> list[tuple[str, str]]:
    """By which revision each call was answered, and its text."""
    return [(it.revision, it.text) for it in answers(calls)]


def refusal(call: Pending) -> tuple[int, str | None, str | None]:
    """Status, code and param of an answer that is an error; a 503 must say when to come back."""
    answer = call.result()
    assert answer.status_code >= 400, answer.text
    assert answer.status_code != 503 or int(answer.headers["retry-after"]) >= 1
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


def first(checkpoint: ControlledCheckpoint, step: str) -> float:
    """When a step was announced for the first time; monotonic seconds, which compare between checkpoints."""
    return checkpoint.events(step)[0].t


def last(checkpoint: ControlledCheckpoint, step: str) -> float:
    """When a step was announced for the last time."""
    return checkpoint.events(step)[-1].t


def last_of_load(slots: int) -> str:
    """The step that ends a load: held there, the weights and a part of the sessions exist, and any check is over."""
    return "clone" if slots > 1 else "open"


def cold_model(server: Server) -> Model:
    """A registered model that is not loaded, and whose log begins now."""
    model = server.new_model(loaded=False)
    (model.checkpoint.path / FILE_NAME).unlink()
    return model


def fill(model: Model, slots: int, *, queued: int = 0) -> tuple[list[Pending], list[str]]:
    """Start as many requests as the idle model has slots, then one after the other those that queue: calls and texts.

    Its runs or its load must be held.
    """
    texts = [f"slot {number}" for number in range(slots)] + [f"queued {number}" for number in range(queued)]
    calls = [model.infer(text) for text in texts[:slots]]
    model.wait_listed(active_slots=slots)
    for place in range(queued):
        calls.append(model.infer(texts[slots + place]))
        model.wait_listed(queued_requests=place + 1)
    return calls, texts


@contextmanager
def occupied_cold(server: Server, slots: int) -> Iterator[tuple[Model, Pending]]:
    """An unloaded model that a registration has to itself; it will be refused and leave the model as it was."""
    model = cold_model(server)
    replacement = model.replacement("v2")
    replacement.set("capacity", "1")
    with replacement.held("load"):
        register = model.register(path=str(replacement.path), slots=max(slots, 2))
        replacement.wait_for("load")
        comes_to(model, standing("unloaded", slots=slots, leases=["load"]))
        yield model, register


@contextmanager
def loading(server: Server, slots: int, *, queued: int = 0) -> Iterator[tuple[Model, list[Pending], list[str]]]:
    """A model whose pool is half built, on behalf of `slots` requests and some that queue."""
    model, step = cold_model(server), last_of_load(slots)
    with model.checkpoint.held(step):
        calls, texts = fill(model, slots, queued=queued)
        model.checkpoint.wait_for(step)
        comes_to(model, standing("loading", slots=slots, leases=["infer"] * slots, queue=["infer"] * queued))
        yield model, calls, texts


@contextmanager
def reconfiguring(server: Server, slots: int) -> Iterator[tuple[Model, ControlledCheckpoint, Pending]]:
    """A model whose replacement, revision `v2`, is committed and half built."""
    model, step = server.new_model(), last_of_load(slots)
    replacement = model.replacement("v2")
    with replacement.held(step):
        register = model.register(path=str(replacement.path))
        replacement.wait_for(step)
        comes_to(model, standing("reconfiguring", slots=slots, leases=["load"]))
        yield model, replacement, register


@contextmanager
def unloading(server: Server, slots: int) -> Iterator[tuple[Model, Pending]]:
    """A model in the middle of its teardown."""
    model = server.new_model()
    with model.checkpoint.held("destroy"):
        unload = model.unload()
        model.checkpoint.wait_for("destroy")
        comes_to(model, standing("unloading", slots=slots, leases=["unload"]))
        yield model, unload


def _kind(operation: str) -> str:
    return "request" if operation == "infer" else "management"
