"""The one table from what went wrong to what HTTP says of it: status, type and code, in OpenAI's shape of an error.

Everything that raises in the HTTP layer is answered here; nothing else in the project knows a status of an error.
"""

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect
from websockets.frames import CloseCode

from antiphon.http.bodies import invalid_request
from antiphon.observability.records import note_refusal
from antiphon.runtime.shortages import shortage_of
from antiphon.vocabulary import errors

log = logging.getLogger(__name__)

ErrorBody: TypeAlias = dict[str, dict[str, str | None]]

MAX_MESSAGE_CHARS = 1000
"""A message may quote what the client sent, such as the name of a model; more than this of it is cut."""

MAX_PARAM_CHARS = 200
"""The longest name of a field that an error repeats."""

MAX_RETRY_AFTER_S = 3600
"""The longest wait that a busy answer asks for, in seconds."""


@dataclass(frozen=True, slots=True)
class Row:
    """How one kind of error is answered; `message` stands in for an own message that is only fit for the log."""

    status: int
    type: str
    message: str | None = None


TABLE: Mapping[type[errors.AntiphonError], Row] = {
    errors.InvalidRequest: Row(400, "invalid_request_error"),
    errors.ClientLeft: Row(400, "invalid_request_error"),
    errors.RequestTimeout: Row(408, "invalid_request_error"),
    errors.TooLarge: Row(413, "invalid_request_error"),
    errors.UnsupportedMediaType: Row(415, "invalid_request_error"),
    errors.Unauthenticated: Row(401, "authentication_error"),
    errors.Forbidden: Row(403, "permission_error"),
    errors.ModelNotFound: Row(404, "not_found_error"),
    errors.PackageNotFound: Row(404, "not_found_error"),
    errors.ServerBusy: Row(503, "server_error"),
    errors.InsufficientMemory: Row(503, "server_error"),
    errors.OutOfResources: Row(503, "server_error"),
    errors.WorkerDied: Row(503, "server_error"),
    errors.UnsupportedSlots: Row(500, "server_error"),
    errors.ShuttingDown: Row(503, "server_error"),
    errors.Starting: Row(503, "server_error"),
    errors.EngineError: Row(500, "server_error"),
    errors.RunTimeout: Row(504, "server_error"),
    errors.LoadFailed: Row(500, "server_error"),
    errors.PartialChange: Row(500, "server_error"),
    # These name files of the server, for the one who runs it.
    errors.ConfigError: Row(500, "server_error", "the server's configuration cannot be served; its log says why"),
    errors.ListenerBroken: Row(500, "server_error", "a listener broke; the server's log says why"),
    errors.PackageError: Row(500, "server_error", "a model package is not usable; the server's log says why"),
}

INTERNAL: ErrorBody = {
    "error": {"message": "internal error", "type": "server_error", "param": None, "code": "internal_error"}
}


def error_body(error: Exception) -> ErrorBody:
    """The error as JSON says it, in an answer or in a stream's `error` event; a stranger is an "internal error".

    It is noted with the request that is told so.
    """
    note_refusal(reason_of(error))
    return _said(error)


def reason_of(error: Exception) -> str:
    """The error in one word, of which there are few: its code, or its type where it has none."""
    return _reason(_said(error))


def close_code(error: errors.AntiphonError) -> CloseCode:
    """What a WebSocket that is open is closed with after this. Source: RFC 6455, 7.4.1, and IANA's close codes."""
    if isinstance(error, errors.ShuttingDown):
        return CloseCode.GOING_AWAY
    row = _row(error)
    status = 500 if row is None else row.status
    if status == 503:
        return CloseCode.TRY_AGAIN_LATER
    return CloseCode.INTERNAL_ERROR if status >= 500 else CloseCode.POLICY_VIOLATION


def refusal_json(error: errors.AntiphonError) -> dict[str, object]:
    """The error as a dry run foretells it: its status and what it would say."""
    row = _row(error)
    return {"status": 500 if row is None else row.status, **_said(error)["error"]}


def error_response(error: Exception) -> Response:
    """The error as a whole answer; a 503 says when to come back, a 401 (RFC 9110) how to say who one is."""
    row = _row(error)
    if row is None:
        return _answer(500, error_body(error))
    match row.status:
        case 401:
            headers = {"www-authenticate": "Bearer"}
        case 503:
            headers = {"retry-after": str(_retry_after_s(error))}
        case _:
            headers = {}
    return _answer(row.status, error_body(error), headers)


def install(app: FastAPI) -> None:
    """Make every failure of this app an answer in our shape; call it once, before the app serves."""
    app.add_exception_handler(errors.AntiphonError, _on_domain_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)
    app.router.default = _not_found
    app.add_middleware(AnswerInternalErrors)


