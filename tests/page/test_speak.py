"""The pane "Speak": what is typed is heard, kept, saved, and said again by the code that is shown."""

import array
import io
import re
import subprocess
import sys
import wave
from itertools import pairwise

import httpx
import pytest
from playwright.sync_api import expect

from accessibility import grave_faults
from antiphon.testing import ControlledCheckpoint
from browser import visit
from conformance_client import eventually
from controlled_server import SPEECH
from installed_models import installed_model
from page_waits import compute, read_text, read_until
from server_process import HANG_GUARD_S, running_server

pytestmark = pytest.mark.engine

SENTENCE = "It's a nice day:\nwe walk."
RATE = 16_000
BODY = "it => JSON.stringify(it.body())"
THIRD = 1600 // 3
"""The frames of the first of the three pieces that a controlled model streams 0.1 s in."""
RECORD_WHAT_IS_PLAYED = """() => {
  window.played = [];
  const start = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (when) {
    window.played.push({ when, samples: Array.from(this.buffer.getChannelData(0)), rate: this.context.sampleRate });
    start.call(this, when);
  };
  window.revoked = [];
  URL.revokeObjectURL = (url) => window.revoked.push(url);
}"""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    it = ControlledCheckpoint(tmp_path_factory.mktemp("checkpoint"))
    it.set("languages", "en de xx_Odd")
    it.set("voices", "low high")
    it.set("run.cancellable")
    return it


@pytest.fixture(scope="module")
def server(tmp_path_factory, checkpoint):
    models = [
        installed_model("piper-en-joe", "joe", lazy=True, voice_presets={"calm": {"speed": 0.8}}),
        {"id": "controlled", "family": "controlled", "task": "tts", "path": str(checkpoint.path), "lazy": True},
    ]
    config = {"models": models, "max_text_chars": 200}
    with running_server(tmp_path_factory.mktemp("server"), config, "--parallel-jobs") as it:
        yield it


@pytest.fixture
def page(browser, server):
    with visit(browser, server.url) as it:
        it.evaluate(RECORD_WHAT_IS_PLAYED)
        expect(it.get_by_label("Model").first).to_have_value("joe")
        yield it


@pytest.fixture
def form(page):
    return page.locator("antiphon-speak-form")


@pytest.fixture
def spoken(page):
    """The newest result."""
    return page.locator("antiphon-spoken").first


@pytest.fixture
def speak(page, form):
    def it(text, model="controlled"):
        form.get_by_label("Model").select_option(model)
        form.get_by_label("Text").fill(text)
        form.get_by_role("button", name="Speak", exact=True).click()

    return it


def answer(server, **body):
    """What the API answers for a request."""
    it = httpx.post(server.url + SPEECH, json=body, timeout=HANG_GUARD_S)
    assert it.status_code == 200, it.text
    return it.content


def saved(page, spoken):
    """The name and the bytes of what the button "Download" gives."""
    with page.expect_download() as download:
        spoken.get_by_role("button", name="Download").click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def heard(page, byte_count):
    """Wait until this many bytes have been played, and return them and the start and end of each piece, in seconds.

    The number of pieces depends on how the network splits the response.
    """
    played = read_until(
        page,
        "() => window.played",
        lambda it: 2 * sum(len(piece["samples"]) for piece in it) >= byte_count,
        f"{byte_count} bytes that are played",
    )
    samples = array.array("h", (round(32768 * value) for piece in played for value in piece["samples"]))
    return samples.tobytes(), [(it["when"], it["when"] + len(it["samples"]) / it["rate"]) for it in played]


def wait_for_third(spoken):
    """Wait until the first piece of a controlled model has arrived completely: it may come in several chunks."""
    duration = "it => it.duration"
    read_until(spoken.locator("antiphon-waveform"), duration, lambda it: it == THIRD / RATE, "the first piece")


def test_what_is_heard_and_saved_is_what_the_server_speaks(page, server, form, spoken):
    form.get_by_label("Text").fill(SENTENCE)
    form.get_by_label("Text").press("Control+Enter")

    expect(spoken).to_have_attribute("data-state", "whole")
    expect(spoken.get_by_role("button", name="Play")).to_be_visible()  # it was played to its end
    name, file = saved(page, spoken)
    assert (name, file) == ("speech-1.wav", answer(server, model="joe", input=SENTENCE))
    expected = answer(server, model="joe", input=SENTENCE, response_format="pcm")
    samples, spans = heard(page, len(expected))
    assert samples == expected
    assert all(end <= begin + 1e-6 for (_, end), (begin, _) in pairwise(spans))
    expect(spoken).to_contain_text("First sound after")
    read_until(spoken.locator("antiphon-waveform"), "it => it.loudest", lambda it: it > 0.1, "a picture of the sound")
    assert grave_faults(page) == []


