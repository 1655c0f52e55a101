"""The reference of the API: pages of our own, without a script, a style or a picture from elsewhere."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from browser import visit
from server_process import HANG_GUARD_S, running_server

PAGES = ["docs", "redoc"]
BLOCKED = ("Applying inline style violates", "Loading the image 'https://cdn.redoc.ly/")
"""What ReDoc would have: the styles of its own scroll bar, before it knows the nonce, and its maker's logo."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    (folder / "checkpoint").mkdir()
    models = [{"id": "m", "family": "controlled", "path": "checkpoint", "task": "tts", "lazy": True}]
    with running_server(folder, {"models": models}) as it:
        yield it


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_shows_the_routes_and_asks_no_other_site(browser, server, name):
    asked: list[str] = []
    with visit(browser, "about:blank", noise=BLOCKED) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{server.url}/{name}")
        expect(page.get_by_text("/v1/audio/speech", exact=True).first).to_be_visible()
    assert f"{server.url}/openapi.json" in asked
    elsewhere = {url for url in asked if not url.startswith((f"{server.url}/", "data:"))}
    assert elsewhere <= {"https://cdn.redoc.ly/redoc/logo-mini.svg"}  # it is announced, and then blocked


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_has_the_policy_of_the_page(client, name):
    reference, page = client.get(f"/{name}"), client.get("/")
    for header in ("referrer-policy", "x-content-type-options"):
        assert reference.headers[header] == page.headers[header]
    policy = re.sub(r" 'nonce-[\w-]{22}'", "", reference.headers["content-security-policy"])
    assert policy == page.headers["content-security-policy"]


def test_a_nonce_is_used_once(client):
    answers = [client.get("/redoc") for _ in range(2)]
    nonces = [
        re.search(r"style-src 'self' 'nonce-([\w-]+)'", it.headers["content-security-policy"])[1] for it in answers
    ]
    assert nonces[0] != nonces[1]
    assert [f'<style nonce="{nonce}">' in it.text for nonce, it in zip(nonces, answers, strict=True)] == [True, True]


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_asks_for_a_key_like_the_document_that_it_shows(tmp_path, name):
    config = {"models": [], "api_keys": ["a-key"]}
    with running_server(tmp_path, config) as locked, httpx.Client(base_url=locked.url, timeout=HANG_GUARD_S) as client:
        assert client.get(f"/{name}").status_code == client.get("/openapi.json").status_code == 401
