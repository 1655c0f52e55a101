"""The pane "Listen" with a microphone: captions while somebody speaks, and a recording that outlives them."""

import io

import httpx
import numpy as np
import pytest
import soundfile
import soxr
from playwright.sync_api import expect

from accessibility import grave_faults
from audio_assets import wav_bytes
from browser import chromium, visit
from controlled_server import SPEECH
from engine_server import words_of
from installed_models import installed_model
from page_waits import read_text, wait_until_live
from server_process import HANG_GUARD_S, running_server

pytestmark = pytest.mark.engine

RATE = 16_000
FIRST, SECOND = "The weather is nice today.", "We will walk to the river."
NOTHING_IS_SENT = "Object.defineProperty(WebSocket.prototype, 'bufferedAmount', { get: () => 9 * 2 ** 20 })"
"""As on a line that is far too slow."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    packages = {"piper": "piper-en-joe", "whisper": "whisper-tiny-en"}
    models = [installed_model(package, name, lazy=True) for name, package in packages.items()]
    with running_server(tmp_path_factory.mktemp("server"), {"models": models}, "--parallel-jobs") as it:
        yield it


@pytest.fixture(scope="module")
def browser(server, tmp_path_factory):
    """Chromium with a microphone that hears two sentences, with a pause between them, and then nothing."""
    pieces = [np.zeros(2 * RATE, np.float32)]  # until the page hears
    for text in (FIRST, SECOND):
        answer = httpx.post(f"{server.url}{SPEECH}", json={"model": "piper", "input": text}, timeout=HANG_GUARD_S)
        samples, rate = soundfile.read(io.BytesIO(answer.content), dtype="float32")
        pieces += [soxr.resample(samples, rate, RATE), np.zeros(RATE, np.float32)]
    said = tmp_path_factory.mktemp("said") / "said.wav"
    said.write_bytes(wav_bytes(np.concatenate(pieces), RATE))
    with chromium("--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={said}%noloop") as it:
        yield it


def record(page):
    page.get_by_role("tab", name="Listen").click()
    page.get_by_role("button", name="Record", exact=True).click()


def test_captions_come_while_somebody_speaks_and_the_recording_is_kept(browser, server):
    with visit(browser, server.url, permissions=["microphone"]) as page:
        record(page)
        captions = page.get_by_role("log", name="Live captions")
        expect(captions).to_contain_text("today")
        assert grave_faults(page) == []
        expect(page.get_by_role("button", name="Stop")).to_be_visible()  # so it is while somebody speaks
        expect(captions).to_contain_text("river")
        page.get_by_role("button", name="Stop").click()
        transcript = page.locator("antiphon-result .listen-untimed")
        expect(transcript).to_be_visible()
        assert words_of(read_text(transcript)) == words_of(read_text(captions))
        with page.expect_download() as download:
            page.get_by_role("button", name="Download the recording").click()
        kept = soundfile.info(download.value.path())
        assert (kept.channels, kept.subtype) == (1, "PCM_16")
        assert kept.duration > 3
        expect(page.get_by_role("button", name="Transcribe", exact=True)).to_be_enabled()


def test_captions_that_are_refused_say_why_and_the_recording_goes_on(browser, server):
    with visit(browser, server.url, permissions=["microphone"]) as page:
        page.get_by_role("tab", name="Listen").click()
        page.get_by_label("Language").locator("visible=true").fill("klingon")
        record(page)
        expect(page.get_by_role("alert")).to_contain_text("klingon")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".listen-chosen")).to_contain_text("recording-")
        expect(page.get_by_role("button", name="Record", exact=True)).to_be_visible()


def test_a_connection_that_is_refused_says_why(browser, server):
    by_chromium = ["WebSocket connection to "]
    with visit(browser, server.url, noise=by_chromium, permissions=["microphone"]) as page:
        wait_until_live(page)  # until then the models may be listed anew
        page.get_by_role("tab", name="Listen").click()
        page.locator("antiphon-listen option[value=whisper]").first.evaluate("option => { option.value = 'gone'; }")
        record(page)
        expect(page.get_by_role("alert")).to_contain_text("there is no model 'gone'")


def test_captions_that_would_wait_without_bound_end_with_a_reason(browser, server):
    with visit(browser, server.url, permissions=["microphone"]) as page:
        page.evaluate(NOTHING_IS_SENT)
        record(page)
        expect(page.get_by_role("alert")).to_contain_text("does not take audio as fast as it is spoken")
        expect(page.get_by_role("button", name="Stop")).to_be_visible()


def test_a_microphone_that_is_denied_is_told(browser, server):
    with visit(browser, server.url, permissions=[]) as page:
        record(page)
        expect(page.get_by_role("alert")).to_contain_text("The microphone may not be used")
        expect(page.get_by_role("button", name="Record", exact=True)).to_be_visible()
