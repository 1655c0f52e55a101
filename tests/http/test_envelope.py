"""Every failure of the HTTP layer is answered in one shape, by one table."""

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from antiphon.http import envelope
from antiphon.vocabulary import errors

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.AntiphonError) and kind is not errors.AntiphonError
]

Endpoint = Callable[[Request], Awaitable[Response]]


def app_of(endpoint: Endpoint) -> FastAPI:
    app = FastAPI(openapi_url=None)
    envelope.install(app)
    app.add_api_route("/there", endpoint, methods=["POST"])
    return app


def raising(error: Exception) -> FastAPI:
    async def endpoint(request: Request) -> Response:
        raise error

    return app_of(endpoint)


def ask(app: FastAPI, method: str = "POST", path: str = "/there", **options: object) -> httpx.Response:
    async def exchange() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.request(method, path, **options)

    return asyncio.run(exchange())


def error_of(response: httpx.Response) -> dict[str, str | None]:
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["message", "type", "param", "code"]
    return body["error"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_domain_error_has_its_own_row(kind):
    assert kind in envelope.TABLE


@pytest.mark.parametrize(
    ("error", "status", "expected"),
    [
        (errors.InvalidRequest("no", param="voice"), 400, ("no", "invalid_request_error", "voice", None)),
        (errors.Forbidden("no"), 403, ("no", "permission_error", None, None)),
        (errors.ModelNotFound("no", param="model"), 404, ("no", "not_found_error", "model", "model_not_found")),
        (errors.TooLarge("no"), 413, ("no", "invalid_request_error", None, "too_large")),
        (errors.UnsupportedMediaType("no"), 415, ("no", "invalid_request_error", None, "unsupported_media_type")),
        (errors.EngineError("no"), 500, ("no", "server_error", None, "engine_error")),
        (errors.LoadFailed("no"), 500, ("no", "server_error", None, "load_failed")),
        (errors.ServerBusy("no"), 503, ("no", "server_error", None, "server_busy")),
        (errors.ShuttingDown("no"), 503, ("no", "server_error", None, "shutting_down")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_a_domain_error_is_answered_as_its_row_says(error, status, expected):
    response = ask(raising(error))
    assert response.status_code == status
    assert tuple(error_of(response).values()) == expected


def test_a_stream_says_an_error_as_an_answer_does():
    error = errors.TooLarge("too long", param="input")
    assert json.loads(envelope.error_response(error).body) == envelope.error_body(error)


def test_a_new_kind_of_a_known_error_is_answered_as_its_parent():
    class NotAVoice(errors.InvalidRequest):
        pass

    assert ask(raising(NotAVoice("no"))).status_code == 400


@pytest.mark.parametrize("kind", [errors.ConfigError, errors.PackageError])
def test_an_error_that_names_files_is_told_to_the_log_alone(kind, caplog):
    response = ask(raising(kind("/etc/antiphon/server.json: bad")))
    assert response.status_code == 500
    assert "/etc" not in response.text
    assert "/etc/antiphon/server.json: bad" in caplog.text


@pytest.mark.parametrize(
    ("retry_after_s", "header"), [(0.0, "1"), (0.2, "1"), (2.0, "2"), (2.1, "3"), (float("inf"), "3600")]
)
def test_a_busy_answer_says_in_whole_seconds_when_to_come_back(retry_after_s, header):
    response = ask(raising(errors.ServerBusy("busy", retry_after_s=retry_after_s)))
    assert response.headers["retry-after"] == header


def test_a_server_that_shuts_down_says_when_to_come_back():
    assert ask(raising(errors.ShuttingDown("bye"))).headers["retry-after"] == "1"


def test_an_error_that_is_no_503_says_nothing_about_coming_back():
    assert "retry-after" not in ask(raising(errors.EngineError("no"))).headers


def test_a_message_may_hold_any_character():
    response = ask(raising(errors.InvalidRequest('a "名" \ud800 \0')))
    assert error_of(response)["message"] == 'a "名" \ud800 \0'


def test_an_unknown_route_is_named():
    response = ask(app_of(answering), "GET", "/v1/nothing")
    assert response.status_code == 404
    assert error_of(response) == {
        "message": "there is no route GET /v1/nothing",
        "type": "not_found_error",
        "param": None,
        "code": "not_found",
    }


def test_an_unknown_route_is_not_quoted_at_length():
    assert len(error_of(ask(app_of(answering), "GET", "/" + "x" * 5000))["message"]) < 300


def test_an_unknown_route_under_a_host_that_cannot_be_parsed_is_a_404():
    assert ask(app_of(answering), "GET", "/v1/nothing", headers={"host": "["}).status_code == 404


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_a_method_that_the_route_does_not_take_is_told_which_it_takes(method):
    response = ask(app_of(answering), method)
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert error_of(response) == {
        "message": "this route takes POST",
        "type": "not_found_error",
        "param": None,
        "code": "method_not_allowed",
    }


def test_head_of_a_route_without_it_is_a_405():
    assert ask(app_of(answering), "HEAD").status_code == 405


def test_a_query_that_fastapi_refuses_is_a_400_that_names_the_parameter():
    app = app_of(answering)

    async def counting(count: int) -> int:
        return count

    app.add_api_route("/count", counting)
    response = ask(app, "GET", "/count", params={"count": "many"})
    assert response.status_code == 400
    assert error_of(response) == {
        "message": "count: input should be a valid integer, unable to parse string as an integer",
        "type": "invalid_request_error",
        "param": "count",
        "code": None,
    }


def test_an_unexpected_exception_is_a_500_that_says_nothing_of_it():
    response = ask(raising(RuntimeError("/secret/path")))
    assert response.status_code == 500
    assert error_of(response) == {
        "message": "internal error",
        "type": "server_error",
        "param": None,
        "code": "internal_error",
    }


def test_an_unexpected_exception_is_logged_once_with_its_traceback(caplog):
    ask(raising(RuntimeError("/secret/path")))
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "/secret/path"


def test_a_broken_invariant_is_an_internal_error():
    assert ask(raising(errors.InvariantError("a lease was released twice"))).json() == envelope.INTERNAL


def test_an_exception_after_the_headers_is_logged_and_leaves_the_answer_unfinished(caplog):
    async def pieces():
        yield b"one"
        raise RuntimeError("the second piece broke")

    async def endpoint(request: Request) -> Response:
        return StreamingResponse(pieces())

    app = app_of(endpoint)
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope_of("/there"), never, send))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[-1]["more_body"] is True
    assert "the second piece broke" in caplog.text


def test_a_client_that_left_is_no_internal_error(caplog):
    assert ask(raising(ClientDisconnect())).status_code == 400
    assert caplog.records == []


async def answering(request: Request) -> Response:
    return PlainTextResponse("here")


async def never():
    await asyncio.Event().wait()


def scope_of(path):
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "scheme": "http",
        "server": ("test", 80),
        "client": ("test", 1),
        "root_path": "",
    }
