"""The pictures in the README: taken of the page at work, on a server of real engines."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import expect

from antiphon.testing import ControlledCheckpoint
from browser import visit
from conformance_client import eventually
from controlled_server import SPEECH
from installed_models import installed_model
from server_process import running_server

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "screenshots"
PACKAGES = ("piper-en-joe", "whisper-tiny-en", "speaker-turns", "pocketsphinx-align")
HELD = "narrator"
"""A model that stays at work for as long as a picture of it is taken."""

TEXT = "Good morning, and welcome. This sentence is heard while the next one is made."
SIZE = {"width": 1280, "height": 820}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return ControlledCheckpoint(tmp_path_factory.mktemp(HELD))


@pytest.fixture(scope="module")
def server(tmp_path_factory, checkpoint):
    held = {"id": HELD, "family": "controlled", "task": "tts", "path": str(checkpoint.path), "slots": 2, "lazy": True}
    models = [*(installed_model(package, slots=2, lazy=True) for package in PACKAGES), held]
    config = {"models": models, "ui_management": True}
    with running_server(tmp_path_factory.mktemp("server"), config, "--parallel-jobs") as it:
        yield it


@pytest.fixture
def keep(request, tmp_path):
    """Keeps what a page shows as a picture of this name, in the repository if that is asked for."""
    folder = PICTURES if request.config.getoption("--write-screenshots") else tmp_path

    def shoot(page, name):
        page.screenshot(path=folder / f"{name}.png")

    return shoot


def test_speaking(browser, server, keep):
    with visit(browser, server.url, viewport=SIZE, color_scheme="light") as page:
        page.get_by_role("tabpanel", name="Speak").get_by_label("Text").fill(TEXT)
        page.get_by_role("button", name="Speak", exact=True).click()
        spoken = page.locator("antiphon-spoken")
        expect(spoken).to_have_attribute("data-state", "whole")
        page.get_by_role("slider", name="Speech 1").focus()
        page.keyboard.press("ArrowRight")
        keep(page, "speak")


def test_listening(browser, server, client, keep, tmp_path):
    file = tmp_path / "welcome.wav"
    file.write_bytes(client.post(SPEECH, json={"model": "piper-en-joe", "input": TEXT}).content)
    with visit(browser, f"{server.url}/#/studio", viewport=SIZE, color_scheme="light") as page:
        page.get_by_role("tab", name="Listen").click()
        page.get_by_label("Audio file").set_input_files(file)
        page.get_by_label("Who speaks").select_option("speaker-turns")
        page.get_by_role("button", name="Transcribe", exact=True).click()
        expect(page.locator("antiphon-result .word").first).to_be_visible()
        keep(page, "listen")


def test_models_and_activity(browser, server, client, checkpoint, keep):
    with ThreadPoolExecutor(8) as threads, checkpoint.held("run"):
        calls = [threads.submit(speak, client, f"Page {n}.") for n in range(2)]
        for n in range(2):
            checkpoint.wait_for("run", text=f"Page {n}.")
        calls.append(threads.submit(client.post, "/v1/models/unload", json={"id": HELD}))
        waiting(client, 1)
        calls += [threads.submit(speak, client, f"Page {n}.") for n in range(2, 5)]
        waiting(client, 4)
        with visit(browser, f"{server.url}/#/models", viewport=SIZE, color_scheme="light") as page:
            expect(page.locator(f"[data-model={HELD}] .queue > *").first).to_be_visible()
            keep(page, "models")
        with visit(browser, f"{server.url}/#/activity", viewport=SIZE, color_scheme="dark") as page:
            page.get_by_label("Time", exact=True).select_option("1 minute")
            expect(page.locator("[data-tile=waiting] .tile-value")).to_have_text("3")
            keep(page, "activity")
        checkpoint.release("run")
        assert [call.result().status_code for call in calls] == [200] * 6


def test_the_readme_shows_every_picture():
    shown = set(re.findall(r"docs/screenshots/(\w+)\.png", (ROOT / "README.md").read_text(encoding="utf-8")))

    assert shown == {file.stem for file in PICTURES.iterdir()} == {"speak", "listen", "models", "activity"}


def speak(client, text):
    return client.post(SPEECH, json={"model": HELD, "input": text})


def waiting(client, count):
    """Return when so many wait for the held model."""

    def standing():
        return next(it for it in client.get("/v1/status").json()["models"] if it["id"] == HELD)["waiting"]

    eventually(standing, lambda it: it == count, f"{count} in the queue")
