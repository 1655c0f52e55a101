"""Addresses under a base URL that ends in a slash: clients that put paths behind one ask for `/v1//audio/speech`."""

from starlette.types import ASGIApp, Receive, Scope, Send

_BASE = "/v1/"
_DOUBLED = "/v1//"


class JoinBaseUrl:
    """ASGI middleware: slashes too many behind `/v1/` are none. It looks at nothing but the path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "")
        if path.startswith(_DOUBLED):
            # Here and not in a copy: whoever is around this reads the route from the same scope.
            scope["path"] = _BASE + path.removeprefix(_BASE).lstrip("/")
        await self._app(scope, receive, send)
