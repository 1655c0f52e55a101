"""`POST /v1/audio/translations` over real sockets: a tiny Canary of random weights, which hears a cat in English."""

import base64
import json
from dataclasses import dataclass

import httpx
import numpy as np
import pytest

from antiphon.testing import ControlledCheckpoint
from audio_assets import wav_bytes
from controlled_server import CLIP, TASK_RUN, TRANSCRIPTIONS
from refusals import assert_refused, assert_unharmed
from server_process import HANG_GUARD_S, ServerProcess, running_server
from tiny_canary import build_canary

TRANSLATIONS = "/v1/audio/translations"
NOISE = wav_bytes((np.random.Generator(np.random.PCG64(3)).standard_normal(2 * 16_000) * 0.05).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Translators:
    process: ServerProcess
    client: httpx.Client

    def translate(self, path: str = TRANSLATIONS, file: bytes = NOISE, **fields: object) -> httpx.Response:
        given = {"model": "canary", "language": "de", **fields}
        return self.client.post(path, data=given, files={"file": ("a.wav", file)})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """`canary` translates; `asr` is a controlled model, which cannot."""
    folder = tmp_path_factory.mktemp("translators")
    ControlledCheckpoint(folder / "asr")
    models = [
        {"id": "canary", "family": "canary", "path": str(build_canary(folder / "canary", seed=9)), "task": "asr"},
        {"id": "asr", "family": "controlled", "path": "asr", "task": "asr"},
        {"id": "tts", "family": "controlled", "path": "asr", "task": "tts"},
    ]
    with (
        running_server(folder, {"models": models, "lazy_load": True}) as process,
        httpx.Client(base_url=process.url, timeout=HANG_GUARD_S) as client,
    ):
        yield Translators(process, client)


@pytest.fixture(scope="module")
def english(server):
    """What the model writes when it is told to write English."""
    request = {"audio": base64.b64encode(NOISE).decode(), "language": "de", "options": {"target_language": "en"}}
    return server.client.post(TASK_RUN, json={"model": "canary", "request": request}).json()["text"]


def test_english_is_written_whatever_is_spoken(server, english):
    assert english != server.translate(TRANSCRIPTIONS).json()["text"]
    answer = server.translate()
    assert set(answer.json()) == {"text", "timing"}
    assert answer.json()["text"] == english


def test_a_json_body_does_as_well(server, english):
    body = {"model": "canary", "language": "de", "audio": base64.b64encode(NOISE).decode()}
    assert server.client.post(TRANSLATIONS, json=body).json()["text"] == english


def test_text_is_plain(server, english):
    assert server.translate(response_format="text").text == f"{english}\n"


def test_verbose_json_tells_of_a_translation_into_english(server, english):
    answer = server.translate(response_format="verbose_json").json()
    assert (answer["task"], answer["language"], answer["duration"]) == ("translate", "english", 2.0)
    assert (answer["text"], answer["segments"][0]["text"]) == (english, english)


@pytest.mark.parametrize(("response_format", "begins"), [("srt", "1\n00:00:00,000 --> "), ("vtt", "WEBVTT\n\n00:")])
def test_subtitles_are_translated_too(server, english, response_format, begins):
    subtitles = server.translate(response_format=response_format).text
    assert subtitles.startswith(begins)
    assert english in subtitles


def test_a_stream_has_deltas_whose_sum_is_the_text_of_done(server, english):
    answer = server.translate(stream="true")
    blocks = [block.removeprefix("data: ") for block in answer.text.split("\n\n") if block]
    assert blocks[-1] == "[DONE]"
    *deltas, done = map(json.loads, blocks[:-1])
    assert "".join(delta["delta"] for delta in deltas) == done["text"] == english
    assert done["type"] == "transcript.text.done"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": "asr", "file": CLIP}, "model"),
        ({"model": "tts", "file": CLIP}, "model"),
        ({"model": "asr", "file": CLIP, "stream": "true"}, "model"),
        ({"response_format": "diarized_json"}, "response_format"),
        ({"language": "xx"}, "language"),
        ({"temperature": "0.5"}, "temperature"),
        ({"file": b"no audio"}, "file"),
    ],
)
def test_what_cannot_be_translated_is_refused_and_harms_nothing(server, fields, param):
    assert_refused(server.translate(**fields), 400, param=param)
    assert_unharmed(server.process, server.client, server.translate)


def test_a_model_that_cannot_translate_is_told_of(server):
    assert assert_refused(server.translate(model="asr"), 400, param="model").message == "model 'asr' cannot translate"


def test_the_formats_of_a_translation_are_listed(server):
    refusal = assert_refused(server.translate(response_format="diarized_json"), 400, param="response_format")
    assert refusal.message.endswith("supported are json, text, srt, vtt, verbose_json")