class AnswerInternalErrors:
    """ASGI middleware: an exception that nothing expected is logged once and answered as a 500.

    Starlette's own layer for this raises again after its answer, and the server then logs a second time. An answer that
    has begun cannot be taken back: returning without its end makes the server close the connection.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        started: str | None = None

        async def send_and_watch(message: Message) -> None:
            nonlocal started
            started = started or message["type"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_watch)
        except WebSocketDisconnect:
            pass  # its client has left, and nothing is wrong
        except Exception as fault:  # noqa: BLE001 (the edge that owns every outcome of a request; it is logged)
            shortage = shortage_of(fault)
            _log_fault(scope, shortage)
            if started is None:
                await error_response(shortage or fault)(scope, receive, send)
            elif started == "websocket.accept":
                code, reason = _farewell(shortage)
                await send({"type": "websocket.close", "code": code, "reason": reason})


def _log_fault(scope: Scope, shortage: errors.OutOfResources | None) -> None:
    """Log the exception that is being handled; a shortage is no fault of the code, and needs no traceback."""
    if shortage is None:
        log.exception("internal error in %s %r", _method(scope), _path(scope))
    else:
        log.error("%s %r: %s", _method(scope), _path(scope), shortage)


def _farewell(shortage: errors.OutOfResources | None) -> tuple[CloseCode, str]:
    return (
        (CloseCode.INTERNAL_ERROR, "internal error") if shortage is None else (close_code(shortage), shortage.message)
    )


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Where no route is: Starlette's own would refuse a WebSocket without a word."""
    del scope, receive, send
    raise HTTPException(404)


async def _on_domain_error(request: Request, exc: Exception) -> Response:
    row = _row(exc)
    if row is not None and row.message is not None:
        log.error("%s %r: %s", _method(request.scope), _path(request.scope), exc)
    return error_response(exc)


async def _on_http_exception(request: Request, exc: Exception) -> Response:
    """Starlette's and FastAPI's own refusals: no such route, a method that it does not take, and the like."""
    assert isinstance(exc, HTTPException)
    headers = dict(exc.headers or {})
    match exc.status_code:
        case 204 | 304:
            return Response(status_code=exc.status_code, headers=headers)
        case 404:
            route = f"{_method(request.scope)} {request.scope['path']}"[:200]
            body = _body(f"there is no route {route}", "not_found_error", None, "not_found")
        case 405:
            headers["Allow"] = allowed = ", ".join(_methods_of(request))
            body = _body(f"this route takes {allowed}", "not_found_error", None, "method_not_allowed")
        case status:
            fault = "server_error" if status >= 500 else "invalid_request_error"
            body = _body(str(exc.detail), fault, None, None)
    note_refusal(_reason(body))
    return _answer(exc.status_code, body, headers)


def _methods_of(request: Request) -> Sequence[str]:
    """What the path takes, by whichever of its routes: Starlette names those of the first."""
    routes = [
        it for it in request.app.routes if isinstance(it, Route) and it.matches(request.scope)[0] is not Match.NONE
    ]
    return sorted({method for route in routes for method in route.methods or ()})


async def _on_validation_error(_request: Request, exc: Exception) -> Response:
    """FastAPI's own findings, about a query mostly: the first part of their place says only where it looked."""
    assert isinstance(exc, RequestValidationError)
    fault = exc.errors()[0]
    place = () if fault["type"] == "json_invalid" else fault["loc"][1:]
    return error_response(invalid_request(place, fault["msg"]))


async def _on_disconnect(_request: Request, _exc: Exception) -> Response:
    """Nobody reads this answer; it exists because every request must have one."""
    note_refusal(errors.ClientLeft.code)
    return _answer(400, _body("the client left before its request had arrived", "invalid_request_error", None, None))


def _method(scope: Scope) -> str:
    """What was asked of the path, which is said of a WebSocket, too."""
    method: str = scope.get("method", "WebSocket")
    return method


def _path(scope: Scope) -> str:
    path: str = scope["path"]
    return path[:MAX_PARAM_CHARS]


def _row(error: Exception) -> Row | None:
    for kind in type(error).__mro__:
        if row := TABLE.get(kind):
            return row
    return None


def _said(error: Exception) -> ErrorBody:
    row = _row(error)
    if row is None or not isinstance(error, errors.AntiphonError):
        return INTERNAL
    return _body(row.message or error.message, row.type, error.param, error.code)


def _reason(body: ErrorBody) -> str:
    said = body["error"]
    return said["code"] or said["type"] or ""


def _body(message: str, kind: str, param: str | None, code: str | None) -> ErrorBody:
    short = message if len(message) <= MAX_MESSAGE_CHARS else f"{message[:MAX_MESSAGE_CHARS]}..."
    return {"error": {"message": short, "type": kind, "param": param and param[:MAX_PARAM_CHARS], "code": code}}


def _answer(status: int, body: ErrorBody, headers: Mapping[str, str] | None = None) -> Response:
    # A lone surrogate can come with a path or a name; backslashreplace writes it as the escape that JSON has for it.
    content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
    return Response(content, status, headers, media_type="application/json")


def _retry_after_s(error: Exception) -> int:
    wait_s = error.retry_after_s if isinstance(error, errors.ServerBusy) else 1.0
    return math.ceil(min(max(1.0, wait_s), MAX_RETRY_AFTER_S))
