"""Routes whose endpoint reads its request itself: FastAPI documents them and otherwise keeps out of their way."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


def get(
    router: APIRouter, path: str, extra: Mapping[str, Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # as FastAPI types them
    """Decorate the endpoint of a route that only reads: GET, and HEAD, whose body the server leaves out (RFC 9110).

    `extra` is what the OpenAPI document says of its answers and parameters.
    """

    def add(endpoint: Callable[..., Any]) -> Callable[..., Any]:
        # The document must not hold the same operation twice; the second route is for it alone, the first one serves.
        router.add_api_route(path, endpoint, methods=["GET", "HEAD"], include_in_schema=False)
        router.add_api_route(path, endpoint, methods=["GET"], response_class=Response, openapi_extra=dict(extra))
        return endpoint

    return add


def post(
    router: APIRouter, path: str, extra: Mapping[str, Any]
) -> Callable[[Endpoint], Endpoint]:  # OpenAPI's own type
    """Decorate the endpoint of a POST route.

    `extra` is what the OpenAPI document says of its body, parameters and answers.
    """

    def add(endpoint: Endpoint) -> Endpoint:
        router.add_api_route(
            path,
            endpoint,
            methods=["POST"],
            response_class=Response,
            route_class_override=_PlainRoute,
            openapi_extra=dict(extra),
        )
        return endpoint

    return add


class _PlainRoute(APIRoute):
    """Calls the endpoint with the request. Solving no dependencies and parsing no body saves a tenth of a no-op."""

    def get_route_handler(self) -> Endpoint:
        """The endpoint itself."""
        endpoint: Endpoint = self.endpoint
        return endpoint
