"""`GET /v1/events`: the journal of transitions while it is written, as server-sent events."""

from collections.abc import AsyncGenerator

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.document import answered
from antiphon.http.fields import integer
from antiphon.http.routing import get
from antiphon.http.schemas import in_query
from antiphon.http.streaming import SSE_TYPE, EventResponse, event
from antiphon.observability.journal.entries import line_encoder
from antiphon.observability.journal.follower import Follower, Place, place_of
from antiphon.observability.journal.journal import Journal
from antiphon.ports.clock import Clock
from antiphon.vocabulary.errors import InvalidRequest

_LAST_EVENT_ID = "last-event-id"
_MAX_MODELS = 100

_PARAMETERS = [
    in_query("after", "the id of the last event that was seen; 0 for all that are kept", {"type": "string"}),
    in_query("model", "ids of models, others are left out", {"type": "array", "items": {"type": "string"}}),
    in_query("limit", "end after so many events", {"type": "integer", "minimum": 1, "maximum": 1_000_000}),
    {**in_query("Last-Event-ID", "as `after`; goes before it", {"type": "string"}), "in": "header"},
]
_ANSWER = answered({SSE_TYPE: None}) | {"parameters": _PARAMETERS}


def add_events_route(router: APIRouter, journal: Journal, clock: Clock) -> None:
    """The route; it needs a key where one is set, and never waits on a model."""

    @get(router, "/v1/events", _ANSWER)
    async def events(request: Request) -> Response:
        """What happens to every model, and who caused it, from now on or from an event on."""
        query = request.query_params
        seen = request.headers.get(_LAST_EVENT_ID) or query.get("after") or None
        limit = integer(query.get("limit"), "limit", 1, 1_000_000)
        models = query.getlist("model")
        if len(models) > _MAX_MODELS:
            raise InvalidRequest(f"at most {_MAX_MODELS} models can be named", param="model")
        try:
            place = place_of(journal, seen)
        except ValueError as unknown:
            raise InvalidRequest("after must be the id of an event, or 0", param="after") from unknown
        if request.method == "HEAD":
            return Response(headers={"content-type": SSE_TYPE, "cache-control": "no-cache"})
        follower = Follower(journal, clock, place.after, models)
        return EventResponse(_pieces(journal, follower, place, limit))


async def _pieces(journal: Journal, follower: Follower, place: Place, limit: int | None) -> AsyncGenerator[bytes]:
    """Events in pieces. Each heartbeat has the id of what was read last, also where that was of other models."""
    if place.gap is not None:
        yield event({"type": "gap", "reason": place.gap, "missed": place.missed})
    yield _heartbeat(journal.id_of(follower.after))
    while not follower.ended:
        entries = (await follower.news())[:limit]
        if follower.missed:
            yield event({"type": "dropped", "reason": "too_slow", "missed": follower.missed})
            return
        if entries:
            yield b"".join(_piece(journal.id_of(it.seq), line_encoder.encode(it)) for it in entries)
        else:
            yield _heartbeat(journal.id_of(follower.after))
        if limit is not None:
            limit -= len(entries)
            if limit <= 0:
                return
    yield event({"type": "end", "reason": "shutting_down"})


def _piece(event_id: str, content: bytes) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (event_id.encode(), content)


def _heartbeat(event_id: str) -> bytes:
    """A comment; a client that reconnects goes on from the id."""
    return b": all is well\nid: %s\n\n" % event_id.encode()
