"""`POST /v1/audio/transcriptions/details` over real sockets: all that a model found, in samples."""

import base64

import pytest

from audio_assets import bad_audio
from controlled_server import CLIP
from refusals import assert_refused, assert_unharmed

DETAILS = "/v1/audio/transcriptions/details"
FIELDS = {"text", "language", "segments", "words", "speaker_turns", "sample_rate", "timing"}


def spans(found):
    return [(it["start_sample"], it["end_sample"]) for it in found]


def test_a_transcript_has_segments_and_words_in_samples(speakers):
    answer = speakers.listen("heard", DETAILS, prompt="two words", language="en")

    content = answer.json()
    assert set(content) == FIELDS
    assert content["text"].endswith("|two words")
    assert (content["language"], content["sample_rate"]) == ("en", 16_000)
    assert (spans(content["segments"]), content["segments"][0]["text"]) == ([(0, 8000)], content["text"])
    assert [it["text"].rpartition("|")[2] for it in content["words"]] == ["two", "words"]
    assert (spans(content["words"]), content["speaker_turns"]) == ([(0, 4000), (4000, 8000)], [])
    assert "run;dur=" in answer.headers["server-timing"]


def test_a_model_for_diarization_has_turns_and_no_words(speakers):
    content = speakers.listen("told", DETAILS).json()

    assert [it["speaker_id"] for it in content["speaker_turns"]] == ["speaker_0", "speaker_1", "speaker_0"]
    assert spans(content["speaker_turns"]) == [(0, 2666), (2666, 5333), (5333, 8000)]
    assert (content["segments"], content["words"], content["language"]) == ([], [], None)


def test_a_model_for_voice_activity_has_its_stretches_as_segments(speakers):
    content = speakers.listen("noticed", DETAILS).json()

    assert spans(content["segments"]) == [(0, 2666), (2666, 5333), (5333, 8000)]
    assert (content["words"], content["speaker_turns"]) == ([], [])


def test_a_json_body_does_as_well(speakers):
    body = {"model": "told", "audio": base64.b64encode(CLIP).decode()}
    assert len(speakers.client.post(DETAILS, json=body).json()["speaker_turns"]) == 3


def test_it_is_always_whole_and_in_one_format(speakers):
    answer = speakers.listen("heard", DETAILS, response_format="srt", stream="true")
    assert set(answer.json()) == FIELDS


@pytest.mark.parametrize(
    ("fields", "status", "param", "code"),
    [
        ({"model": "spoken"}, 400, "model", None),
        ({"model": "nobody"}, 404, "model", "model_not_found"),
        ({"model": "heard", "language": "xx"}, 400, "language", None),
        ({"model": "heard", "temperature": "0.5"}, 400, "temperature", None),
        ({"model": ""}, 400, "model", None),
    ],
)
def test_what_cannot_be_heard_is_refused_by_the_field_at_fault(speakers, fields, status, param, code):
    assert_refused(speakers.listen(path=DETAILS, **fields), status, param, code)


@pytest.mark.parametrize("name", ["zero_bytes", "header_only", "text", "random", "png"])
@pytest.mark.parametrize("model", ["heard", "told", "noticed"])
def test_a_file_that_is_no_audio_is_refused_and_harms_nothing(speakers, model, name):
    assert_refused(speakers.listen(model, DETAILS, bad_audio()[name]), 400, param="file")
    assert_unharmed(speakers.process, speakers.client, lambda: speakers.listen(model, DETAILS))
