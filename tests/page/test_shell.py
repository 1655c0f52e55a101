"""The frame of the page: its files, its views, its keys, and what it does without the server."""

import httpx
import pytest
from playwright.sync_api import expect

from accessibility import grave_faults
from browser import stopped_timers, visit
from page_waits import wait_until_live
from server_process import HANG_GUARD_S, running_server

KEY = "a-key"
VIEWS = ["Studio", "Models", "Activity"]
LIGHT, DARK = "rgb(250, 250, 247)", "rgb(20, 23, 26)"
"""The paper of the two themes, as `style/base.css` has it."""


def models(folder):
    (folder / "checkpoint").mkdir(parents=True, exist_ok=True)
    return [{"id": "m", "family": "controlled", "path": str(folder / "checkpoint"), "task": "tts", "lazy": True}]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    with running_server(folder, {"models": models(folder)}, "--parallel-jobs") as it:
        yield it


@pytest.fixture
def locked(tmp_path):
    with running_server(tmp_path, {"models": models(tmp_path), "api_keys": [KEY]}, "--parallel-jobs") as it:
        yield it


def test_the_page_needs_no_key_and_no_other_site(locked):
    with httpx.Client(base_url=locked.url, timeout=HANG_GUARD_S) as client:
        page = client.get("/")
        script = client.get("/page/main.js")
        assert client.get("/v1/models").status_code == 401

    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (script.status_code, script.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "://" not in page.text


def test_a_file_that_the_browser_has_is_not_sent_again(server):
    with httpx.Client(base_url=server.url, timeout=HANG_GUARD_S) as client:
        first = client.get("/page/main.js")
        again = client.get("/page/main.js", headers={"if-none-match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")


def test_a_file_that_is_not_of_the_page_is_not_found(server):
    for path in ("/page/", "/page/none.js", "/page/..%2ffiles.py", "/page/index.html"):
        assert httpx.get(f"{server.url}{path}", timeout=HANG_GUARD_S).json()["error"]["code"] == "not_found"


def test_the_keyboard_reaches_every_view(browser, server):
    with visit(browser, server.url) as page:
        for name in VIEWS:
            page.get_by_role("link", name=name, exact=True).focus()
            page.keyboard.press("Enter")
            expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
            expect(page).to_have_title(f"{name} - antiphon")
            expect(page.locator("main")).to_be_focused()
        page.go_back()
        expect(page.get_by_role("heading", level=1, name=VIEWS[-2])).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_no_view_has_a_grave_fault_of_accessibility(browser, server, scheme, view):
    with visit(browser, f"{server.url}/#/{view.lower()}", color_scheme=scheme) as page:
        expect(page.get_by_role("heading", level=1, name=view)).to_be_visible()
        wait_until_live(page)
        assert grave_faults(page) == []


def test_the_reader_may_choose_dark(browser, server):
    with visit(browser, server.url, color_scheme="light") as page:
        paper = page.locator("html")
        page.get_by_role("button", name="Theme: system").click()
        expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
        expect(paper).to_have_css("background-color", LIGHT)
        page.get_by_role("button", name="Theme: light").click()
        expect(paper).to_have_css("background-color", DARK)
        page.reload()
        expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
        expect(paper).to_have_css("background-color", DARK)


def test_the_page_asks_for_the_key_and_forgets_it_with_the_tab(browser, locked):
    with visit(browser, locked.url) as page:
        dialog = page.get_by_role("dialog", name="Key")
        expect(dialog).to_be_visible()
        assert grave_faults(page) == []
        dialog.get_by_label("API key").fill("wrong")
        with page.expect_response(lambda it: it.request.headers.get("authorization") == "Bearer wrong") as refusal:
            dialog.get_by_role("button", name="Use this key").click()
        assert refusal.value.status == 401
        expect(page.get_by_text("This server wants a key")).to_be_visible()

        page.get_by_role("button", name="Key", exact=True).click()
        dialog.get_by_label("API key").fill(KEY)
        dialog.get_by_role("button", name="Use this key").click()
        wait_until_live(page)
        expect(page.locator(".connection")).to_be_hidden()
        page.reload()
        wait_until_live(page)  # with the key of this tab
        kept = page.context.storage_state()["origins"]
        assert [it for origin in kept for it in origin["localStorage"]] == [
            {"name": "antiphon.theme", "value": "system"}
        ]


def test_a_lost_connection_is_shown_and_recovers(browser, tmp_path):
    config = {"models": models(tmp_path)}
    with running_server(tmp_path / "a", config, "--parallel-jobs") as server:
        port = int(server.url.rpartition(":")[2])
        with visit(browser, server.url, has_clock=True) as page:
            banner = page.locator(".connection")
            wait_until_live(page)
            # It does not try again by itself meanwhile, so the button is there until it is clicked.
            with stopped_timers(page):
                server.stop()
                expect(banner).to_contain_text("The connection to the server is lost.")
                with running_server(tmp_path / "b", {**config, "port": port}, "--parallel-jobs"):
                    banner.get_by_role("button", name="Try now").click()
                    wait_until_live(page)
                    expect(banner).to_be_hidden()


def test_a_lost_connection_is_tried_again_by_itself(browser, tmp_path):
    config = {"models": models(tmp_path)}
    with running_server(tmp_path / "a", config, "--parallel-jobs") as server:
        port = int(server.url.rpartition(":")[2])
        with visit(browser, server.url) as page:
            wait_until_live(page)
            server.stop()
            expect(page.locator(".connection")).to_contain_text("The connection to the server is lost.")
            assert grave_faults(page) == []
            with running_server(tmp_path / "b", {**config, "port": port}, "--parallel-jobs"):
                wait_until_live(page)
