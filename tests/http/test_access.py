"""Who may call: keys, the Host and the Origin on a loopback address, and what pages of other origins may do."""

import asyncio
import json
from socket import gethostname

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from antiphon.http.access import AccessRules, install_access, local_names, network_names
from antiphon.http.envelope import install
from antiphon.http.keys import KeyRing

KEYS = ("first-key", "second-key")
LOCAL = frozenset({"localhost", "mybox"})
PAGE = "https://page.example"
PREFLIGHT = {"origin": PAGE, "access-control-request-method": "POST", "access-control-request-headers": "authorization"}


class Site:
    """An application under some rules; `reached` are the bodies of the requests that its route was called with."""

    def __init__(self, rules):
        self.app = FastAPI(openapi_url=None)
        self.reached = []
        self.app.add_api_route("/there", self._answer, methods=["POST"])
        self.app.add_api_route("/health", self._answer, methods=["GET"])
        self.app.add_api_route("/broken", self._fail, methods=["POST"])
        install(self.app)
        install_access(self.app, rules)

    async def _answer(self, request: Request) -> PlainTextResponse:
        self.reached.append(await request.body())
        return PlainTextResponse("done")

    async def _fail(self) -> None:
        raise RuntimeError

    def ask(self, method="POST", path="/there", headers=(), **options):
        """Send one request; a header that is given twice is sent twice."""

        async def exchange():
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(self.app), base_url="http://localhost"
            ) as client:
                return await client.request(method, path, headers=headers, **options)

        return asyncio.run(exchange())


def key(text):
    return {"authorization": text}


def refused(answer, status, kind):
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == kind
    return True


@pytest.mark.parametrize("sent", ["Bearer first-key", "Bearer second-key", "bearer first-key", "BEARER  second-key "])
def test_each_of_the_keys_is_let_in(sent):
    assert Site(AccessRules(KEYS)).ask(headers=key(sent)).text == "done"


@pytest.mark.parametrize(
    "sent",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", "Bearer first-ke", "Bearer first-keyx", "Bearer First-Key",
     "Basic first-key", "first-key", "Bearer first-key,second-key", "Bearer first-key second-key",
     b"Bearer \xff\xfe", "Bearer " + "x" * 9000],
)  # fmt: skip
def test_without_one_of_the_keys_nothing_is_done(sent):
    site = Site(AccessRules(KEYS))
    answer = site.ask(headers={} if sent is None else key(sent))
    assert refused(answer, 401, "authentication_error")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert site.reached == []
    assert not any(secret in answer.text for secret in KEYS)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/nowhere"), ("GET", "/there"), ("OPTIONS", "/there"), ("GET", "/health/x")]
)
def test_a_stranger_does_not_learn_what_is_there(method, path):
    assert refused(Site(AccessRules(KEYS)).ask(method, path), 401, "authentication_error")


def test_health_is_open():
    assert Site(AccessRules(KEYS)).ask("GET", "/health").status_code == 200


def test_an_admin_key_opens_what_an_ordinary_one_does():
    rules = AccessRules(KEYS, admin_keys=("of-the-admin",))
    assert Site(rules).ask(headers=key("Bearer of-the-admin")).text == "done"
    assert Site(rules).ask(headers=key("Bearer second-key")).text == "done"
    assert refused(Site(rules).ask(headers=key("Bearer wrong")), 401, "authentication_error")


def test_admin_keys_alone_ask_nobody_for_a_key_but_management():
    assert Site(AccessRules(admin_keys=("of-the-admin",))).ask(headers=key("Bearer wrong")).text == "done"


def test_rules_and_key_rings_do_not_show_their_keys():
    rules = AccessRules(KEYS, admin_keys=("of-the-admin",))
    shown = f"{rules!r} {KeyRing(rules.accepted_keys)!r} {Site(rules).app.user_middleware!r}"
    assert not any(secret in shown for secret in rules.accepted_keys)


def test_a_stranger_is_refused_before_a_byte_of_the_body_is_read():
    asked = []

    async def receive():
        asked.append("body")
        return {"type": "http.request", "body": b"x", "more_body": True}

    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/there",
        "raw_path": b"/there",
        "query_string": b"",
        "headers": [],
    }
    asyncio.run(Site(AccessRules(KEYS)).app(scope, receive, send))
    assert sent[0]["status"] == 401
    assert json.loads(sent[1]["body"])["error"]["type"] == "authentication_error"
    assert asked == []


HERE = [
    "localhost", "localhost:8080", "LocalHost:1", "127.0.0.1", "127.0.0.1:8080", "127.8.9.1:80",
    "[::1]", "[::1]:8080", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]:1", "mybox:8080",
]  # fmt: skip
ELSEWHERE = [
    "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1",
    "0.0.0.0:8080", "[::]", "::1", "evil@localhost", "localhost@evil.example", "localhost/evil", "",
    "local host", "[::1", "127.1",
]  # fmt: skip


@pytest.mark.parametrize("host", HERE)
def test_a_name_of_this_machine_is_answered(host):
    assert Site(AccessRules(local_names=LOCAL)).ask(headers={"host": host}).text == "done"


@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_name_that_was_made_to_lead_here_is_refused(host):
    site = Site(AccessRules(local_names=LOCAL))
    assert refused(site.ask(headers={"host": host}), 403, "permission_error")
    assert site.reached == []


def test_a_second_host_does_not_hide_behind_the_first():
    site = Site(AccessRules(local_names=LOCAL))
    assert refused(site.ask(headers=[("host", "localhost"), ("host", "evil.example")]), 403, "permission_error")


