"""Bodies are received within limits and checked as JSON; a refusal is readable by a client that still sends."""

import asyncio
import json
import socket
import threading
from contextlib import asynccontextmanager
from typing import ClassVar, Literal

import pytest
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, Field, JsonValue, field_validator
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from antiphon.http import envelope
from antiphon.http.bodies import MAX_JSON_VALUES, DrainUnreadBodies, drain, read_bytes, read_json
from antiphon.runtime.aside import LOOP_BYTES
from antiphon.vocabulary.errors import InvalidRequest, TooLarge, UnsupportedMediaType
from server_process import HANG_GUARD_S

MIB = 1024 * 1024


class Held(BaseModel):
    """A body whose reading takes until `go_on` is set."""

    begun: ClassVar[threading.Event] = threading.Event()
    go_on: ClassVar[threading.Event] = threading.Event()
    text: str

    @field_validator("text")
    @classmethod
    def _hold(cls, text: str) -> str:
        cls.begun.set()
        assert cls.go_on.wait(HANG_GUARD_S / 2), "the loop stands still while a body is read"
        return text


class Source(BaseModel):
    path: str


class Speech(BaseModel):
    input: str
    speed: float = Field(default=1.0, ge=0.25, le=4)
    seed: int = 0
    format: Literal["wav", "pcm"] = "wav"
    stream: bool = False
    source: Source | str | None = None
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("input")
    @classmethod
    def _short(cls, text: str) -> str:
        if len(text) > 100:
            raise ValueError(f"too long: {text}")
        return text


def request_of(*pieces: bytes | None, headers: dict[str, str] | None = None) -> Request:
    """A request whose body arrives in these pieces; None is a client that leaves."""
    last = len(pieces) - 1
    messages = iter(
        {"type": "http.disconnect"}
        if piece is None
        else {"type": "http.request", "body": piece, "more_body": at < last}
        for at, piece in enumerate(pieces)
    )

    async def receive():
        return next(messages)

    fields = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": fields}, receive)


def parse(body: bytes, **options: bool) -> Speech:
    return asyncio.run(read_json(request_of(body), Speech, MIB, **options))


def refusal(body: bytes) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parse(body)
    return caught.value


def test_a_body_is_joined_from_its_pieces():
    assert asyncio.run(read_bytes(request_of(b"ab", b"", b"c"), 3)) == b"abc"


def test_a_body_over_the_limit_is_refused():
    with pytest.raises(TooLarge, match="limit of 3 bytes"):
        asyncio.run(read_bytes(request_of(b"ab", b"cd"), 3))


def test_a_declared_length_over_the_limit_is_refused_before_a_byte_is_read():
    async def receive():
        raise AssertionError("the body was read")

    request = Request({"type": "http", "headers": [(b"content-length", b"10000000000")]}, receive)
    with pytest.raises(TooLarge):
        asyncio.run(read_bytes(request, MIB))


@pytest.mark.parametrize("length", ["-1", "", "many", "٣", "1e3", "9" * 5000])
def test_a_length_that_is_no_number_leaves_the_limit_to_the_bytes(length):
    headers = {"content-length": length}
    assert asyncio.run(read_bytes(request_of(b"abc", headers=headers), 3)) == b"abc"
    with pytest.raises(TooLarge):
        asyncio.run(read_bytes(request_of(b"abcd", headers=headers), 3))


def test_a_client_that_leaves_is_no_empty_body():
    with pytest.raises(ClientDisconnect):
        asyncio.run(read_bytes(request_of(b"ab", None), MIB))


