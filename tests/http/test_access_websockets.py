"""Who may open a WebSocket: pages name their origin and cannot set a header, so their key is a subprotocol."""

import asyncio
import json

import pytest
from fastapi import FastAPI
from starlette.websockets import WebSocket

from antiphon.http.access import AccessRules, install_access
from antiphon.http.envelope import install

KEYS = ("first-key", "second-key")
LOCAL = frozenset({"localhost", "mybox"})
PAGE = "https://page.example"
PREFIX = "openai-insecure-api-key."


def knock(rules, fields=(), subprotocols=()):
    """Open a WebSocket; returns the status that its client sees and the body of a refusal."""
    app = FastAPI(openapi_url=None)

    async def greet(socket: WebSocket) -> None:
        await socket.accept()

    app.router.add_websocket_route("/there", greet)
    install(app)
    install_access(app, rules)
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "websocket",
        "path": "/there",
        "headers": [(b"host", b"localhost:1"), *fields],
        "query_string": b"",
        "subprotocols": list(subprotocols),
        "extensions": {"websocket.http.response": {}},
    }
    asyncio.run(app(scope, receive, send))
    if sent[0]["type"] == "websocket.accept":
        return 101, None
    assert sent[0]["type"] == "websocket.http.response.start"
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(body)["error"]["type"]


def bearer(key):
    return [(b"authorization", b"Bearer " + key)]


def origin(page, host=None):
    return [(b"origin", page.encode())] if host is None else [(b"origin", page.encode()), (b"host", host.encode())]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_a_header_or_a_subprotocol(key):
    rules = AccessRules(KEYS)
    assert knock(rules, bearer(key.encode())) == (101, None)
    assert knock(rules, subprotocols=["realtime", PREFIX + key, "openai-beta.realtime-v1"]) == (101, None)


def test_an_admin_key_opens_one_too():
    rules = AccessRules(KEYS, admin_keys=("of-the-admin",))
    assert knock(rules, bearer(b"of-the-admin")) == (101, None)
    assert knock(rules, subprotocols=["realtime", PREFIX + "of-the-admin"]) == (101, None)


@pytest.mark.parametrize(
    ("fields", "subprotocols"),
    [((), ()), (bearer(b"wrong"), ()), ((), ["realtime"]), ((), [PREFIX]), ((), [PREFIX + "wrong"]),
     ((), ["first-key"]), ((), [PREFIX + "first-keyx"]), (bearer(b"wrong"), [PREFIX + "first-key"])],
)  # fmt: skip
def test_without_one_of_the_keys_none_is_opened(fields, subprotocols):
    assert knock(AccessRules(KEYS), fields, subprotocols) == (401, "authentication_error")


@pytest.mark.parametrize("page", ["http://localhost", "http://localhost:3000", "https://127.0.0.1", "http://[::1]:8"])
def test_on_loopback_a_page_of_this_machine_opens_one(page):
    assert knock(AccessRules(local_names=LOCAL), origin(page)) == (101, None)


@pytest.mark.parametrize("page", [PAGE, "null", "http://localhost.evil.example", "file://", "", "http://localhost/x"])
def test_on_loopback_a_foreign_page_opens_none(page):
    assert knock(AccessRules(local_names=LOCAL), origin(page)) == (403, "permission_error")


def test_on_loopback_a_name_that_was_made_to_lead_here_opens_none():
    fields = origin("http://evil.example", "evil.example")
    assert knock(AccessRules(local_names=LOCAL), fields) == (403, "permission_error")


@pytest.mark.parametrize("page", [PAGE, "null", "https://speech.example.evil", "https://evil.example", "file://"])
def test_elsewhere_a_page_of_another_site_opens_none(page):
    assert knock(AccessRules(), origin(page, "speech.example")) == (403, "permission_error")


@pytest.mark.parametrize("page", ["https://speech.example", "http://Speech.example"])
def test_elsewhere_a_page_of_the_same_site_opens_one(page):
    assert knock(AccessRules(), origin(page, "speech.example")) == (101, None)


@pytest.mark.parametrize("names", [None, LOCAL])
@pytest.mark.parametrize("origins", [("*",), (PAGE, "null")])
def test_a_page_that_is_listed_opens_one_anywhere(names, origins):
    rules = AccessRules(cors_origins=origins, local_names=names)
    assert knock(rules, origin(PAGE)) == (101, None)
    assert knock(rules, origin("null")) == (101, None)


def test_what_is_no_page_names_no_origin_and_opens_one():
    assert knock(AccessRules()) == (101, None)


def test_a_page_that_is_welcome_needs_a_key_too():
    rules = AccessRules(KEYS, (PAGE,))
    assert knock(rules, origin(PAGE)) == (401, "authentication_error")
    assert knock(rules, origin(PAGE), [PREFIX + "first-key"]) == (101, None)
