"""The pane "Listen": a recording becomes a transcript that is read along with it, and what goes wrong is told."""

import base64
import io
import re

import numpy as np
import pytest
import soundfile
import soxr
from playwright.sync_api import expect

from accessibility import grave_faults
from antiphon.testing import ControlledCheckpoint
from audio_assets import wav_bytes
from browser import stopped_timers, visit
from controlled_server import CLIP, SPEECH, TRANSCRIPTIONS
from engine_server import words_of
from installed_models import installed_model
from page_waits import compute, read_attributes, read_text, read_texts, read_until
from server_process import running_server

pytestmark = pytest.mark.engine

RATE = 16_000
FIRST, SECOND = "Good morning, my friend. The weather is nice today.", "In the evening we come home, and cook a meal."
MOST_SECONDS = 30
HAVE_METADATA = 1
"""From this state on, an `<audio>` knows how long it is, and goes to a place at once."""
PACKAGES = {
    "piper": "piper-en-joe",
    "whisper": "whisper-tiny-en",
    "turns": "speaker-turns",
    "aligner": "pocketsphinx-align",
}
PERMISSIONS = ["clipboard-read", "clipboard-write"]
GIVE = """([name, content]) => {
  const given = new DataTransfer();
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  given.items.add(new File([bytes], name));
  document.querySelector("antiphon-listen .listen-status").parentElement.dispatchEvent(EVENT);
}"""
GIVEN = {
    "drop": GIVE.replace("EVENT", "new DragEvent('drop', { dataTransfer: given, bubbles: true })"),
    "paste": GIVE.replace("EVENT", "new ClipboardEvent('paste', { clipboardData: given, bubbles: true })"),
}
"""By the way in which a file is given."""
MARKED = ".word.sounding"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    it = ControlledCheckpoint(tmp_path_factory.mktemp("checkpoint"))
    it.set("run.cancellable")
    return it


@pytest.fixture(scope="module")
def server(tmp_path_factory, checkpoint):
    models = [installed_model(package, name, lazy=True) for name, package in PACKAGES.items()]
    models.append({"id": "held", "family": "controlled", "task": "asr", "path": str(checkpoint.path), "lazy": True})
    mute = ControlledCheckpoint(tmp_path_factory.mktemp("mute"))
    mute.fail("run")
    models.append({"id": "mute", "family": "controlled", "task": "diar", "path": str(mute.path), "lazy": True})
    config = {"models": models, "max_audio_seconds": MOST_SECONDS}
    with running_server(tmp_path_factory.mktemp("server"), config, "--parallel-jobs") as it:
        yield it


