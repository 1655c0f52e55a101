"""`GET /`: the web page, `/docs` and `/redoc`, and the files that these consist of.

They hold nothing secret, so no key is asked for, except for the reference. A browser keeps the admin key for this
origin. So no page of it runs a script from elsewhere: its policy forbids that, and the reference's libraries come from
a wheel instead of a content delivery network.
"""

import secrets
from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Router

from antiphon.http.access import PAGE_PREFIX
from antiphon.page.files import INDEX, PageFile, page_files

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "cache-control": "no-cache",  # asked for again each time, and not sent again: a new version is there at once
    "content-security-policy": _POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_REDOC = "reference/redoc.html"
_PATHS = {INDEX: "/", "reference/docs.html": "/docs", _REDOC: "/redoc"}
_LIBRARIES = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "redoc.standalone.js": "text/javascript; charset=utf-8",
}
"""Swagger UI and ReDoc, as the wheel `fastapi-offline` has them. They are read when they are asked for: 2.8 MB."""


def add_page_routes(router: Router) -> None:
    """A route for each file. The OpenAPI document has none of them: it is for programs."""
    for file in page_files():
        path = _PATHS.get(file.name, f"{PAGE_PREFIX}{file.name}")
        send = _sending_with_nonce(file) if file.name == _REDOC else _sending(file)
        router.add_route(path, send, methods=["GET"], include_in_schema=False)
    for name, media_type in _LIBRARIES.items():
        path = f"{PAGE_PREFIX}reference/{name}"
        router.add_route(path, _sending_library(name, media_type), methods=["GET"], include_in_schema=False)


def _sending(file: PageFile) -> Callable[[Request], Awaitable[Response]]:
    headers = {**_HEADERS, "content-type": file.media_type, "etag": f'"{file.digest}"'}

    async def send(request: Request) -> Response:
        if headers["etag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers)

    return send


def _sending_with_nonce(file: PageFile) -> Callable[[Request], Awaitable[Response]]:
    """For a page whose script makes its styles itself: those that bring the page's random number are allowed."""

    async def send(request: Request) -> Response:
        del request
        nonce = secrets.token_urlsafe(16)
        policy = _POLICY.replace("style-src 'self'", f"style-src 'self' 'nonce-{nonce}'")
        headers = {**_HEADERS, "content-security-policy": policy, "content-type": file.media_type}
        return Response(file.content.replace(b"NONCE", nonce.encode()), headers=headers)

    return send


def _sending_library(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    path = str(files("fastapi_offline") / "static" / name)

    async def send(request: Request) -> Response:
        del request
        return FileResponse(path, headers={**_HEADERS, "content-type": media_type})

    return send
