"""The management of models: `/v1/models/load` and `unload`, the bulk unloads, and what a model is registered as."""

from collections.abc import Sequence

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.config import written_fields
from antiphon.http.answers import BulkUnloaded, Foreseen, ForeseenBulk, LoadedAnswer, RegistrationAnswer, UnloadedAnswer
from antiphon.http.bodies import read_json
from antiphon.http.document import NOT_FOUND, UNSUPPORTED_TYPE, managed
from antiphon.http.envelope import refusal_json
from antiphon.http.fields import busy_timeout_ms, called
from antiphon.http.keys import ManagementDoor
from antiphon.http.presence import while_connected
from antiphon.http.routing import get, post
from antiphon.http.schemas import BulkUnloadAllBody, BulkUnloadBody, LoadBody, UnloadBody, operation
from antiphon.http.streaming import json_answer
from antiphon.runtime.api import Foresight, MemoryChange, Unloaded
from antiphon.service.models import ModelService

_BODY_BYTES = 1024 * 1024

_BULK = managed(BulkUnloaded | ForeseenBulk, errors=(UNSUPPORTED_TYPE,))


def add_management_routes(router: APIRouter, service: ModelService, door: ManagementDoor) -> None:
    """The routes that change models. Whether they are allowed is said before the body is read."""

    @get(router, "/v1/ui/models/{model_id:path}", managed(RegistrationAnswer, errors=(NOT_FOUND,)))
    async def registration(request: Request, model_id: str) -> Response:
        """What a model is registered as: a body for `/v1/models/load`, which may be changed and sent."""
        door.admit(request)
        with called({"model": "id"}):
            view = service.view(model_id)
        return json_answer(written_fields(view.registration, parallel_jobs=view.slots is not None))

    @post(router, "/v1/models/load", operation(LoadBody) | managed(LoadedAnswer | Foreseen))
    async def load(request: Request) -> Response:
        """Register a model or replace its registration, and load it.

        `busy_timeout_ms` in the query is this call's own wait; in the body it is configuration.
        """
        door.admit(request)
        body = await read_json(request, LoadBody, _BODY_BYTES, require_json=True)
        fields = body.model_extra or {}
        with called({"model": "id"}):
            if body.dry_run:
                foresight = await service.foresee_load(body.id, fields, busy_timeout_ms(request), body.strategy)
                return json_answer(foresight_json(foresight))
            view = await service.load(body.id, fields, busy_timeout_ms(request), body.strategy)
        return json_answer({"id": view.registration.spec.id, "loaded": view.loaded})

    @post(router, "/v1/models/unload", operation(UnloadBody) | managed(UnloadedAnswer | Foreseen))
    async def unload(request: Request) -> Response:
        """Unload a model after all earlier work on it; with `force`, that work is stopped."""
        door.admit(request)
        body = await read_json(request, UnloadBody, _BODY_BYTES, require_json=True)
        with called({"model": "id"}):
            if body.dry_run:
                return json_answer(foresight_json(service.foresee_unload(body.id, busy_timeout_ms(request))))
            view, change = await service.unload(body.id, busy_timeout_ms(request), force=body.force)
        return json_answer({"id": view.registration.spec.id, "loaded": view.loaded, "memory": _memory_json(change)})

    @post(router, "/v1/tasks/unload_models", operation(BulkUnloadBody, waits=False) | _BULK)
    async def unload_models(request: Request) -> Response:
        """Unload several models, each after the earlier work on it."""
        door.admit(request)
        body = await read_json(request, BulkUnloadBody, _BODY_BYTES, require_json=True)
        return await _unload_many(request, service, body.model_ids, body)

    @post(router, "/v1/tasks/unload_all_models", operation(BulkUnloadAllBody, waits=False) | _BULK)
    async def unload_all_models(request: Request) -> Response:
        """Unload every model that is registered now."""
        door.admit(request)
        body = await read_json(request, BulkUnloadAllBody, _BODY_BYTES, require_json=True)
        return await _unload_many(request, service, None, body)


async def _unload_many(
    request: Request,
    service: ModelService,
    model_ids: Sequence[str] | None,
    body: BulkUnloadBody | BulkUnloadAllBody,
) -> Response:
    if body.dry_run:
        foresight, told = service.foresee_unload_many(model_ids)
        return json_answer({**foresight_json(foresight), **_unloaded_json(told)})
    # A client that leaves cancels the call, which withdraws the barriers that still wait (order.bulk_cancel).
    unloading = service.unload_many(model_ids, force=body.force)
    return json_answer(_unloaded_json(await while_connected(request, unloading)))


def _unloaded_json(told: Unloaded) -> dict[str, object]:
    return {"unloaded": list(told.unloaded), "not_found": list(told.not_found)}


def _memory_json(change: MemoryChange | None) -> dict[str, int | None] | None:
    if change is None:
        return None
    before_bytes, after_bytes = change.before_bytes, change.after_bytes
    return {"before_bytes": before_bytes, "after_bytes": after_bytes, "returned_bytes": change.returned_bytes}


def foresight_json(foresight: Foresight) -> dict[str, object]:
    """A dry run's answer."""
    estimate_s = foresight.estimate_s
    return {
        "dry_run": True,
        "waits_for": list(foresight.waits_for),
        "evicts": list(foresight.evicts),
        "loads": list(foresight.loads),
        "unloads": list(foresight.unloads),
        "memory": {"free_bytes": foresight.free_bytes, "needed_bytes": foresight.needed_bytes},
        "estimate_ms": None if estimate_s is None else round(estimate_s * 1000),
        "refusal": None if foresight.refusal is None else refusal_json(foresight.refusal),
    }
