"""The code that the page shows for a request is run as it stands, and does what the page does."""

import json
import os
import subprocess
import sys

import httpx
import pytest

from antiphon.testing import ControlledCheckpoint
from browser import visit
from controlled_server import CLIP, SPEECH
from page_waits import compute, wait_until_live
from server_process import HANG_GUARD_S, running_server

KEY = "a-key"
HARD = "It's $HOME, `id` and \"this\": \\n is no\nnew line; é 𝄞 ${KEY} %s !x 'Path("
ODD_FILE = 'a;type=b, "c".wav'
SHELLS = {"curl": ["bash", "-c"], "python": [sys.executable, "-W", "error", "-c"]}
LANGUAGES = pytest.mark.parametrize("language", SHELLS)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return ControlledCheckpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="module")
def server(tmp_path_factory, checkpoint):
    models = [
        {"id": task, "family": "controlled", "path": str(checkpoint.path), "task": task, "lazy": True}
        for task in ("tts", "asr", "align")
    ]
    config = {"models": models, "api_keys": [KEY]}
    with running_server(tmp_path_factory.mktemp("server"), config, "--parallel-jobs") as it:
        yield it


@pytest.fixture(scope="module")
def page(browser, server):
    """The page, with the key in use: the modules that write the code are asked in it."""
    with visit(browser, server.url) as it:
        dialog = it.get_by_role("dialog", name="Key")
        dialog.get_by_label("API key").fill(KEY)
        dialog.get_by_role("button", name="Use this key").click()
        wait_until_live(it)
        yield it


@pytest.fixture
def run(page, tmp_path):
    """Run what is shown for a request, in a folder with a sound in it, and return what it printed."""
    (tmp_path / ODD_FILE).write_bytes(CLIP)

    def it(language, request):
        module, name = ("curl", "asCurl") if language == "curl" else ("python", "asPython")
        code = compute(
            page, f"async request => (await import('/page/studio/snippets/{module}.js')).{name}(request)", request
        )
        assert KEY not in code
        return subprocess.run(
            [*SHELLS[language], code],
            cwd=tmp_path,
            env={**os.environ, "ANTIPHON_API_KEY": KEY},
            capture_output=True,
            text=True,
            timeout=HANG_GUARD_S,
            check=False,
        )

    return it


@LANGUAGES
def test_a_text_arrives_as_it_was_typed_and_the_answer_is_saved(run, server, checkpoint, tmp_path, language):
    body = {"model": "tts", "input": f"{HARD} {language}", "response_format": "flac", "seed": 3}

    ran = run(language, {"path": "v1/audio/speech", "json": body, "saveAs": "out's.flac"})

    assert ran.returncode == 0, ran.stdout + ran.stderr
    answer = httpx.post(
        server.url + SPEECH, json=body, headers={"authorization": f"Bearer {KEY}"}, timeout=HANG_GUARD_S
    )
    assert (tmp_path / "out's.flac").read_bytes() == answer.content
    assert len(checkpoint.events("run", body["input"])) == 2


@LANGUAGES
def test_a_form_arrives_as_it_was_filled_in(run, language):
    form = [["file", {"file": ODD_FILE}], ["model", "asr"], ["prompt", f"@{HARD}"], ["temperature", 0]]
    form += [["response_format", "verbose_json"], ["timestamp_granularities[]", "segment"], ["seed", 1]]

    ran = run(language, {"path": "v1/audio/transcriptions", "form": form})

    assert ran.returncode == 0, ran.stdout + ran.stderr
    answer = json.loads(ran.stdout)
    assert answer["text"].partition("|")[2].endswith(f"@{HARD}")
    assert answer["segments"]


@LANGUAGES
def test_events_are_printed_as_they_come(run, language):
    form = [["file", {"file": ODD_FILE}], ["model", "asr"], ["stream", True]]

    ran = run(language, {"path": "v1/audio/transcriptions", "form": form})

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "transcript.text.delta" in ran.stdout
    assert "transcript.text.done" in ran.stdout


@LANGUAGES
def test_a_route_of_our_own_is_called_without_openais_client(run, language):
    form = [["file", {"file": ODD_FILE}], ["model", "align"], ["text", HARD]]

    ran = run(language, {"path": "v1/audio/alignments", "form": form})

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout)["words"]


@LANGUAGES
def test_live_audio_is_sent_from_a_file(run, tmp_path, language):
    (tmp_path / "it's.pcm").write_bytes(bytes(20_000))
    query = {"model": "asr", "sample_rate": 16_000, "prompt": HARD, "language": None}

    ran = run(language, {"path": "v1/audio/transcriptions/live", "query": query, "live": {"file": "it's.pcm"}})

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "transcript.text.done" in ran.stdout


@LANGUAGES
def test_a_question_without_a_body_is_asked(run, language):
    ran = run(language, {"path": "v1/audio/voices", "query": {"model": "tts"}})

    assert json.loads(ran.stdout)["model"] == "tts"


@LANGUAGES
def test_the_code_tells_what_the_server_refused(run, language):
    form = [["file", {"file": ODD_FILE}], ["model", "none"], ["text", "x"]]

    ran = run(language, {"path": "v1/audio/alignments", "form": form})

    assert ran.returncode != 0
    assert "model_not_found" in ran.stdout + ran.stderr
