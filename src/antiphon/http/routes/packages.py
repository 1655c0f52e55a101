"""`/v1/ui/models_root`: where model packages live."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.bodies import read_json
from antiphon.http.routes.management import foresight_json
from antiphon.http.routing import get, post
from antiphon.http.schemas import ModelsRootBody, operation
from antiphon.http.streaming import json_answer
from antiphon.service.models import ModelService
from antiphon.service.models_root import ModelsRoot

_BODY_BYTES = 64 * 1024


def add_package_routes(router: APIRouter, models: ModelService, root: ModelsRoot) -> None:
    """The routes about packages; all of them are management."""

    @get(router, "/v1/ui/models_root")
    async def models_root() -> Response:
        """The folder of the model packages."""
        models.require_management()
        return _answer(root)

    @post(router, "/v1/ui/models_root", operation(ModelsRootBody, waits=False))
    async def replace_models_root(request: Request) -> Response:
        """Use another folder; what is registered stays as it is."""
        models.require_management()
        body = await read_json(request, ModelsRootBody, _BODY_BYTES, require_json=True)
        if body.dry_run:
            foreseen = root.foresee(body.path)
            return json_answer({**foresight_json(models.foresee_nothing()), "path": str(foreseen)})
        root.replace(body.path)
        return _answer(root)


def _answer(root: ModelsRoot) -> Response:
    return json_answer({"path": str(root.path)})