def test_the_first_piece_is_heard_while_the_engine_is_at_work_on_the_second(page, checkpoint, speak, spoken):
    with checkpoint.held("stream"):
        speak("Held.")
        expect(spoken.get_by_role("button", name="Pause")).to_be_visible()
        assert len(heard(page, 2 * THIRD)[0]) == 2 * THIRD
        expect(spoken).to_have_attribute("data-state", "speaking")
        expect(spoken.get_by_role("button", name="Download")).to_be_hidden()
        assert grave_faults(page) == []

    expect(spoken).to_have_attribute("data-state", "whole")
    expect(spoken.get_by_role("button", name="Play")).to_be_visible()
    assert len(heard(page, 2 * 1600)[0]) == 2 * 1600


def test_stop_keeps_what_came_and_frees_the_slot(page, server, checkpoint, speak, form, spoken):
    with checkpoint.held("stream", "Long."):
        speak("Long.")
        expect(spoken).to_have_attribute("data-state", "speaking")
        wait_for_third(spoken)
        form.get_by_role("button", name="Stop").click()

        expect(spoken).to_have_attribute("data-state", "stopped")
        assert answer(server, model="controlled", input="Next.")  # the only slot
    expect(form.get_by_role("button", name="Stop")).to_be_focused()

    with wave.open(io.BytesIO(saved(page, spoken)[1])) as file:
        assert file.getnframes() == THIRD


def test_an_answer_that_breaks_off_is_shown_as_cut_and_what_there_is_can_be_heard(page, checkpoint, speak, spoken):
    with checkpoint.held("stream"):
        speak("Cut.")
        expect(spoken).to_have_attribute("data-state", "speaking")
        wait_for_third(spoken)
        checkpoint.fail("stream")
    expect(spoken).to_have_attribute("data-state", "cut")
    checkpoint.unset("stream.fail")

    expect(spoken.get_by_role("alert")).to_contain_text("The answer broke off before its end.")
    assert len(heard(page, 2 * THIRD)[0]) == 2 * THIRD
    spoken.get_by_role("button", name="Play").click()
    assert len(heard(page, 2 * 2 * THIRD)[0]) == 2 * 2 * THIRD
    with wave.open(io.BytesIO(saved(page, spoken)[1])) as file:
        assert file.getnframes() == THIRD
    assert grave_faults(page) == []


def test_a_refusal_shows_the_servers_reason_and_leaves_no_result(page, speak, form):
    for text, reason in ((" \n", "input must hold something to say"), ("x" * 201, "the limit is 200")):
        speak(text)

        expect(form.get_by_role("alert")).to_contain_text(reason)
        expect(form).to_contain_text(f"{len(text)} characters")
        expect(page.locator("antiphon-spoken")).to_have_count(0)
    assert grave_faults(page) == []

    speak("Next.")
    expect(page.locator("antiphon-spoken")).to_have_attribute("data-state", "whole")
    expect(form.get_by_role("alert")).to_be_hidden()


def test_a_file_of_another_format_is_what_the_api_answers(page, server, speak, form, spoken):
    for number, name in enumerate(["mp3", "opus", "flac", "aac", "pcm"], 1):
        form.get_by_label("File format").select_option(name)
        speak("A file.")
        expect(spoken.get_by_role("button", name=f"Download {name}")).to_be_visible()
        expected = answer(server, model="controlled", input="A file.", response_format=name)
        assert saved(page, spoken) == (f"speech-{number}.{name}", expected)


def test_a_file_that_cannot_be_made_shows_the_reason_and_the_next_can(page, checkpoint, speak, form, spoken):
    form.get_by_label("File format").select_option("mp3")
    speak("A file.")
    expect(spoken).to_have_attribute("data-state", "whole")
    checkpoint.fail("run")
    try:
        spoken.get_by_role("button", name="Download mp3").click()
        expect(spoken.get_by_role("alert")).to_contain_text("the engine failed")
    finally:
        checkpoint.unset("run.fail")

    assert saved(page, spoken)[1]
    expect(spoken.get_by_role("alert")).to_be_hidden()
    spoken.get_by_role("button", name="Remove").click()
    read_until(page, "() => window.revoked.length", lambda it: it == 1, "a file that was given back")