IN_THE_NETWORK = [
    *HERE, "10.0.0.1", "0.0.0.0:8080", "[fe80::1]:80", "[fe80::1%25eth0]:80", "nas", "antiphon:8080", "nas.local",
    "NAS.lan:1", "nas.home.arpa", "speech.internal.", "speech.example:443", "mybox",
]  # fmt: skip
OUTSIDE = [
    "evil.example", "evil.example:8080", "localhost.evil.example", "10.0.0.1.evil.example", "evillan.example",
    "speech.example.evil", "x.speech.example", "evil.example.", "evil@nas", "nas/evil", "", "[::1", "na s",
]  # fmt: skip
NETWORK = frozenset({"mybox", "speech.example"})


@pytest.mark.parametrize("host", IN_THE_NETWORK)
def test_without_a_key_a_name_of_the_network_is_answered(host):
    assert Site(AccessRules(network_names=NETWORK)).ask(headers={"host": host}).text == "done"


@pytest.mark.parametrize("host", OUTSIDE)
def test_without_a_key_a_name_that_others_can_have_is_refused(host):
    site = Site(AccessRules(network_names=NETWORK))
    assert refused(site.ask(headers={"host": host}), 403, "permission_error")
    assert site.reached == []


@pytest.mark.parametrize(
    ("page", "host"),
    [("http://10.0.0.1:8080", "10.0.0.1:8080"), ("https://speech.example", "10.0.0.1"), ("http://nas", "nas")],
)
def test_without_a_key_a_page_of_the_server_may_call(page, host):
    assert Site(AccessRules(network_names=NETWORK)).ask(headers={"origin": page, "host": host}).text == "done"


@pytest.mark.parametrize("page", [PAGE, "null", "http://10.0.0.2", "http://other", "http://speech.example.evil"])
def test_without_a_key_a_foreign_page_gets_nothing_done(page):
    site = Site(AccessRules(network_names=NETWORK))
    assert refused(site.ask(headers={"origin": page, "host": "10.0.0.1"}), 403, "permission_error")
    assert site.reached == []


def test_without_a_key_a_listed_page_may_call():
    rules = AccessRules(cors_origins=(PAGE,), network_names=NETWORK)
    assert Site(rules).ask(headers={"origin": PAGE, "host": "10.0.0.1"}).text == "done"


@pytest.mark.parametrize("host", HERE)
def test_a_page_of_this_machine_may_call(host):
    assert Site(AccessRules(local_names=LOCAL)).ask(headers={"origin": f"http://{host}"}).text == "done"


@pytest.mark.parametrize(
    "origin", ["null", PAGE, "http://10.0.0.1", "chrome-extension://abc", "file://", "localhost", "http://localhost/x"]
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/there"), ("GET", "/health"), ("OPTIONS", "/there")])
def test_a_foreign_page_gets_nothing_done(origin, method, path):
    site = Site(AccessRules(local_names=LOCAL))
    answer = site.ask(method, path, headers={"origin": origin})
    assert refused(answer, 403, "permission_error")
    assert "access-control-allow-origin" not in answer.headers
    assert site.reached == []


def test_a_key_does_not_let_a_foreign_page_in():
    site = Site(AccessRules(KEYS, local_names=LOCAL))
    assert refused(site.ask(headers={"origin": PAGE, **key("Bearer first-key")}), 403, "permission_error")


@pytest.mark.parametrize(("origins", "allowed"), [((PAGE,), PAGE), (("*",), "*")])
def test_a_listed_page_may_call_and_read(origins, allowed):
    answer = Site(AccessRules(cors_origins=origins, local_names=LOCAL)).ask(headers={"origin": PAGE})
    assert answer.text == "done"
    assert answer.headers["access-control-allow-origin"] == allowed


def test_by_default_no_page_of_another_origin_may_read():
    site = Site(AccessRules())
    assert "access-control-allow-origin" not in site.ask(headers={"origin": PAGE}).headers
    assert site.ask("OPTIONS", headers=PREFLIGHT).status_code == 405


def test_a_preflight_needs_no_key():
    answer = Site(AccessRules(KEYS, cors_origins=(PAGE,), local_names=LOCAL)).ask("OPTIONS", headers=PREFLIGHT)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-headers"] == "authorization"
    assert "POST" in answer.headers["access-control-allow-methods"]


def test_the_preflight_of_another_page_is_refused_in_the_shape_of_all_errors():
    answer = Site(AccessRules(KEYS, cors_origins=(PAGE,))).ask(
        "OPTIONS", headers={**PREFLIGHT, "origin": "https://other.example"}
    )
    assert refused(answer, 403, "permission_error")
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [("/there", {}, 401), ("/nowhere", key("Bearer first-key"), 404), ("/broken", key("Bearer first-key"), 500)],
)
def test_a_listed_page_can_read_why_it_was_refused(path, headers, status):
    answer = Site(AccessRules(KEYS, cors_origins=(PAGE,))).ask("POST", path, headers={"origin": PAGE, **headers})
    assert answer.status_code == status
    assert answer.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("address", ["127.0.0.1", "127.5.5.5", "::1", "::ffff:127.0.0.1"])
def test_a_loopback_address_has_local_names(address):
    assert local_names("MyBox", address) == {"localhost", "mybox"}


def test_a_server_of_a_network_is_called_as_it_was_told_and_as_its_machine():
    assert network_names("Speech.example") == {"speech.example", gethostname().lower()}


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "nonsense"])
def test_any_other_address_is_reached_from_elsewhere(address):
    assert local_names("localhost", address) is None
