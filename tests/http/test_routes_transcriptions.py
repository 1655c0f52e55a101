"""`POST /v1/audio/transcriptions` over real sockets, with the controlled engine: its text is its prompt."""

import base64
import json

import pytest

from controlled_server import CLIP, TRANSCRIPTIONS
from refusals import assert_refused

CLIP_BASE64 = base64.b64encode(CLIP).decode()


def post_json(server, **fields):
    return server.client.post(TRANSCRIPTIONS, json={"model": "asr", "audio": CLIP_BASE64, **fields})


def test_json_is_the_default(server):
    answer = server.transcribe(prompt="first words")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert set(answer.json()) == {"text", "timing"}
    assert answer.json()["text"].endswith("|first words")


def test_text_is_plain_text_without_quotes(server):
    answer = server.transcribe(response_format="text", prompt="plain")

    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.endswith("|plain\n")
    assert '"' not in answer.text


def test_verbose_json_has_openais_members_as_numbers(server):
    answer = server.transcribe(response_format="verbose_json", prompt="two words").json()

    assert (answer["task"], answer["duration"]) == ("transcribe", 0.5)
    assert isinstance(answer["language"], str)
    assert [(it["id"], it["start"], it["end"]) for it in answer["segments"]] == [(0, 0.0, 0.5)]
    assert "words" not in answer


def test_word_times_are_refused_by_a_model_that_cannot_be_asked_for_them(server):
    answer = server.transcribe(response_format="verbose_json", **{"timestamp_granularities[]": ["word", "segment"]})

    assert_refused(answer, 400, param="timestamp_granularities")


@pytest.mark.parametrize("name", ["JSON", "Verbose_Json"])
def test_a_format_is_known_in_any_case_of_its_letters(server, name):
    assert server.transcribe(response_format=name).status_code == 200


def test_an_empty_format_is_the_default(server):
    assert "text" in server.transcribe(response_format="").json()


def test_a_json_body_carries_base64(server):
    assert post_json(server, prompt="base64").json()["text"].endswith("|base64")


def test_a_json_body_carries_base64_in_an_object(server):
    assert post_json(server, audio={"data": CLIP_BASE64}).status_code == 200


def test_a_stream_has_deltas_whose_sum_is_the_text_of_done(server):  # API-02
    answer = server.transcribe(stream="true", prompt="piece by piece")

    assert answer.headers["content-type"] == "text/event-stream"
    blocks = [block.removeprefix("data: ") for block in answer.text.split("\n\n") if block]
    assert blocks[-1] == "[DONE]"
    *deltas, done = map(json.loads, blocks[:-1])
    assert {delta["type"] for delta in deltas} == {"transcript.text.delta"}
    assert (done["type"], set(done["timing"])) == ("transcript.text.done", {"queue_ms", "load_ms", "run_ms"})
    assert "".join(delta["delta"] for delta in deltas) == done["text"]
    assert done["text"].endswith("|piece by piece")


def test_a_json_body_streams_too(server):
    assert post_json(server, stream=True).headers["content-type"] == "text/event-stream"


def test_a_fault_in_mid_stream_is_an_error_event_and_no_done(server):
    with server.steered("stream.fail", model_id="asr"):
        answer = server.transcribe(stream="true")

    *_, error = [json.loads(block.removeprefix("data: ")) for block in answer.text.split("\n\n") if block]
    assert (error["type"], error["error"]["code"]) == ("error", "engine_error")
    assert ".done" not in answer.text


@pytest.mark.parametrize("language", ["", "auto", "en", "EN", "en-US", "en_GB", "English", "english"])
def test_a_language_is_known_by_any_of_its_names(server, language):
    assert server.transcribe(language=language).status_code == 200


def test_unknown_fields_are_ignored(server):
    extra = {"user": "u-1", "include[]": ["logprobs"], "chunking_strategy": "auto", "metadata": "{}"}

    assert server.transcribe(**extra).status_code == 200


@pytest.mark.parametrize("fields", [{"temperature": ""}, {"temperature": "0"}, {"stream": "false"}, {"stream": ""}])
def test_fields_that_ask_for_nothing_are_taken(server, fields):
    assert "text" in server.transcribe(**fields).json()


def test_the_audio_is_refused_before_a_slot_is_taken(parallel_server):
    with parallel_server.steered("run.hold", model_id="asr") as checkpoint:
        running = [parallel_server.threads.submit(parallel_server.transcribe, prompt=f"slot {n}") for n in range(2)]
        for n in range(2):
            checkpoint.wait_for("run", text=f"slot {n}")

        refused = parallel_server.transcribe(b"no audio at all", prompt="refused")

        assert_refused(refused, 400, param="file")
        assert not any(done.done() for done in running)


def test_a_bad_file_does_not_load_the_model(parallel_server):
    parallel_server.client.post("/v1/models/unload", json={"id": "asr"})

    assert_refused(parallel_server.transcribe(b""), 400, param="file")

    assert parallel_server.model("asr")["loaded"] is False
