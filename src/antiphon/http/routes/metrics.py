"""`GET /metrics`: the numbers of the server, for Prometheus."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.document import answered
from antiphon.http.routing import get
from antiphon.observability.metrics import Metrics

_ANSWER = answered({"text/plain": None, "application/openmetrics-text": None})


def add_metrics_route(router: APIRouter, metrics: Metrics) -> None:
    """The route; it needs a key where one is set."""

    @get(router, "/metrics", _ANSWER)
    async def exposition(request: Request) -> Response:
        """All numbers of the server at one moment, as Prometheus reads them; OpenMetrics where that is accepted."""
        content, content_type = metrics.exposition(request.headers.get("accept", ""))
        return Response(content, headers={"content-type": content_type})