@pytest.fixture(scope="module")
def two_voices(client):
    """A talk of two: the second is the first one's voice, a third higher."""

    def spoken(text, pitch):
        answer = client.post(SPEECH, json={"model": "piper", "input": text})
        samples, rate = soundfile.read(io.BytesIO(answer.content), dtype="float32")
        return soxr.resample(samples, rate * pitch, RATE)

    pause = np.zeros(RATE // 2, np.float32)
    return wav_bytes(np.concatenate([spoken(FIRST, 1), pause, spoken(SECOND, 1.35)]), RATE)


@pytest.fixture
def page(browser, server):
    with visit(browser, server.url, permissions=PERMISSIONS) as it:
        it.get_by_role("tab", name="Listen").click()
        yield it


@pytest.fixture(scope="module")
def heard(browser, server, two_voices):
    """A page with the transcript of the talk, for tests that read it and move in it."""
    with visit(browser, server.url, permissions=PERMISSIONS, has_clock=True) as it:
        it.get_by_role("tab", name="Listen").click()
        it.get_by_label("Audio file").set_input_files(a_file("talk.wav", two_voices))
        it.get_by_label("Who speaks").select_option("turns")
        it.get_by_role("button", name="Transcribe", exact=True).click()
        expect(it.locator("antiphon-turns .listen-turn").first).to_be_visible()
        read_until(
            audio(it), "it => it.readyState", lambda state: state >= HAVE_METADATA, "a recording that can be played"
        )
        yield it


def a_file(name, content):
    return {"name": name, "mimeType": "audio/wav", "buffer": content}


def ask(page, name, content, model):
    page.get_by_label("Model", exact=True).locator("visible=true").select_option(model)
    page.get_by_label("Audio file").set_input_files(a_file(name, content))
    page.get_by_role("button", name="Transcribe", exact=True).click()


def audio(heard):
    return heard.locator("antiphon-result audio")


def starts_of(heard):
    """Where each word starts, as the page writes it."""
    return read_attributes(heard.locator(".word"), "data-start")


def wait_for_place(heard, start):
    """Wait until the recording is at a place; `start` is in seconds, as the page writes it."""
    read_until(audio(heard), "it => it.currentTime", lambda it: it == pytest.approx(float(start), abs=0.001), start)


def test_every_word_that_was_heard_is_shown_with_its_speaker(heard):
    assert words_of(" ".join(read_texts(heard.locator(".word")))) == words_of(f"{FIRST} {SECOND}")
    expect(heard.locator("antiphon-transcript .listen-speaker")).to_have_text(["SPEAKER_00", "SPEAKER_01"])
    said = read_texts(heard.locator(".listen-paragraph").filter(has_text="SPEAKER_01").locator(".word"))
    assert words_of(" ".join(said)) == words_of(SECOND)


def test_the_word_that_sounds_is_marked(heard):
    starts = starts_of(heard)
    for index in (len(starts) - 1, 2):
        start = float(starts[index])
        end = float(starts[index + 1]) if index + 1 < len(starts) else start + 0.02
        audio(heard).evaluate("(it, place) => { it.currentTime = place; }", (start + end) / 2)
        expect(heard.locator(MARKED)).to_have_attribute("data-start", starts[index])


def test_a_click_on_a_word_leads_to_its_place(heard):
    word = heard.locator(".word").nth(5)
    word.click()
    wait_for_place(heard, starts_of(heard)[5])
    expect(word).to_have_class("word sounding")
    expect(heard.locator(MARKED)).to_have_count(1)


def test_the_keyboard_goes_from_word_to_word(heard):
    words = heard.locator(".word")
    heard.locator(".word[tabindex='0']").focus()
    heard.keyboard.press("Home")
    heard.keyboard.press("ArrowRight")
    expect(words.nth(1)).to_be_focused()
    heard.keyboard.press("Enter")
    expect(words.nth(1)).to_have_class("word sounding")
    expect(heard.locator(".word[tabindex='0']")).to_have_count(1)


def test_each_speaker_has_a_row_and_each_turn_leads_to_its_place(heard):
    expect(heard.locator(".listen-lane")).to_have_count(2)
    turns = heard.locator(".listen-turn")
    turns.first.focus()
    heard.keyboard.press("ArrowRight")
    expect(turns.last).to_be_focused()
    expect(turns.last).to_have_accessible_name(re.compile("^SPEAKER_01, 0:03 to 0:0[56]$"))
    heard.keyboard.press("Enter")
    wait_for_place(heard, read_attributes(turns, "data-start")[-1])
    heard.get_by_text("As a table").click()
    expect(heard.locator("antiphon-turns tbody tr")).to_have_count(2)


def test_what_is_copied_as_subtitles_is_what_the_server_writes(heard, client, two_voices):
    fields = {"model": "whisper", "response_format": "srt"}
    written = client.post(TRANSCRIPTIONS, data=fields, files={"file": two_voices}).text
    heard.get_by_role("button", name="SRT").click()
    with stopped_timers(heard):
        heard.get_by_role("button", name="Copy", exact=True).click()
        expect(heard.get_by_role("button", name="Copied")).to_be_visible()
    assert compute(heard, "navigator.clipboard.readText()") == written
    with heard.expect_download() as download:
        heard.get_by_role("button", name="Download", exact=True).click()
    assert (download.value.suggested_filename, download.value.path().read_text()) == ("talk.srt", written)


def test_the_text_says_who_speaks(heard):
    heard.get_by_role("button", name="Text", exact=True).click()
    lines = read_text(heard.locator("pre").and_(heard.get_by_label("The transcript as Text"))).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["SPEAKER_00", "SPEAKER_01"]


def test_each_request_is_shown_as_code(heard):
    shown = heard.locator("antiphon-result > div > antiphon-snippets")
    expect(shown).to_have_count(2)
    shown.first.get_by_text("This request as code").click()
    for part in ("v1/audio/transcriptions", "timestamp_granularities[]=word", "talk.wav"):
        expect(shown.first.locator("pre").first).to_contain_text(part)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_transcript_has_no_grave_fault_of_accessibility(heard, scheme):
    heard.emulate_media(color_scheme=scheme)
    heard.get_by_role("button", name="Text", exact=True).click()  # or a second click would fold JSON up again
    heard.get_by_role("button", name="JSON").click()
    expect(heard.get_by_label("The transcript as JSON")).to_be_visible()
    assert grave_faults(heard) == []


def test_a_narrow_screen_shows_all_of_it(heard):
    heard.set_viewport_size({"width": 400, "height": 800})
    expect(heard.locator("html")).to_have_js_property("scrollWidth", 400)


def test_a_text_is_aligned(page, two_voices):
    page.get_by_label("Task").select_option("align")
    page.get_by_label("Audio file").set_input_files(a_file("talk.wav", two_voices))
    page.get_by_role("textbox", name="Text", exact=True).fill(f"{FIRST}\n{SECOND}")
    page.get_by_role("button", name="Align a text").click()
    expect(page.locator(".word")).to_have_text(f"{FIRST} {SECOND}".split())
    starts = [float(it) for it in starts_of(page)]
    assert starts == sorted(starts)
    assert grave_faults(page) == []


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_a_file_is_taken_as_it_is_dropped_or_pasted(page, way):
    page.get_by_label("Model", exact=True).locator("visible=true").select_option("held")
    page.evaluate(GIVEN[way], ["clip.wav", base64.b64encode(CLIP).decode()])
    expect(page.locator(".listen-chosen")).to_contain_text("clip.wav")
    page.get_by_role("button", name="Transcribe", exact=True).click()
    expect(page.locator("antiphon-result")).to_contain_text("clip.wav")


@pytest.mark.parametrize(
    "content",
    [b'{"this": "is no audio"}', wav_bytes(np.zeros(RATE * (MOST_SECONDS + 1), np.float32), RATE)],
    ids=["a text", "too long"],
)
def test_a_refused_file_shows_the_reason_of_the_server_and_the_next_is_heard(page, client, content):
    refusal = client.post(TRANSCRIPTIONS, data={"model": "held"}, files={"file": content}).json()["error"]["message"]
    ask(page, "odd.wav", content, "held")
    expect(page.get_by_role("alert")).to_contain_text(refusal)
    assert grave_faults(page) == []
    ask(page, "clip.wav", CLIP, "held")
    expect(page.locator("antiphon-result")).to_contain_text("clip.wav")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_cancelled_run_frees_its_slot(page, checkpoint):
    runs = len(checkpoint.events("run"))
    with checkpoint.held("run"):
        ask(page, "clip.wav", CLIP, "held")
        checkpoint.wait_for("run", runs + 1)
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("Cancelled.")).to_be_visible()
        expect(page.get_by_role("button", name="Transcribe", exact=True)).to_be_focused()
        ask(page, "clip.wav", CLIP, "held")
        checkpoint.wait_for("run", runs + 2)  # in the only slot
    expect(page.locator("antiphon-result")).to_contain_text("clip.wav")


def test_what_was_heard_is_shown_though_nobody_can_tell_who_speaks(page):
    page.get_by_label("Who speaks").select_option("mute")
    ask(page, "clip.wav", CLIP, "held")
    expect(page.get_by_role("alert")).to_contain_text("the engine failed")
    expect(page.locator("antiphon-transcript .word")).to_have_count(1)


def test_a_text_is_shown_while_it_is_heard(page, checkpoint):
    page.get_by_label("Answer").select_option("streamed")
    with checkpoint.held("stream"):
        ask(page, "clip.wav", CLIP, "held")
        expect(page.get_by_label("Heard until now")).not_to_be_empty()
        expect(page.locator("antiphon-result")).to_have_count(0)
    expect(page.locator("antiphon-transcript p")).not_to_be_empty()


def test_earlier_results_are_shown_again(page):
    for name in ("one.wav", "two.wav"):
        ask(page, name, CLIP, "held")
        expect(page.locator(".listen-heading")).to_contain_text(name)
    page.locator(".listen-history button").last.click()
    expect(page.locator(".listen-heading")).to_contain_text("one.wav")
