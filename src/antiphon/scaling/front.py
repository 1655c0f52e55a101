"""The front's HTTP application: every route of the server, answered by one replica, by all, or from what all say.

It has no engine and decodes nothing. It looks at keys, pages of other sites and request ids as every server does.
"""

from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router

from antiphon.http.access import AccessRules, install_access
from antiphon.http.base_url import JoinBaseUrl
from antiphon.http.bodies import DrainUnreadBodies
from antiphon.http.envelope import install
from antiphon.http.held_bodies import BodyBudget, HoldBodies
from antiphon.http.ledger import RequestLedger
from antiphon.scaling.changes import Changes
from antiphon.scaling.forwarding import NAMED, Forwarding
from antiphon.scaling.merged import Merged
from antiphon.scaling.sockets import SocketForwarding

Endpoint = Callable[[Request], Awaitable[Response]]

_CHANGES = (
    "/v1/models/load",
    "/v1/models/unload",
    "/v1/tasks/unload_models",
    "/v1/tasks/unload_all_models",
    "/v1/ui/packages/install",
    "/v1/ui/packages/stop",
    "/v1/ui/packages/remove",
    "/v1/ui/models_root",
)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def create_front(
    forwarding: Forwarding,
    sockets: SocketForwarding,
    changes: Changes,
    merged: Merged,
    *,
    access: AccessRules,
    ledger: RequestLedger,
    limit_bytes: int,
    bodies: BodyBudget,
) -> FastAPI:
    """Build the application. Units: `limit_bytes` of a request's body; `bodies` is for all of them together."""
    app = FastAPI(title="antiphon", openapi_url=None, redirect_slashes=False)  # the document is a replica's
    router: Router = app.router
    for path in _CHANGES:
        router.add_route(path, changes.change, ["POST"])
    for path, endpoint in _merged_routes(merged).items():
        router.add_route(path, _unless_named(endpoint, forwarding.forward), ["GET"])  # and HEAD
    router.add_route("/{path:path}", forwarding.forward, list(_METHODS))
    router.add_websocket_route("/{path:path}", sockets.forward)
    install(app)
    app.add_middleware(HoldBodies, budget=bodies)
    app.add_middleware(JoinBaseUrl)
    install_access(app, access)
    app.add_middleware(ledger.around)
    app.add_middleware(DrainUnreadBodies, limit_bytes=limit_bytes)
    return app


def _merged_routes(merged: Merged) -> dict[str, Endpoint]:
    return {
        "/health": merged.health,
        "/health/ready": merged.ready,
        "/metrics": merged.metrics,
        "/v1/audio/models": merged.speaking_models,
        "/v1/events": merged.events,
        "/v1/models": merged.models,
        "/v1/models/{id:path}": merged.model,
        "/v1/status": merged.status,
        "/v1/ui/models_root": merged.agreed,
        "/v1/ui/packages": merged.packages,
        "/v1/ui/packages/{id}/status": merged.agreed,
    }


def _unless_named(endpoint: Endpoint, forward: Endpoint) -> Endpoint:
    """The endpoint, but for a query that names a replica: that one answers."""

    async def answer(request: Request) -> Response:
        return await (forward if NAMED in request.query_params else endpoint)(request)

    return answer
