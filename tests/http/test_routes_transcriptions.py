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


def test_srt_has_numbered_cues(server):
    answer = server.transcribe(response_format="srt", prompt="a cue")

    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    number, times, text = answer.text.removesuffix("\n\n").split("\n")
    assert (number, times) == ("1", "00:00:00,000 --> 00:00:00,500")
    assert text.endswith("|a cue")
    assert "run;dur=" in answer.headers["server-timing"]


def test_vtt_has_its_header_and_a_dot_before_the_milliseconds(server):
    answer = server.transcribe(response_format="vtt", prompt="a cue")

    assert answer.headers["content-type"] == "text/vtt; charset=utf-8"
    header, cue = answer.text.removesuffix("\n\n").split("\n\n")
    assert (header, cue.split("\n")[0]) == ("WEBVTT", "00:00:00.000 --> 00:00:00.500")
    assert cue.endswith("|a cue")


def test_an_unknown_format_is_refused_and_the_supported_ones_are_listed(server):
    refusal = assert_refused(server.transcribe(response_format="xml"), 400, param="response_format")

    supported = "json, text, srt, vtt, verbose_json, diarized_json"
    assert refusal.message == f"response_format 'xml' is not supported; supported are {supported}"


def test_times_of_segments_alone_bring_no_words(server):
    answer = server.transcribe(response_format="verbose_json", **{"timestamp_granularities[]": "segment"}).json()

    assert ("words" in answer, len(answer["segments"])) == (False, 1)


def test_any_number_of_granularities_in_a_form_is_read(server):
    answer = server.transcribe(response_format="verbose_json", **{"timestamp_granularities[]": ["segment"] * 40})

    assert answer.status_code == 200


def test_a_batch_has_subtitles_as_the_text_of_each_result(server):
    files = [("file", ("a.wav", CLIP)), ("file", ("b.wav", CLIP))]
    form = {"model": "asr", "response_format": "vtt"}
    answer = server.client.post("/v1/batches/transcriptions", data=form, files=files)

    blocks = [json.loads(block.removeprefix("data: ")) for block in answer.text.split("\n\n")[:-2]]
    assert [block["text"].split("\n")[0] for block in blocks[:2]] == ["WEBVTT", "WEBVTT"]


def test_a_batch_has_no_format_with_speakers(server):
    form = {"model": "asr", "response_format": "diarized_json"}
    refused = server.client.post("/v1/batches/transcriptions", data=form, files={"file": ("a.wav", CLIP)})

    refusal = assert_refused(refused, 400, param="response_format")
    assert refusal.message.endswith("supported are json, text, srt, vtt, verbose_json")


def test_word_times_are_refused_by_a_model_that_cannot_be_asked_for_them(server):
    answer = server.transcribe(response_format="verbose_json", **{"timestamp_granularities[]": ["word", "segment"]})

    assert_refused(answer, 400, param="timestamp_granularities")


@pytest.mark.parametrize("name", ["JSON", "Verbose_Json", "SRT", "vTT"])
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
    assert [delta["until"] for delta in deltas] == sorted(delta["until"] for delta in deltas)
    assert {delta["duration"] for delta in deltas} == {deltas[-1]["until"]}


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
