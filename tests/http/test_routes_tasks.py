"""`POST /v1/tasks/run` over real sockets, with the controlled engine."""

import base64

import pytest

from controlled_server import CLIP, TASK_RUN
from refusals import assert_refused

CLIP_BASE64 = base64.b64encode(CLIP).decode()


def run(server, request, **fields):
    return server.client.post(TASK_RUN, json={"model": "tts", "request": request, **fields})


def test_a_text_is_answered_with_the_whole_result(server):
    answer = run(server, {"text": "generic"})

    assert answer.status_code == 200
    result = answer.json()
    assert set(result) == {
        "text", "audio", "language", "segments", "words", "speaker_turns", "sample_rate", "timing",
    }  # fmt: skip
    assert result["text"].endswith("|generic")
    assert (result["sample_rate"], result["segments"], result["speaker_turns"]) == (16_000, [], [])
    assert base64.b64decode(result["audio"]) == server.speak("generic").content
    assert [part.split(";")[0] for part in answer.headers["server-timing"].split(", ")] == ["queue", "load", "run"]


def test_an_audio_is_answered_with_spans_in_samples(server):
    result = run(server, {"audio": CLIP_BASE64, "text": "two words"}, model="asr").json()

    assert (result["audio"], result["sample_rate"]) == (None, 16_000)
    assert [(it["start_sample"], it["end_sample"]) for it in result["segments"]] == [(0, 8000)]
    assert len(result["words"]) == 2


@pytest.mark.parametrize(
    ("request_", "model", "param"),
    [
        ({}, "tts", "request.text"),
        ({"text": "no audio"}, "asr", "request.audio"),
        ({"text": " "}, "tts", "request.text"),
    ],
)
def test_what_the_model_needs_is_named(server, request_, model, param):
    assert_refused(run(server, request_, model=model), 400, param=param)


def test_audio_that_is_none_is_refused_under_its_own_name(server):
    bad = base64.b64encode(b"no audio").decode()

    assert_refused(run(server, {"audio": bad}, model="asr"), 400, param="request.audio")
