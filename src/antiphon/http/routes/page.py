"""`GET /`: the web page, and the files that it consists of. They hold nothing secret, so no key is asked for."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router

from antiphon.http.access import PAGE_PREFIX
from antiphon.page.files import INDEX, PageFile, page_files

_HEADERS = {
    "cache-control": "no-cache",  # asked for again each time, and not sent again: a new version is there at once
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def add_page_routes(router: Router) -> None:
    """A route for each file. The OpenAPI document has none of them: it is for programs."""
    for file in page_files():
        path = "/" if file.name == INDEX else f"{PAGE_PREFIX}{file.name}"
        router.add_route(path, _sending(file), methods=["GET"], include_in_schema=False)


def _sending(file: PageFile) -> Callable[[Request], Awaitable[Response]]:
    headers = {**_HEADERS, "content-type": file.media_type, "etag": f'"{file.digest}"'}

    async def send(request: Request) -> Response:
        if headers["etag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers)

    return send
