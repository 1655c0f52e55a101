"""What there is and how it stands: the models and their status. None waits on a model."""

from collections.abc import Iterator, Sequence

from fastapi import APIRouter
from starlette.responses import Response

from antiphon.admission.gate import LeaseView, WaiterView
from antiphon.http.answers import ModelAnswer, ModelList, SpeakingModels, StatusAnswer
from antiphon.http.document import NOT_FOUND, answered
from antiphon.http.routing import get
from antiphon.http.streaming import json_answer
from antiphon.observability.journal.journal import Journal
from antiphon.runtime.api import ModelStatus, ModelView
from antiphon.service.models import ModelService
from antiphon.vocabulary.tasks import Task


def add_model_routes(router: APIRouter, service: ModelService, journal: Journal) -> None:
    """The routes about models that only read."""

    @get(router, "/v1/models", answered(ModelList))
    async def models() -> Response:
        """All models, in OpenAI's list, then their aliases: clients offer what they find there."""
        return json_answer(
            {"object": "list", "data": [model_json(view, name) for view, name in _names(service.views())]}
        )

    @get(router, "/v1/models/{model_id:path}", answered(ModelAnswer, errors=(NOT_FOUND,)))
    async def model(model_id: str) -> Response:
        """One model."""
        return json_answer(model_json(service.view(model_id), model_id))

    @get(router, "/v1/status", answered(StatusAnswer))
    async def status() -> Response:
        """Every model with its leases and its queue, all at one moment: that after the event `last_event_id`."""
        models = [status_json(status) for status in service.status()]
        not_served = [{"id": it.id, "error": it.reason} for it in service.damaged()]
        return json_answer({"models": models, "not_served": not_served, "last_event_id": journal.position})

    @get(router, "/v1/audio/models", answered(SpeakingModels))
    async def speaking_models() -> Response:
        """The models that speak, for programs that let their users choose among those."""
        named = _names(_that_speak(service.views()))
        return json_answer({"object": "list", "models": [model_json(view, name) for view, name in named]})


def _that_speak(views: Sequence[ModelView]) -> Sequence[ModelView]:
    return [view for view in views if view.registration.spec.task is Task.TTS]


def _names(views: Sequence[ModelView]) -> Iterator[tuple[ModelView, str | None]]:
    """Every name that a model has: the ids, then the aliases."""
    yield from ((view, None) for view in views)
    yield from ((view, alias) for view in views for alias in view.registration.aliases)


def model_json(view: ModelView, name: str | None = None) -> dict[str, object]:
    """A model in OpenAI's shape and ours; slots and queues only where the runtime has them (rule.status_fields).

    Under the `name` of an alias it says so in `alias_of`.
    """
    spec = view.registration.spec
    content: dict[str, object] = {
        "id": name or spec.id,
        "object": "model",
        "created": 0,
        "owned_by": "antiphon",
        "family": spec.family,
        "task": spec.task,
        "mode": spec.mode,
        "loaded": view.loaded,
        "aliases": list(view.registration.aliases),
        "voices": list(dict.fromkeys([*view.capability.voices, *view.registration.voice_presets])),
        "languages": list(view.capability.languages),
    }
    if content["id"] != spec.id:
        content["alias_of"] = spec.id
    if view.slots is not None:
        content |= {
            "slots": view.slots,
            "active_slots": view.active_slots,
            "queued_requests": view.queued_requests,
            "max_parallel_slots": view.max_parallel_slots,
        }
    return content


def status_json(status: ModelStatus) -> dict[str, object]:
    """A model's state, leases and queue. Units: milliseconds; `waiting` also counts those not listed."""
    view, gate = status.view, status.gate
    return {
        "id": view.registration.spec.id,
        "state": view.state,
        "loaded": view.loaded,
        "slots": gate.capacity,
        "active_slots": gate.active_slots,
        "queued_requests": gate.queued_requests,
        "max_parallel_slots": view.max_parallel_slots,
        "waiting": gate.waiting,
        "leases": [_lease_json(lease) for lease in gate.leases],
        "queue": [_waiter_json(waiter, wait_s) for waiter, wait_s in zip(gate.queue, status.estimates_s, strict=True)],
        "resident_bytes": status.resident_bytes,
        "last_error": view.last_error,
    }


def _lease_json(lease: LeaseView) -> dict[str, object]:
    return {
        "slot": lease.slot,
        "kind": lease.operation.kind,
        "operation": lease.operation,
        "age_ms": round(lease.age_s * 1000),
    }


def _waiter_json(waiter: WaiterView, wait_s: float | None) -> dict[str, object]:
    return {
        "position": waiter.position,
        "kind": waiter.operation.kind,
        "operation": waiter.operation,
        "age_ms": round(waiter.age_s * 1000),
        "estimate_ms": None if wait_s is None else round(wait_s * 1000),
        "waits_for": list(waiter.waits_for),
    }