def test_a_json_body_becomes_its_model():
    body = json.dumps({"input": "Hello.", "speed": 2, "options": {"a": [1, None]}, "unknown": 1}).encode()
    assert parse(body) == Speech(input="Hello.", speed=2.0, options={"a": [1, None]})


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"input": "a", "input": "b"}', "input"),
        (b'{"input": "a", "input": "a"}', "input"),
        (b'{"input": "a", "unknown": 1, "unknown": 2}', "unknown"),
        (b'{"input": "a", "source": {"path": "x", "path": "y"}}', "source.path"),
        (b'{"input": "a", "options": {"deep": [0, {"key": 1, "other": 2, "key": 3}]}}', "options.deep.1.key"),
        (b'{"input": "a", "inp\\u0075t": "b"}', "input"),
        (b'{"input": "a", "options": {"": 1, "": 2}}', "options."),
        (b'{"input": "a", "options": {"long": "%s"}, "input": "b"}' % (b"x" * LOOP_BYTES), "input"),
    ],
    ids=["top", "equal", "unknown", "nested", "in a list", "escaped", "empty", "large body"],
)
def test_a_key_that_appears_twice_is_refused_and_named(body, param):
    with pytest.raises(InvalidRequest, match="appears more than once in an object") as refused:
        parse(body)
    assert refused.value.param == param


def test_the_same_key_may_appear_in_several_objects():
    assert (
        parse(b'{"input": "a", "source": {"path": "x"}, "options": {"path": [{"path": 1}, {"path": 2}]}}').input == "a"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{'input':",
        b'{"input": "a"} x',
        b'{"input":"a\xff\xfeb"}',
        b"[" * 100_000,
        b'{"input": "a", "unknown": ' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"input": "a", "speed": ' + b"9" * 5000 + b"}",
        '{"input": "a"}'.encode("utf-16"),
    ],
    ids=["empty", "not json", "trailing", "not utf-8", "deep", "deep unknown", "huge number", "utf-16"],
)
def test_what_is_no_json_is_refused(body):
    error = refusal(body)
    assert error.param is None
    assert error.message.startswith("the body: invalid JSON: ")


@pytest.mark.parametrize("place", ["options", "unknown"])
@pytest.mark.parametrize("value", [b"0", b"[]", b"{}"])
def test_a_body_of_very_many_values_is_too_large(place, value):
    many = b",".join([value] * (MAX_JSON_VALUES + 1))
    with pytest.raises(TooLarge, match="more than 200000 JSON values"):
        parse(b'{"input": "a", "%s": {"a": [%s]}}' % (place.encode(), many))


def test_a_body_may_have_many_values():
    many = b",".join([b"0"] * (MAX_JSON_VALUES - 10))
    assert len(parse(b'{"input": "a", "options": {"a": [%s]}}' % many).options["a"]) == MAX_JSON_VALUES - 10


@pytest.mark.parametrize("body", [b"[]", b"null", b"5", b'"text"'])
def test_json_that_is_no_object_is_refused(body):
    assert refusal(body).message == "the body: input should be an object"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ("{}", "input"),
        ('{"input": 5}', "input"),
        ('{"input": null}', "input"),
        ('{"input": "a\\u0000b"}', "input"),
        ('{"input": "a", "speed": "1.5"}', "speed"),
        ('{"input": "a", "speed": true}', "speed"),
        ('{"input": "a", "speed": null}', "speed"),
        ('{"input": "a", "speed": NaN}', "speed"),
        ('{"input": "a", "speed": Infinity}', "speed"),
        ('{"input": "a", "speed": 1e999}', "speed"),
        ('{"input": "a", "speed": 0.24}', "speed"),
        ('{"input": "a", "speed": 4.01}', "speed"),
        ('{"input": "a", "seed": true}', "seed"),
        ('{"input": "a", "seed": 1.5}', "seed"),
        ('{"input": "a", "stream": "true"}', "stream"),
        ('{"input": "a", "format": "WAV"}', "format"),
        ('{"input": "a", "options": []}', "options"),
        ('{"input": "a", "options": {"x": [0, NaN]}}', "options.x.1"),
        ('{"input": "a", "options": {"x": {"y": -Infinity}}}', "options.x.y"),
        ('{"input": "a", "options": {"x": "\\u0000"}}', "options.x"),
        ('{"input": "a", "source": 5}', "source"),
        ('{"input": "a", "source": {}}', "source.path"),
        ('{"input": "a", "source": {"path": 5}}', "source.path"),
        ('{"input": "a", "source": {"path": "a\\u0000b"}}', "source.path"),
    ],
)
def test_a_field_at_fault_is_named(fields, param):
    error = refusal(fields.encode())
    assert error.param == param
    assert error.message.startswith(f"{param}: ")


