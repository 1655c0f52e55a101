"""Requests are entered: their ids, their lines in the log, and what becomes of them, over a small application."""

import asyncio
import logging

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from antiphon.http.envelope import install
from antiphon.http.ledger import RequestLedger
from antiphon.http.presence import PRESENCE, Presence
from antiphon.http.server.exchange import goodbye
from antiphon.observability.counts import Counts
from antiphon.observability.records import CURRENT
from antiphon.vocabulary.errors import ServerBusy

PROBES = ["/health", "/health/ready", "/metrics"]


class Site:
    """An application with a ledger; `asked` are the ids that its routes were called under."""

    def __init__(self, body_bytes=0):
        self.counts = Counts()
        self.ledger = RequestLedger(self.counts, body_bytes)
        self.asked = []
        app = FastAPI(openapi_url=None)
        app.add_api_route("/there/{name}", self._answer, methods=["POST"])
        for probe in PROBES:
            app.add_api_route(probe, self._answer, methods=["POST"])
        app.add_api_route("/busy", self._refuse, methods=["POST"])
        app.add_api_route("/broken", self._break, methods=["POST"])
        app.router.add_websocket_route("/talk", self._talk)
        install(app)
        app.add_middleware(self.ledger.around)
        self.app = app

    async def _answer(self, request: Request) -> PlainTextResponse:
        self.asked.append(CURRENT.get().id)
        return PlainTextResponse(await request.body())

    async def _refuse(self) -> None:
        raise ServerBusy("there are too many")

    async def _break(self) -> None:
        raise RuntimeError

    async def _talk(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                await socket.send_bytes(await socket.receive_bytes())
        except WebSocketDisconnect:
            pass

    def ask(self, path="/there/x", body=b"", headers=(), kind="http", heard=None, **scope):
        """Call it, and give what it sent; `heard` is what it receives, by default the body and then nothing."""
        told = list(heard or [{"type": "http.request", "body": body}])
        sent = []

        async def receive():
            return told.pop(0) if told else await asyncio.Event().wait()

        async def send(message):
            sent.append(message)

        whole = {"type": kind, "path": path, "raw_path": path.encode(), "query_string": b"", "headers": list(headers)}
        if kind == "http":
            whole["method"] = "POST"
        asyncio.run(self.app({**whole, **scope}, receive, send))
        return sent

    def requests(self):
        return {tuple(it.labels.values()): it.value for it in self.counts.http_requests.family().samples}

    def refusals(self):
        return {it.labels["reason"]: it.value for it in self.counts.refusals.family().samples}


def id_in(sent):
    (value,) = [value for name, value in sent[0]["headers"] if name == b"x-request-id"]
    return value.decode()


def named(text):
    return [(b"x-request-id", text)]


@pytest.fixture
def lines(caplog):
    """The fields of the lines that requests left."""
    caplog.set_level(logging.INFO, "antiphon.requests")
    return lambda: [it.fields for it in caplog.records if it.name == "antiphon.requests"]


@pytest.mark.parametrize("name", [b"a", b"7f3c-9", b"Root=1-67891233-abcdef", b"a" * 128, b"0HMVD:0000/1.2_3+4@5"])
def test_a_client_may_name_its_request(name):
    site = Site()
    assert id_in(site.ask(headers=named(name))) == name.decode()
    assert site.asked == [name.decode()]


@pytest.mark.parametrize(
    "name",
    [b"", b" ", b"a b", b"a\r\nset-cookie: x", b"a" * 129, "\u00e9".encode(), b"\xff", b"<x>", b'"', b"-a", b"a\n"],
)
def test_a_name_that_is_not_fit_is_replaced(name):
    assert id_in(Site().ask(headers=named(name))) not in ("", name.decode("latin-1"))


def test_every_request_without_a_name_gets_one_of_its_own():
    site = Site()
    assert id_in(site.ask()) != id_in(site.ask())
    assert id_in(Site().ask()).split("-")[0] != id_in(site.ask()).split("-")[0]


@pytest.mark.parametrize(("path", "status"), [("/busy", 503), ("/broken", 500), ("/nowhere", 404)])
def test_a_refusal_has_the_id_too(path, status):
    sent = Site().ask(path, headers=named(b"mine"))
    assert (sent[0]["status"], id_in(sent)) == (status, "mine")


def test_the_route_is_counted_as_it_is_written_and_not_as_it_was_asked_for():
    site = Site()
    site.ask("/there/one")
    site.ask("/there/two")
    site.ask("/nowhere")
    assert site.requests() == {("/there/{name}", "POST", "200"): 2, ("none", "POST", "404"): 1}


def test_errors_are_counted_by_their_code():
    site = Site()
    for path in ("/busy", "/busy", "/broken", "/nowhere"):
        site.ask(path)
    assert site.refusals() == {"server_busy": 2, "internal_error": 1, "not_found": 1}


def test_a_request_leaves_one_line(lines):
    site = Site()
    site.ask(body=b"12345", headers=named(b"mine"))
    (line,) = lines()
    assert line.pop("duration_ms") >= 0
    assert line == {"status": 200, "route": "/there/{name}", "bytes_in": 5, "bytes_out": 5}


def test_the_line_of_a_refusal_says_which(lines):
    Site().ask("/busy")
    assert (lines()[0]["status"], lines()[0]["error"]) == (503, "server_busy")


@pytest.mark.parametrize("probe", PROBES)
def test_a_probe_leaves_a_line_only_where_all_is_written_down(lines, caplog, probe):
    Site().ask(probe)
    assert lines() == []
    caplog.set_level(logging.DEBUG, "antiphon.requests")
    Site().ask(probe)
    assert [it["route"] for it in lines()] == [probe]


def test_bodies_are_not_in_the_log(lines):
    Site().ask(body=b"what was said")
    assert "what was said" not in str(lines())


def test_bodies_are_in_the_log_where_that_is_wanted_but_not_more_than_that_of_them(lines):
    Site(body_bytes=8).ask(body=b"what was said")
    assert (lines()[0]["body_in"], lines()[0]["body_out"]) == ("what was", "what was")


def test_a_body_that_nobody_can_read_is_not_written_down(lines):
    Site(body_bytes=8).ask(body=b"RIFF\0\0\0\0")
    assert lines()[0]["body_in"] == "(binary)"


def test_headers_and_the_query_are_never_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    secrets = [(b"authorization", b"Bearer the-secret"), (b"cookie", b"the-secret")]
    Site(body_bytes=1000).ask(headers=secrets, query_string=b"api_key=the-secret")
    assert caplog.records
    assert not [it for it in caplog.records if "the-secret" in f"{it.getMessage()} {it.__dict__}"]


def test_a_client_that_has_left_before_the_answer_is_no_error_of_anybodys(lines):
    site, presence = Site(), Presence()
    presence.leave()
    site.ask(**{PRESENCE: presence})
    assert site.requests() == {("/there/{name}", "POST", "499"): 1}
    assert (lines()[0]["status"], lines()[0]["client_gone"]) == (499, True)


def test_an_answer_is_entered_before_its_last_byte_is_sent():
    site = Site()
    seen = []

    async def receive():
        return {"type": "http.request", "body": b"x"}

    async def send(message):
        seen.append((message["type"], len(site.requests())))

    scope = {"type": "http", "method": "POST", "path": "/there/x", "raw_path": b"", "query_string": b"", "headers": []}
    asyncio.run(site.app(scope, receive, send))
    assert seen == [("http.response.start", 0), ("http.response.body", 1)]


TALK = [
    {"type": "websocket.connect"},
    {"type": "websocket.receive", "bytes": b"123"},
    {"type": "websocket.disconnect", "code": 1000},
]


def test_a_websocket_is_one_request_whatever_is_said_in_it(lines):
    site = Site()
    sent = site.ask("/talk", kind="websocket", heard=TALK, headers=named(b"mine"))
    assert (sent[0]["type"], id_in(sent)) == ("websocket.accept", "mine")
    assert site.requests() == {("/talk", "WEBSOCKET", "101"): 1}
    (line,) = lines()
    assert (line["bytes_in"], line["bytes_out"], line["client_gone"]) == (3, 3, True)


def test_a_websocket_that_is_refused_is_answered_as_all_else():
    site = Site()
    extensions = {"websocket.http.response": {}}
    sent = site.ask("/nowhere", kind="websocket", heard=TALK, headers=named(b"mine"), extensions=extensions)
    assert (sent[0]["status"], id_in(sent)) == (404, "mine")
    assert site.requests() == {("none", "WEBSOCKET", "404"): 1}


def test_after_a_request_nothing_is_left_of_it():
    Site().ask()
    assert CURRENT.get() is None


def test_what_a_server_that_stops_answers_is_entered():
    site = Site()
    site.app = goodbye(site.ledger)
    sent = site.ask(headers=named(b"mine"))
    assert (sent[0]["status"], id_in(sent)) == (503, "mine")
    assert (site.requests(), site.refusals()) == ({("none", "POST", "503"): 1}, {"shutting_down": 1})


def test_a_connection_that_is_turned_away_counts_once():
    site = Site()
    ids = {site.ledger.turned_away(503, "server_busy", is_request=it) for it in (True, False)}
    assert len(ids) == 2
    assert (site.requests(), site.refusals()) == ({("none", "other", "503"): 1}, {"server_busy": 2})
