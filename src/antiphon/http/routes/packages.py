"""`/v1/ui/packages` and `/v1/ui/models_root`: the model packages, and where they live."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.answers import ForeseenPackage, ForeseenRoot, ModelsRootAnswer, PackageAnswer
from antiphon.http.bodies import read_json
from antiphon.http.document import NOT_FOUND, UNSUPPORTED_TYPE, answered, managed
from antiphon.http.keys import ManagementDoor
from antiphon.http.routes.management import foresight_json
from antiphon.http.routing import get, post
from antiphon.http.schemas import ModelsRootBody, PackageBody, operation
from antiphon.http.streaming import json_answer
from antiphon.service.models import ModelService
from antiphon.service.packages import PackageService, PackageView

_BODY_BYTES = 64 * 1024
_PACKAGES = "/v1/ui/packages"
_ACCEPTED = 202

_INSTALL = operation(PackageBody, waits=False) | managed(ForeseenPackage, description="A dry run.")
_INSTALL["responses"] |= answered(PackageAnswer, status=_ACCEPTED, description="It is begun, or queued.")["responses"]

_REPLACE_ROOT = operation(ModelsRootBody, waits=False) | managed(
    ModelsRootAnswer | ForeseenRoot, errors=(UNSUPPORTED_TYPE,)
)


def add_package_routes(router: APIRouter, models: ModelService, service: PackageService, door: ManagementDoor) -> None:
    """The routes about packages; all of them are management."""

    @get(router, _PACKAGES, managed(list[PackageAnswer], errors=()))
    async def packages(request: Request) -> Response:
        """Every package, and how its install stands."""
        door.admit(request)
        return json_answer([package_json(view) for view in service.packages()])

    @get(router, f"{_PACKAGES}/{{package_id}}/status", managed(PackageAnswer, errors=(NOT_FOUND,)))
    async def status(request: Request, package_id: str) -> Response:
        """One package, and how its install stands."""
        door.admit(request)
        return json_answer(package_json(service.package(package_id)))

    @post(router, f"{_PACKAGES}/install", _INSTALL)
    async def install(request: Request) -> Response:
        """Begin to install a package, or queue it; the answer does not wait for that."""
        door.admit(request)
        body = await read_json(request, PackageBody, _BODY_BYTES, require_json=True)
        if body.dry_run:
            return foreseen(service.foresee_install(body.id))
        return json_answer(package_json(service.install(body.id)), status=_ACCEPTED)

    @post(router, f"{_PACKAGES}/stop", operation(PackageBody, waits=False) | managed(PackageAnswer | ForeseenPackage))
    async def stop(request: Request) -> Response:
        """End an install now; nothing of it is left but what a hub's download can go on with."""
        door.admit(request)
        body = await read_json(request, PackageBody, _BODY_BYTES, require_json=True)
        if body.dry_run:
            return foreseen(service.package(body.id))
        return json_answer(package_json(await service.stop(body.id)))

    @post(router, f"{_PACKAGES}/remove", operation(PackageBody, waits=False) | managed(PackageAnswer | ForeseenPackage))
    async def remove(request: Request) -> Response:
        """Remove an installed package that no model uses."""
        door.admit(request)
        body = await read_json(request, PackageBody, _BODY_BYTES, require_json=True)
        if body.dry_run:
            return foreseen(service.foresee_remove(body.id))
        return json_answer(package_json(await service.remove(body.id)))

    @get(router, "/v1/ui/models_root", managed(ModelsRootAnswer, errors=()))
    async def models_root(request: Request) -> Response:
        """The folder of the model packages."""
        door.admit(request)
        return json_answer({"path": str(service.root)})

    @post(router, "/v1/ui/models_root", _REPLACE_ROOT)
    async def replace_models_root(request: Request) -> Response:
        """Use another folder; what is registered stays as it is."""
        door.admit(request)
        body = await read_json(request, ModelsRootBody, _BODY_BYTES, require_json=True)
        if body.dry_run:
            path = service.foresee_root(body.path)
            return json_answer({**foresight_json(models.foresee_nothing()), "path": str(path)})
        return json_answer({"path": str(service.replace_root(body.path))})

    def foreseen(view: PackageView) -> Response:
        return json_answer({**foresight_json(models.foresee_nothing()), "package": package_json(view)})


def package_json(view: PackageView) -> dict[str, object]:
    """A package. Units: bytes; `progress` from 0 to 1, null where no install is queued or runs."""
    install = view.install
    return {
        "id": view.id,
        "summary": view.summary,
        "family": view.family,
        "task": view.task,
        "mode": view.mode,
        "licence": view.licence,
        "size_bytes": view.size_bytes,
        "download_bytes": view.download_bytes,
        "state": view.state,
        "installed": view.path is not None,
        "path": None if view.path is None else str(view.path),
        "phase": None if install is None else install.phase or "queued",
        "progress": None if install is None else round(install.progress, 4),
        "error": view.error,
    }
