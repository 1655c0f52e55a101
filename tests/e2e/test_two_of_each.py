"""Two models of every family that hears, in one process: scraps harm none, and many clients get what one gets alone."""

import base64
import io
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
import soundfile
import soxr

from audio_assets import soundfile_bytes, wav_bytes
from installed_models import installed_folder, installed_model
from server_process import HANG_GUARD_S, running_server
from tiny_canary import build_canary
from tiny_diarizer import build_diarizer

pytestmark = pytest.mark.engine

RATE = 16_000
CLIENTS = 16
TEXTS = ("We walked along the river.", "There is a small garden behind the house.", "Put the letters on the table.")
INSTALLED = {
    "whisper": ("asr", "whisper-tiny-en"),
    "silero_vad": ("vad", "silero-vad"),
    "speaker_clustering": ("diar", "speaker-turns"),
    "pocketsphinx": ("align", "pocketsphinx-align"),
}
FAMILIES = (*INSTALLED, "canary", "nemotron_diar")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a server with a voice, and of each family that hears a `NAME-1` and a `NAME-2` of two slots."""
    folder = tmp_path_factory.mktemp("two")
    paths = {family: (task, installed_folder(package)) for family, (task, package) in INSTALLED.items()}
    paths["canary"] = ("asr", str(build_canary(folder / "canary")))
    paths["nemotron_diar"] = ("diar", str(build_diarizer(folder / "diarizer.onnx", "nemotron_hr")))
    models = [
        {"id": f"{family}-{number}", "family": family, "task": task, "path": path, "threads": 1}
        | {"slots": 2 if family in INSTALLED else 1}  # the others are not on the audit list
        for family, (task, path) in paths.items()
        for number in (1, 2)
    ]
    config = {"models": [installed_model("piper-en-joe", "voice"), *models], "lazy_load": True}
    with (
        running_server(folder / "server", config, "--parallel-jobs") as process,
        httpx.Client(base_url=process.url, timeout=2 * HANG_GUARD_S) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def files(client):
    """Each text as a file, every one of another format."""
    samples = [spoken(client, text) for text in TEXTS]
    return (
        wav_bytes(samples[0]),
        soundfile_bytes(samples[1], RATE, "FLAC"),
        soundfile_bytes(samples[2], RATE, "MP3"),
    )


def spoken(client, text):
    answer = client.post("/v1/audio/speech", json={"model": "voice", "input": text})
    assert answer.status_code == 200, answer.text
    samples, rate = soundfile.read(io.BytesIO(answer.content), dtype="float32")
    return soxr.resample(samples, rate, RATE)


def heard(client, model, file, text):
    """What a model makes of a file: the status, and the answer without its timing."""
    request = {"audio": base64.b64encode(file).decode()}
    if model.startswith("pocketsphinx"):
        request["text"] = text
    answer = client.post("/v1/tasks/run", json={"model": model, "request": request})
    return answer.status_code, {name: value for name, value in answer.json().items() if name != "timing"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_scrap_is_answered_or_refused_and_the_next_request_is_served(client, files, family):  # AUD-12
    whole = heard(client, f"{family}-1", files[0], TEXTS[0])
    assert whole[0] == 200
    noise = np.random.Generator(np.random.PCG64(1)).standard_normal(1584).astype(np.float32) * 0.1
    for frames in (1, 16, 160, 800, 1584):
        status, answer = heard(client, f"{family}-1", wav_bytes(noise[:frames]), "hello")
        assert status == 200 or (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert heard(client, f"{family}-1", files[0], TEXTS[0]) == whole


def test_everybody_at_once_hears_what_each_hears_alone(client, files):  # QUE-10, QUE-11
    asked = [
        (f"{family}-{number}", *clip)
        for clip in zip(files, TEXTS, strict=True)
        for family in FAMILIES
        for number in (1, 2)
    ]
    alone = [heard(client, *it) for it in asked]
    assert {status for status, _ in alone} == {200}
    assert alone[::2] == alone[1::2], "both models of a family hear alike"
    with ThreadPoolExecutor(CLIENTS) as clients:
        assert list(clients.map(lambda it: heard(client, *it), asked)) == alone
