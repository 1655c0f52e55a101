"""Who speaks when, over real sockets, with the controlled engine: three turns of two speakers."""

import base64
import json

import httpx
import pytest

from antiphon.testing import ControlledCheckpoint
from controlled_server import CLIP, TRANSCRIPTIONS
from refusals import assert_refused
from server_process import HANG_GUARD_S, running_server

TURNS = [("speaker_0", 0, 2666), ("speaker_1", 2666, 5333), ("speaker_0", 5333, 8000)]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a server with one model for diarization, `turns`."""
    folder = tmp_path_factory.mktemp("turns")
    ControlledCheckpoint(folder / "turns")
    models = [{"id": "turns", "family": "controlled", "path": "turns", "task": "diar"}]
    with (
        running_server(folder, {"models": models, "lazy_load": True}) as process,
        httpx.Client(base_url=process.url, timeout=HANG_GUARD_S) as client,
    ):
        yield client


def listen(client, **fields):
    return client.post(TRANSCRIPTIONS, data={"model": "turns", **fields}, files={"file": ("a.wav", CLIP)})


def told(answer):
    return [(it["speaker_id"], it["start_sample"], it["end_sample"]) for it in answer["speaker_turns"]]


def test_json_has_the_turns_in_samples_and_the_text_that_the_model_gave(client):
    answer = listen(client, prompt="words").json()
    assert set(answer) == {"text", "speaker_turns", "sample_rate", "timing"}
    assert (told(answer), answer["sample_rate"]) == (TURNS, 16_000)


@pytest.mark.parametrize("response_format", ["json", "text"])
def test_a_stream_tells_turns_as_they_are_found_and_then_all(client, response_format):
    answer = listen(client, stream="true", response_format=response_format)
    blocks = [block.removeprefix("data: ") for block in answer.text.split("\n\n") if block]
    assert blocks[-1] == "[DONE]"
    *deltas, done = map(json.loads, blocks[:-1])
    assert {delta["type"] for delta in deltas} == {"diarization.delta"}
    assert [turn for delta in deltas for turn in told(delta)] == TURNS
    assert (done["type"], told(done), done["sample_rate"]) == ("diarization.done", TURNS, 16_000)


@pytest.mark.parametrize("response_format", ["text", "srt", "vtt", "verbose_json", "diarized_json"])
def test_a_format_that_has_no_place_for_turns_is_refused(client, response_format):
    refusal = assert_refused(listen(client, response_format=response_format), 400, param="model")
    assert refusal.message == "model 'turns' is for diar, not for asr"


def test_a_batch_is_refused_such_a_format_though_it_says_stream(client):
    form = {"model": "turns", "response_format": "verbose_json", "stream": "true"}
    refused = client.post("/v1/batches/transcriptions", data=form, files={"file": ("a.wav", CLIP)})
    assert_refused(refused, 400, param="model")


def test_the_generic_route_answers_the_same_turns(client):
    body = {"model": "turns", "request": {"audio": base64.b64encode(CLIP).decode()}}
    assert told(client.post("/v1/tasks/run", json=body).json()) == TURNS
