"""The examples with curl in the README and on the API page do what they show, on a server with such models."""

import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from installed_models import installed_folder, installed_model
from server_process import HANG_GUARD_S, running_server, started_alone

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = "antiphon serve"
"""A block that starts a server is not for one that runs already."""

PACKAGES = ("piper-en-joe", "whisper-base", "whisper-tiny-en", "speaker-turns", "pocketsphinx-align")

PRELUDE = """
set -euo pipefail
B={url}
curl() {{ command curl -sS --fail-with-body --max-time {patience_s:.0f} "$@"; }}
arecord() {{ cat microphone.raw; }}
"""


def examples():
    """Every block with curl, each with the place that it stands at."""
    for page in ("README.md", "docs/api.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in SHELL.finditer(text):
            if "curl " in block[1] and ELSEWHERE not in block[1]:
                yield pytest.param(block[1], id=f"{page}:{text[: block.start()].count(chr(10)) + 1}")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server, in whose folder the files lie that the examples name."""
    assert shutil.which("curl"), "curl is not installed"
    folder = tmp_path_factory.mktemp("examples")
    models = [installed_model(package) for package in PACKAGES]
    (folder / "batches").mkdir()
    models.append({"id": "m", "family": "controlled", "task": "tts", "path": "batches"})
    config = {"models": models, "lazy_load": True, "ui_management": True, "allowed_audio_roots": ["."]}
    with running_server(folder, config, "--parallel-jobs", start=started_alone) as process:
        body = {"model": "piper-en-joe", "input": "Hello from antiphon."}
        spoken = httpx.post(f"{process.url}/v1/audio/speech", json=body, timeout=HANG_GUARD_S).content
        for name in ("hello.wav", "hallo.wav", "meeting.wav", "talk.mp3"):
            (folder / name).write_bytes(spoken)
        (folder / "microphone.raw").write_bytes(spoken[44:])
        yield process


@pytest.mark.parametrize("example", [*examples()])
def test_an_example_is_answered(server, example):
    here = {
        "http://127.0.0.1:8080": server.url,
        "/srv/audio": str(server.folder),
        "/srv/models/joe": installed_folder("piper-en-joe"),
    }
    for written, real in here.items():
        example = example.replace(written, real)
    script = PRELUDE.format(url=server.url, patience_s=HANG_GUARD_S) + example

    done = subprocess.run(
        ["bash", "-c", script], cwd=server.folder, capture_output=True, text=True, timeout=2 * HANG_GUARD_S, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert '"error":{' not in done.stdout