def test_a_result_fills_the_form_in_again_and_goes_when_it_is_told(page, form, speak, spoken):
    form.get_by_label("Model").select_option("joe")
    form.get_by_label("Voice").select_option("calm")
    form.get_by_label("Speed", exact=True).fill("1.5")
    form.get_by_label("Seed").fill("7")
    form.get_by_text("More", exact=True).click()
    form.get_by_label("Options of the engine").fill('{"noise_w": 0}')
    speak("Once.", "joe")
    expect(spoken).to_have_attribute("data-state", "whole")
    before = compute(form, BODY)
    assert '"voice":"calm"' in before
    for label in ("Speed", "Seed", "Options of the engine"):
        form.get_by_label(label, exact=True).fill("")
    speak("Twice.")
    expect(page.locator("antiphon-spoken")).to_have_count(2)

    page.get_by_role("article", name="Speech 1").get_by_role("button", name="Use again").click()

    expect(form.get_by_label("Text")).to_be_focused()
    expect(form.get_by_label("Voice")).to_have_value("calm")
    read_until(form, BODY, lambda it: it == before, f"the request {before}")
    page.get_by_role("article", name="Speech 1").get_by_role("button", name="Remove").click()
    expect(page.locator("antiphon-spoken")).to_have_count(1)
    expect(spoken.get_by_role("button").first).to_be_focused()
    spoken.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Nothing yet.")).to_be_visible()


def test_the_page_keeps_so_many_results(page, form, speak, spoken):
    for number in range(1, 22):
        speak(f"Text {number}.")
        expect(page.get_by_role("article", name=f"Speech {number}", exact=True)).to_be_visible()
    expect(page.locator("antiphon-spoken")).to_have_count(20)
    expect(page.get_by_role("article", name="Speech 1", exact=True)).to_have_count(0)


def test_the_form_offers_what_the_model_has(page, form):
    voices = form.get_by_label("Voice")
    expect(voices.locator("optgroup[label=Presets] option")).to_have_text("calm")
    expect(voices.locator("optgroup[label='Voices of the model'] option").first).to_have_text("default")
    expect(form.get_by_label("Language", exact=True)).to_be_hidden()

    form.get_by_label("Model").select_option("controlled")

    expect(voices.locator("optgroup[label=Presets]")).to_have_count(0)
    expect(voices.locator("optgroup[label='Voices of the model'] option")).to_have_text(["low", "high"])
    expect(form.get_by_label("Language", exact=True).locator("option")).to_have_text(
        ["Not said", "English (en)", "German (de)", "xx_Odd"]
    )


def test_options_that_are_no_object_are_not_sent(page, form, speak):
    form.get_by_text("More", exact=True).click()
    form.get_by_label("Options of the engine").fill("[1]")

    speak("No.")

    expect(form.get_by_label("Options of the engine")).to_be_focused()
    expect(form.get_by_label("Options of the engine")).to_have_js_property(
        "validationMessage", "This is no JSON object."
    )
    expect(page.locator("antiphon-spoken")).to_have_count(0)


def test_the_code_of_a_result_gives_the_bytes_that_were_saved(page, speak, form, spoken, tmp_path):
    form.get_by_label("File format").select_option("mp3")
    form.get_by_label("Seed").fill("5")
    speak(SENTENCE, "joe")
    expect(spoken).to_have_attribute("data-state", "whole")
    _, file = saved(page, spoken)
    spoken.get_by_text("This request as code").click()
    curl = read_text(spoken.get_by_label("curl, this request"))
    spoken.get_by_role("tab", name="Python").click()
    python = read_text(spoken.get_by_label("Python, this request"))
    page.emulate_media(color_scheme="dark")
    assert grave_faults(page) == []

    for command in (["bash", "-c", curl], [sys.executable, "-c", python]):
        subprocess.run(command, cwd=tmp_path, timeout=HANG_GUARD_S, check=True)
        assert (tmp_path / "speech.mp3").read_bytes() == file
        (tmp_path / "speech.mp3").unlink()


def test_the_code_of_a_request_is_there_as_soon_as_it_is_unfolded(form):
    unfold = "async it => { it.open = true; await null; return it.querySelector('pre').textContent; }"

    assert compute(form.locator("antiphon-snippets details"), unfold).startswith("curl ")


