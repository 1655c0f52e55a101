"""`/health`, `/v1/models` and the management of models."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.bodies import read_json
from antiphon.http.fields import busy_timeout_ms
from antiphon.http.routing import post
from antiphon.http.schemas import LoadBody, UnloadBody, operation
from antiphon.http.streaming import json_bytes
from antiphon.runtime.api import ModelView
from antiphon.service.models import ModelService

_MANAGEMENT_BODY_BYTES = 1024 * 1024


def add_model_routes(router: APIRouter, service: ModelService) -> None:
    """The routes about models; none of those that only read waits for a model."""

    @router.get("/health")
    async def health() -> dict[str, object]:
        """Whether the server answers."""
        return {"status": "ok", "models": len(service.views())}

    @router.get("/v1/models")
    async def models() -> Response:
        """All models, in OpenAI's list."""
        return _answer({"object": "list", "data": [model_json(view) for view in service.views()]})

    @router.get("/v1/models/{model_id:path}")
    async def model(model_id: str) -> Response:
        """One model."""
        return _answer(model_json(service.view(model_id)))

    @post(router, "/v1/models/load", operation(LoadBody))
    async def load(request: Request) -> Response:
        """Load a registered model; `busy_timeout_ms` is this call's own wait, and in the body it is configuration."""
        service.require_management()
        body = await read_json(request, LoadBody, _MANAGEMENT_BODY_BYTES, require_json=True)
        view = await service.load(body.id, body.model_extra or {}, busy_timeout_ms(request))
        return _answer({"id": body.id, "loaded": view.loaded})

    @post(router, "/v1/models/unload", operation(UnloadBody))
    async def unload(request: Request) -> Response:
        """Unload a model after all earlier work on it."""
        service.require_management()
        body = await read_json(request, UnloadBody, _MANAGEMENT_BODY_BYTES, require_json=True)
        view = await service.unload(body.id, busy_timeout_ms(request))
        return _answer({"id": body.id, "loaded": view.loaded})


def model_json(view: ModelView) -> dict[str, object]:
    """A model in OpenAI's shape and ours; slots and queues only where the runtime has them (rule.status_fields)."""
    spec = view.registration.spec
    content: dict[str, object] = {
        "id": spec.id,
        "object": "model",
        "created": 0,
        "owned_by": "antiphon",
        "family": spec.family,
        "task": spec.task,
        "mode": spec.mode,
        "loaded": view.loaded,
        "voices": list(view.capability.voices),
        "languages": list(view.capability.languages),
    }
    if view.slots is not None:
        content |= {
            "slots": view.slots,
            "active_slots": view.active_slots,
            "queued_requests": view.queued_requests,
            "max_parallel_slots": view.max_parallel_slots,
        }
    return content


def _answer(content: object) -> Response:
    return Response(json_bytes(content), media_type="application/json")