def test_a_field_with_a_few_values_is_told_which():
    assert refusal(b'{"input": "a", "format": "mp3"}').message == "format: input should be 'wav' or 'pcm'"


def test_a_huge_input_is_not_echoed():
    error = refusal(json.dumps({"input": "x\n" * 50_000}).encode())
    assert error.message.startswith("input: too long: x x")
    assert len(error.message) < 400
    assert "\n" not in error.message


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8", "application/a+json"])
def test_json_by_its_content_type_is_taken_where_that_is_required(content_type):
    request = request_of(b'{"input": "a"}', headers={"content-type": content_type})
    assert asyncio.run(read_json(request, Speech, MIB, require_json=True)).input == "a"


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "text/x+json"])
def test_another_content_type_is_refused_where_json_is_required(content_type):
    request = request_of(b'{"input": "a"}', headers={"content-type": content_type} if content_type else {})
    with pytest.raises(UnsupportedMediaType):
        asyncio.run(read_json(request, Speech, MIB, require_json=True))


def test_a_content_type_is_not_asked_for_elsewhere():
    assert parse(b'{"input": "a"}').input == "a"


def test_draining_ends_with_the_body():
    assert asyncio.run(drain(request_of(b"abc", b"de").receive, 10))


def test_draining_stops_at_its_limit():
    assert not asyncio.run(drain(request_of(b"abc", b"de", b"f").receive, 4))


def test_draining_ends_when_the_client_leaves():
    assert asyncio.run(drain(request_of(b"abc", None).receive, 10))


async def silence():
    await asyncio.Event().wait()


def test_draining_gives_up_on_a_client_that_is_silent():
    assert not asyncio.run(drain(silence, 10, quiet_s=0))


def test_draining_gives_up_on_a_client_that_is_slow_in_all():
    assert not asyncio.run(drain(silence, 10, total_s=0))


def test_a_refusal_of_a_body_that_was_read_is_not_held_back():
    request = request_of(b"abcd", headers={"content-length": "4"})
    sent = []

    async def app(scope, receive, send):
        await read_bytes(Request(scope, receive), MIB)
        await PlainTextResponse("no", 400)(scope, receive, send)

    async def send(message):
        sent.append(message)

    asyncio.run(DrainUnreadBodies(app, MIB)(request.scope, request.receive, send))
    assert [message.get("body") for message in sent] == [None, b"no"]


# From here on: real sockets, because only a kernel resets a connection.


def app_with(limit_bytes: int, **options: float) -> FastAPI:
    """POST /refuse says 400 without reading; POST /read takes up to 1 MiB; POST /ignore says 200 without reading."""
    app = FastAPI(openapi_url=None)
    envelope.install(app)
    app.add_middleware(DrainUnreadBodies, limit_bytes=limit_bytes, **options)

    async def refuse(request: Request) -> Response:
        raise InvalidRequest("no")

    async def read(request: Request) -> Response:
        return PlainTextResponse(str(len(await read_bytes(request, MIB))))

    async def ignore(request: Request) -> Response:
        return PlainTextResponse("fine")

    for endpoint in (refuse, read, ignore):
        app.add_api_route(f"/{endpoint.__name__}", endpoint, methods=["POST"])
    return app


@asynccontextmanager
async def served(app: FastAPI):
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, http="httptools", ws="none", lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        await serving


def converse(address: tuple[str, int], sent: list[bytes]) -> bytes:
    """Send everything first, as most clients do, then read until the server closes."""
    with socket.create_connection(address, timeout=HANG_GUARD_S) as client:
        for piece in sent:
            client.sendall(piece)
        received = bytearray()
        while piece := client.recv(65536):
            received += piece
    return bytes(received)


def exchange(app: FastAPI, *sent: bytes) -> bytes:
    async def run() -> bytes:
        async with served(app) as address:
            return await asyncio.to_thread(converse, address, list(sent))

    return asyncio.run(run())


