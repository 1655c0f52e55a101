"""`WS /v1/realtime?intent=transcription`: OpenAI's Realtime protocol, for transcription alone."""

from collections.abc import Mapping
from contextlib import suppress

from fastapi import APIRouter
from starlette.requests import ClientDisconnect
from starlette.websockets import WebSocket

from antiphon.http.access import agreed_subprotocol
from antiphon.http.presence import while_present
from antiphon.http.realtime.session import RealtimeSession, require_possible
from antiphon.http.realtime.settings import Settings
from antiphon.service.transcription import TranscriptionService
from antiphon.vocabulary.errors import InvalidRequest

INTENT = "transcription"

_OLD_HEADER = "realtime=v1"
_OLD_SUBPROTOCOL = "openai-beta.realtime-v1"


def add_realtime_routes(router: APIRouter, service: TranscriptionService) -> None:
    """The route of realtime sessions."""

    async def realtime(socket: WebSocket) -> None:
        settings = _settings(socket.query_params)
        require_possible(settings, service)
        await socket.accept(agreed_subprotocol(socket.scope))
        session = RealtimeSession(socket, service, settings, is_old=_is_old(socket))
        with suppress(ClientDisconnect):
            await while_present(socket.scope, session.run())

    router.add_websocket_route("/v1/realtime", realtime)


def _settings(query: Mapping[str, str]) -> Settings:
    intent = query.get("intent", INTENT)
    if intent != INTENT:
        raise InvalidRequest(f"intent must be {INTENT}: there are no other sessions here", param="intent")
    return Settings(model=query.get("model") or None)


def _is_old(socket: WebSocket) -> bool:
    """Whether the client speaks the version before the general one, which it says in one of two ways."""
    return _OLD_HEADER in socket.headers.get("openai-beta", "") or _OLD_SUBPROTOCOL in socket.scope["subprotocols"]
