"""AUD-08, AUD-11: every route that takes a file knows it by its bytes, and refuses what is no audio before it waits."""

import base64
import json

import httpx
import pytest

import audio_assets
from antiphon.testing import ControlledCheckpoint
from controlled_server import TASK_RUN, TRANSCRIPTIONS
from refusals import assert_refused, assert_unharmed
from server_process import HANG_GUARD_S, running_server

TONE = audio_assets.tone(440, 0.5, 48_000)
FILES = {
    "mp3 called wav": ("a.wav", "audio/wav", audio_assets.soundfile_bytes(TONE, 48_000, "MP3")),
    "wav called mp3": ("a.mp3", "audio/mpeg", audio_assets.wav_bytes(TONE, 48_000)),
    "webm of a recorder": ("blob", "audio/webm; codecs=opus", audio_assets.streamed_webm(TONE)),
    "flac called text": ("a.txt", "text/plain", audio_assets.soundfile_bytes(TONE, 48_000, "FLAC")),
    "ogg without a name": ("", "application/octet-stream", audio_assets.av_bytes(TONE, 48_000, "ogg", "flac")),
}
"""A file's name and type as they are sent, and what it is."""


def form(model, **fields):
    return lambda file: {"data": {"model": model, **fields}, "files": [("file", file_part(file))]}


def file_part(file):
    name, kind, content = file
    return name, content, kind


def in_json(file):
    return base64.b64encode(file[2]).decode()


ROUTES = {
    "transcription": (TRANSCRIPTIONS, "file", form("asr")),
    "stream": (TRANSCRIPTIONS, "file", form("asr", stream="true")),
    "json": (TRANSCRIPTIONS, "audio", lambda file: {"json": {"model": "asr", "audio": in_json(file)}}),
    "alignment": ("/v1/audio/alignments", "file", form("align", text="two words")),
    "batch": ("/v1/batches/transcriptions", "file", form("asr")),
    "speakers": (TRANSCRIPTIONS, "file", form("diar")),
    "transcript with speakers": (TRANSCRIPTIONS, "file", form("asr", response_format="diarized_json")),
    "details": (f"{TRANSCRIPTIONS}/details", "file", form("vad")),
    "task": (TASK_RUN, "request.audio", lambda file: {"json": {"model": "vad", "request": {"audio": in_json(file)}}}),
}
"""Each route that takes a file: how it calls the field, and the request with a file in it."""


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """A server with a model for each task that listens, one slot each, and nothing in memory."""
    folder = tmp_path_factory.mktemp("uploads")
    models = [
        {"id": task, "family": "controlled", "path": task, "task": task} for task in ("asr", "diar", "align", "vad")
    ]
    for model in models:
        ControlledCheckpoint(folder / model["id"])
    with running_server(folder, {"models": models, "lazy_load": True}) as process:
        yield process


@pytest.fixture(scope="module")
def client(process):
    with httpx.Client(base_url=process.url, timeout=HANG_GUARD_S) as client:
        yield client


def sent(client, route, file):
    url, _, request = ROUTES[route]
    return client.post(url, **request(file))


def loaded(client):
    return [model["id"] for model in client.get("/v1/models").json()["data"] if model["loaded"]]


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_no_audio_is_refused_and_nothing_is_loaded_for_it(process, client, route):
    before = loaded(client)

    for bad in audio_assets.bad_audio().values():
        assert_refused(sent(client, route, ("a.wav", "audio/wav", bad)), 400, param=ROUTES[route][1])

    assert loaded(client) == before
    assert list(process.temp.iterdir()) == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("route", ROUTES)
def test_a_file_is_known_by_its_bytes(process, client, route, name):
    answer = sent(client, route, FILES[name])

    assert answer.status_code == 200, answer.text
    assert '"error"' not in answer.text


def test_a_batch_is_refused_for_one_bad_file_of_many(process, client):
    good, bad = FILES["wav called mp3"], ("b.wav", "audio/wav", b"no audio")
    files = [("file", file_part(file)) for file in (good, bad, good)]

    refused = client.post("/v1/batches/transcriptions", data={"model": "asr"}, files=files)

    assert_refused(refused, 400, param="file")
    assert_unharmed(process, client, lambda: sent(client, "batch", good))


def test_each_file_of_a_batch_is_known_by_its_bytes(client):
    files = [("file", file_part(file)) for file in FILES.values()]

    answer = client.post("/v1/batches/transcriptions", data={"model": "asr"}, files=files)

    blocks = [block.removeprefix("data: ") for block in answer.text.split("\n\n") if block]
    results = [json.loads(block) for block in blocks[:-2]]
    assert sorted(result["index"] for result in results) == list(range(len(FILES)))
