"""The application called in process: bodies and answers in pieces, both at once, and an end that is joined."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, StreamingResponse

from antiphon.http.live import STOPPING
from antiphon.http.presence import while_connected
from antiphon.listeners.in_process import MAX_PIECES_AHEAD, AppRefusal, InProcessApp
from antiphon.vocabulary.errors import EngineError, InvalidRequest


async def pieces_of(*pieces):
    for piece in pieces:
        yield piece


async def echo(scope, receive, send):
    """Answer each piece of the body at once."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while (message := await receive())["type"] == "http.request" and message["more_body"]:
        await send({"type": "http.response.body", "body": message["body"].upper(), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def turn():
    """Let every task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_request_arrives_as_it_was_made():
    seen = {}

    async def app(scope, receive, send):
        request = Request(scope, receive)
        seen.update(method=request.method, path=scope["path"], query=dict(request.query_params))
        seen.update(headers=dict(request.headers), body=await request.body())
        await JSONResponse({})(scope, receive, send)

    caller = InProcessApp(app, "a key")
    async with caller.call(
        "POST", "/a b", query={"c": "d&e"}, content_type="text/plain", body=pieces_of(b"one", b"two")
    ) as answer:
        assert await answer.read() == b"{}"
    assert seen == {
        "method": "POST",
        "path": "/a b",
        "query": {"c": "d&e"},
        "headers": {"authorization": "Bearer a key", "content-type": "text/plain"},
        "body": b"onetwo",
    }


@pytest.mark.parametrize("event", [None, asyncio.Event()], ids=["nothing", "the stop"])
async def test_a_call_knows_of_the_stop_that_its_caller_knows_of(event):
    async def app(scope, receive, send):
        await JSONResponse(scope.get(STOPPING) is event)(scope, receive, send)

    assert await InProcessApp(app, stopping=event).get("/") == b"true"


async def test_the_answer_to_a_piece_comes_before_the_next_is_sent():
    asked = asyncio.Event()

    async def body():
        yield b"a"
        await asked.wait()
        yield b"b"

    async with InProcessApp(echo).call("POST", "/", body=body()) as answer:
        assert await anext(answer) == b"A"
        asked.set()
        assert [piece async for piece in answer] == [b"B"]


async def test_an_application_waits_for_a_caller_that_takes_nothing():
    given = []

    async def many():
        for number in range(100):
            given.append(number)
            yield b"x"

    async def app(scope, receive, send):
        await StreamingResponse(many())(scope, receive, send)

    async with InProcessApp(app).call("GET", "/") as answer:
        await turn()
        assert len(given) == MAX_PIECES_AHEAD
        assert len(await answer.read()) == 100


async def test_a_body_is_drawn_as_it_is_asked_for():
    drawn = []

    async def body():
        for number in range(100):
            drawn.append(number)
            yield b"x"

    async def app(scope, receive, send):
        await receive()
        await receive()
        await JSONResponse("enough")(scope, receive, send)

    async with InProcessApp(app).call("POST", "/", body=body()) as answer:
        await answer.read()
    assert len(drawn) == 2


async def test_a_caller_that_leaves_is_noticed_and_waited_for():
    told = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            await turn()
            told.append("ended")

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        with pytest.raises(ClientDisconnect):
            await while_connected(Request(scope, receive), work())

    async with InProcessApp(app).call("GET", "/"):
        await turn()
    assert told == ["ended"]


async def test_who_receives_is_told_that_the_caller_has_left():
    told = []

    async def app(scope, receive, send):
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        told.append((await receive())["type"])

    async with InProcessApp(app).call("GET", "/"):
        pass
    assert told == ["http.disconnect"]


async def test_a_cancelled_receive_loses_nothing():
    more = asyncio.Event()

    async def body():
        yield b"one"
        await more.wait()
        yield b"two"

    async def app(scope, receive, send):
        first = await receive()
        waiting = asyncio.ensure_future(receive())
        await turn()
        waiting.cancel()
        await asyncio.wait({waiting})
        more.set()
        second = await receive()
        await JSONResponse([first["body"].decode(), second["body"].decode()])(scope, receive, send)

    async with InProcessApp(app).call("POST", "/", body=body()) as answer:
        assert await answer.read() == b'["one","two"]'


async def test_a_fault_of_the_body_is_the_callers_and_the_application_sees_it_leave():
    async def broken():
        yield b"a"
        raise InvalidRequest("no good")

    told = []

    async def app(scope, receive, send):
        await receive()
        told.append((await receive())["type"])

    with pytest.raises(InvalidRequest, match="no good"):
        async with InProcessApp(app).call("POST", "/", body=broken()):
            pytest.fail("there is no answer")
    assert told == ["http.disconnect"]


async def test_a_body_that_is_not_read_out_ends_with_the_answer():
    ended = []

    async def body():
        try:
            yield b"a"
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def app(scope, receive, send):
        await receive()
        receiving = asyncio.ensure_future(receive())
        await turn()
        receiving.cancel()
        await JSONResponse("early")(scope, receive, send)

    async with InProcessApp(app).call("POST", "/", body=body()) as answer:
        assert await answer.read() == b'"early"'
    assert ended == [True]


async def test_an_error_has_its_message_and_code():
    async def app(scope, receive, send):
        error = {"message": "too late", "type": "server_error", "param": None, "code": "server_busy"}
        await JSONResponse({"error": error}, 503)(scope, receive, send)

    with pytest.raises(AppRefusal, match="too late") as caught:
        await InProcessApp(app).get("/")
    assert (caught.value.status, caught.value.code) == (503, "server_busy")


async def test_an_error_in_another_shape_is_still_one():
    async def app(scope, receive, send):
        await JSONResponse("nonsense", 502)(scope, receive, send)

    with pytest.raises(AppRefusal, match="502"):
        await InProcessApp(app).get("/")


@pytest.mark.parametrize("says", [0, 1, 2], ids=["nothing", "a status", "a part"])
async def test_an_answer_without_its_end_is_an_error(says):
    messages = [
        {"type": "http.response.start", "status": 200, "headers": []},
        {"type": "http.response.body", "body": b"a", "more_body": True},
    ]

    async def app(scope, receive, send):
        for message in messages[:says]:
            await send(message)

    with pytest.raises(EngineError, match="broke off"):
        await InProcessApp(app).get("/")


async def test_an_application_that_raises_is_logged_once(caplog):
    async def app(scope, receive, send):
        raise RuntimeError("made to fail")

    with pytest.raises(EngineError, match="broke off"):
        await InProcessApp(app).get("/")
    assert [record.message for record in caplog.records] == ["the application broke at a call of a listener"]


async def test_the_join_waits_for_a_call_whose_caller_was_cancelled_twice():
    release = asyncio.Event()

    async def app(scope, receive, send):
        await release.wait()

    caller = InProcessApp(app)
    calling = asyncio.ensure_future(caller.get("/"))
    await turn()
    for _ in range(2):
        calling.cancel()
        await turn()
    assert calling.done()
    joining = asyncio.ensure_future(caller.join())
    await turn()
    assert not joining.done()
    release.set()
    await joining
