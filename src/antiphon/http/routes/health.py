"""`/health` and `/health/ready`: for whoever watches over the server. They wait on no model, and ask for no key."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.answers import Error, Health, NotReady, Ready
from antiphon.http.document import answered, refused
from antiphon.http.envelope import error_body
from antiphon.http.keys import KeyRing
from antiphon.http.routing import get
from antiphon.http.streaming import json_answer
from antiphon.service.models import ModelService
from antiphon.vocabulary.errors import Starting

_READY = {"responses": {**answered(Ready)["responses"], "503": refused(503, NotReady | Error)}}


def add_health_routes(router: APIRouter, service: ModelService, keys: KeyRing) -> None:
    """The two routes; names of models are for callers with one of the keys, if there are any."""

    @get(router, "/health", answered(Health))
    async def health() -> Response:
        """Whether the server answers."""
        return json_answer({"status": "ok", "models": len(service.views())})

    @get(router, "/health/ready", _READY)
    async def ready(request: Request) -> Response:
        """Whether the server has all that it is to have at its start, so that traffic may be sent here."""
        awaited = service.awaited()
        if not awaited:
            return json_answer({"status": "ready"})
        starting = Starting(f"the server is starting; models that are not loaded yet: {len(awaited)}")
        names = awaited if not keys or keys.opens_for(request.scope) else None
        return json_answer({**error_body(starting), "missing": names}, {"retry-after": "1"}, status=503)
