"""`POST /v1/audio/alignments` over real sockets, with the controlled engine: the words of the text, spread evenly."""

import httpx
import pytest

from antiphon.testing import ControlledCheckpoint
from controlled_server import CLIP
from refusals import assert_refused, assert_unharmed
from server_process import HANG_GUARD_S, running_server

ALIGNMENTS = "/v1/audio/alignments"


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """A server with a model for alignment, `words`, and another."""
    folder = tmp_path_factory.mktemp("words")
    models = [
        {"id": name, "family": "controlled", "path": name, "task": task}
        for name, task in (("words", "align"), ("asr", "asr"))
    ]
    for model in models:
        ControlledCheckpoint(folder / model["id"])
    with running_server(folder, {"models": models, "lazy_load": True, "max_text_chars": 100}) as process:
        yield process


@pytest.fixture(scope="module")
def client(process):
    with httpx.Client(base_url=process.url, timeout=HANG_GUARD_S) as client:
        yield client


def align(client, files=(("file", ("a.wav", CLIP)),), **fields):
    return client.post(ALIGNMENTS, data={"model": "words", "text": "two words", **fields}, files=list(files))


def test_words_are_told_in_seconds_and_in_samples(client):
    answer = align(client, language="English")
    assert [part.split(";")[0] for part in answer.headers["server-timing"].split(", ")] == ["queue", "load", "run"]
    body = answer.json()
    assert set(body.pop("timing")) == {"queue_ms", "load_ms", "run_ms"}
    assert body == {
        "language": "en",
        "duration": 0.5,
        "words": [
            {"word": "two", "start": 0.0, "end": 0.25, "start_sample": 0, "end_sample": 4000, "confidence": 1.0},
            {"word": "words", "start": 0.25, "end": 0.5, "start_sample": 4000, "end_sample": 8000, "confidence": 1.0},
        ],
        "sample_rate": 16_000,
    }


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"text": ""}, 400, "text"),
        ({"text": " \t"}, 400, "text"),
        ({"text": "x" * 101}, 413, "text"),
        ({"model": ""}, 400, "model"),
        ({"model": "asr"}, 400, "model"),
        ({"language": "Klingon"}, 400, "language"),
        ({"busy_timeout_ms": "-1"}, 400, "busy_timeout_ms"),
        ({"files": (("other", ("a.wav", CLIP)),)}, 400, "file"),
        ({"files": (("file", ("a.wav", CLIP)),) * 2}, 400, "file"),
        ({"files": (("file", ("a.wav", b"no audio")),)}, 400, "file"),
    ],
)
def test_a_bad_request_is_refused_and_harms_nothing(process, client, fields, status, param):
    refused = align(client, **fields)
    assert_refused(refused, status, param=param, code="too_large" if status == 413 else None)
    assert_unharmed(process, client, lambda: align(client))


def test_an_unknown_model_is_not_found(client):
    assert_refused(align(client, model="none"), 404, param="model", code="model_not_found")


def test_a_body_that_is_no_form_is_refused(client):
    assert client.post(ALIGNMENTS, json={"model": "words"}).status_code in {400, 415}


def test_the_document_says_what_the_form_takes(client):
    form = client.get("/openapi.json").json()["paths"][ALIGNMENTS]["post"]["requestBody"]["content"]
    schema = form["multipart/form-data"]["schema"]
    assert schema["required"] == ["model", "file", "text"]
    assert {"language", "busy_timeout_ms", "run_timeout_ms"} <= set(schema["properties"])