def head(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: test", *fields, "", ""]).encode()


@pytest.mark.parametrize("connection", ["close", "keep-alive"])
@pytest.mark.parametrize(("path", "status"), [("/refuse", b"400"), ("/read", b"413")])
def test_a_client_that_sends_five_megabytes_can_read_its_refusal(path, status, connection):
    body = bytes(5 * MIB)
    first = head(path, f"Connection: {connection}", f"Content-Length: {len(body)}")
    second = head("/ignore", "Connection: close", "Content-Length: 0")
    answer = exchange(app_with(8 * MIB), first, body, *([second] if connection == "keep-alive" else []))
    assert answer.startswith(b"HTTP/1.1 " + status)
    if connection == "close":
        assert answer.endswith(b"}}")
    else:
        assert answer.endswith(b"\r\n\r\nfine")


def test_a_client_that_sends_chunks_can_read_its_refusal():
    chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    answer = exchange(app_with(8 * MIB), head("/refuse", "Transfer-Encoding: chunked"), *[chunk] * 80, b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"connection: close\r\n" in answer
    assert answer.endswith(b"}}")


def test_a_client_that_claims_more_than_it_sends_is_answered_and_let_go():
    answer = exchange(app_with(MIB, quiet_s=0.01), head("/read", "Content-Length: 10000000000"), b"a little")
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close\r\n" in answer
    assert answer.endswith(b"}}")


def test_a_client_that_holds_its_body_back_is_refused_without_being_asked_for_it():
    answer = exchange(app_with(8 * MIB), head("/refuse", "Content-Length: 5000000", "Expect: 100-continue"))
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"connection: close\r\n" in answer


def test_a_client_that_holds_its_body_back_is_asked_for_it():
    request = head("/read", "Content-Length: 3", "Expect: 100-continue", "Connection: close")
    answer = exchange(app_with(8 * MIB), request, b"abc")
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
    assert answer.endswith(b"\r\n\r\n3")


def test_a_client_that_was_asked_for_its_body_can_read_a_later_refusal():
    chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    request = head("/read", "Transfer-Encoding: chunked", "Expect: 100-continue", "Connection: close")
    answer = exchange(app_with(8 * MIB), request, *[chunk] * 80, b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413")
    assert answer.endswith(b"}}")


def test_a_connection_survives_bodies_that_were_read():
    body = bytes(500_000)
    one = head("/read", f"Content-Length: {len(body)}") + body
    last = head("/ignore", "Content-Length: 0", "Connection: close")
    answer = exchange(app_with(8 * MIB), *[one] * 10, last)
    assert answer.count(b"HTTP/1.1 200") == 11
    assert answer.count(b"500000") == 10


def test_a_refused_small_body_does_not_cost_the_connection():
    refused = head("/refuse", "Content-Length: 3") + b"abc"
    last = head("/ignore", "Content-Length: 0", "Connection: close")
    answer = exchange(app_with(8 * MIB), refused, last)
    assert answer.count(b"HTTP/1.1 400") == 1
    assert answer.count(b"HTTP/1.1 200") == 1


async def read_while_the_loop_goes_on():
    Held.begun.clear()
    Held.go_on.clear()
    reading = asyncio.ensure_future(read_json(request_of(json.dumps({"text": "x" * LOOP_BYTES}).encode()), Held, MIB))
    while not Held.begun.is_set():  # noqa: ASYNC110 (a thread sets it)
        await asyncio.sleep(0)
    assert not reading.done()
    Held.go_on.set()
    return await reading


def test_a_large_body_is_read_beside_the_loop():
    assert len(asyncio.run(read_while_the_loop_goes_on()).text) == LOOP_BYTES


def test_signs_that_may_begin_values_are_counted_throughout_a_large_body():
    body = json.dumps({"input": "x" * MIB + "," * (MAX_JSON_VALUES + 1)}).encode()
    with pytest.raises(TooLarge, match="JSON values"):
        asyncio.run(read_json(request_of(body), Speech, 4 * MIB))