def test_a_voice_of_another_model_is_not_asked_for(page, form, speak, spoken):
    form.get_by_label("Voice").select_option("calm")  # a preset of joe
    held = []

    def hold(route):  # Playwright does not accept a builtin method as a handler
        held.append(route)

    page.route("**/v1/audio/voices?model=controlled", hold)
    speak("Before its voices are known.")
    # Handlers of routes run only inside a call to Playwright.
    eventually(lambda: page.title() and held, bool, "a request for the voices")
    with page.expect_request("**/v1/audio/speech") as request:
        for route in held:
            route.continue_()

    assert "voice" not in request.value.post_data_json
    expect(spoken).to_have_attribute("data-state", "whole")


def test_the_keyboard_alone_speaks_plays_and_seeks(page, form, spoken):
    page.get_by_role("tab", name="Speak").focus()
    page.keyboard.press("Tab")
    page.keyboard.type("We walk along the river until the sun goes down.")
    page.keyboard.press("Control+Enter")
    play, slider = spoken.get_by_role("button", name="Play"), spoken.get_by_role("slider")
    expect(play).to_be_visible()  # it was heard to its end
    form.get_by_text("This request as code").focus()

    page.keyboard.press("Tab")
    expect(play).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuenow", "0")
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuenow", "1")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")

    expect(slider).to_have_attribute("aria-valuenow", re.compile("^[2-9]$"))  # it keeps counting until the end


def test_one_result_is_heard_at_a_time(page, checkpoint, speak):
    first = page.get_by_role("article", name="Speech 1").get_by_role("button").first
    with checkpoint.held("stream", "First."):
        speak("First.")
        expect(first).to_have_attribute("aria-label", "Pause speech 1")  # for as long as the stream is open

        speak("Second.")

        expect(first).to_have_attribute("aria-label", "Play speech 1")


def test_a_long_recording_is_kept_in_blocks_and_read_across_them(page):
    assert compute(
        page,
        """async () => {
      const { Recording } = await import("/page/studio/recording.js");
      const recording = new Recording({ rate: 8000, channels: 2 });
      const all = new Int16Array(1_300_000).map((_, n) => (n * 7) % 30_011);
      const bytes = new Uint8Array(all.buffer);
      for (let at = 0; at < bytes.length; at += 99_996) recording.append(bytes.subarray(at, at + 99_996));
      const growing = await recording.read(262_000, 1000);
      recording.finish();
      const kept = new Uint8Array(await recording.pcm().arrayBuffer());
      const [left, right] = await recording.read(262_000, 1000);
      return {
        frames: recording.frames,
        isSame: kept.length === bytes.length && kept.every((byte, n) => byte === bytes[n]),
        isRead: left.every((value, n) => value === all[2 * (262_000 + n)] / 32768),
        isRightRead: right.every((value, n) => value === all[2 * (262_000 + n) + 1] / 32768),
        isReadWhileGrowing: growing[1].every((value, n) => value === right[n]),
      };
    }""",
    ) == {"frames": 650_000, "isSame": True, "isRead": True, "isRightRead": True, "isReadWhileGrowing": True}


def test_a_long_recording_is_handed_to_the_browser_a_few_seconds_ahead_from_wherever_it_is_played(page):
    ahead, first, again = compute(
        page,
        """async () => {
      const { Recording } = await import("/page/studio/recording.js");
      const { Player } = await import("/page/studio/speak/player.js");
      const recording = new Recording({ rate: 8000, channels: 1 });
      for (let second = 0; second < 60; second += 1) {
        recording.append(new Uint8Array(new Int16Array(8000).fill(256 * second).buffer));
      }
      recording.finish();
      const player = new Player(recording);
      const seconds = () => window.played.splice(0).map(({ samples }) => 128 * samples[0]);
      const handed = () => new Promise((resolve) => player.addEventListener("time", resolve, { once: true }));
      player.play();
      await handed();
      const ahead = seconds();
      player.seek(40);
      await handed();
      await handed();
      const [first] = seconds();
      player.pause();
      player.play();
      await handed();
      const [again] = seconds();
      player.pause();
      return [ahead, first, again];
    }""",
    )

    assert ahead == list(range(len(ahead)))
    assert 4 <= len(ahead) < 30  # four seconds and what went by meanwhile, of sixty
    assert first == 40
    assert 40 <= again < 60
