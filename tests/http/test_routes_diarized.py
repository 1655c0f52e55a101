"""`diarized_json` over real sockets: one model hears, another tells speakers apart, and there are never two leases."""

import base64
from contextlib import closing

import pytest
from openai.types.audio import TranscriptionDiarized

from controlled_server import CLIP, TRANSCRIPTIONS
from refusals import assert_refused, assert_unharmed
from server_process import HANG_GUARD_S
from speakers_server import speakers_server


def said(answer):
    return [(it["speaker"], it["text"].rpartition("|")[2], it["start"], it["end"]) for it in answer.json()["segments"]]


def loads_as(server, model_id, task):
    """Register a model anew, for another task."""
    path = str(server.checkpoints[model_id].path)
    body = {"id": model_id, "family": "controlled", "path": path, "task": task}
    return server.client.post("/v1/models/load", json=body)


def test_each_word_is_said_by_the_speaker_whose_turn_it_is(speakers):
    answer = speakers.diarize("one two three")

    assert said(answer) == [
        ("speaker_0", "one", 0.0, 0.167), ("speaker_1", "two", 0.167, 0.333), ("speaker_0", "three", 0.333, 0.5)
    ]  # fmt: skip


def test_the_answer_is_openais_with_the_timing_of_both_runs(speakers):
    answer = speakers.diarize("one two three")

    content = answer.json()
    assert set(content.pop("timing")) == {"queue_ms", "load_ms", "run_ms"}
    assert "run;dur=" in answer.headers["server-timing"]
    parsed = TranscriptionDiarized.model_validate(content, strict=True)
    assert (parsed.task, parsed.duration, parsed.text.rpartition("|")[2]) == ("transcribe", 0.5, "one two three")
    assert [(it.type, it.id) for it in parsed.segments] == [
        ("transcript.text.segment", f"seg_{number}") for number in range(3)
    ]


def test_a_json_body_names_the_second_model_too(speakers):
    body = {"model": "heard", "audio": base64.b64encode(CLIP).decode(), "diarization_model": "told"}
    answer = speakers.client.post(TRANSCRIPTIONS, json={**body, "response_format": "diarized_json"})
    assert (answer.status_code, len(answer.json()["segments"])) == (200, 1)


def test_what_openai_sends_with_it_is_taken(speakers):
    extra = {"chunking_strategy": "auto", "known_speaker_names[]": ["agent"], "known_speaker_references[]": ["data:,"]}
    assert speakers.diarize("one", **extra).status_code == 200


# Refusals.


def test_without_a_model_for_diarization_that_is_said(parallel_server):
    refusal = assert_refused(
        parallel_server.transcribe(response_format="diarized_json"), 400, param="diarization_model"
    )
    assert refusal.message == "there is no model for diarization"


def test_of_several_models_for_diarization_one_must_be_named(tmp_path):
    with speakers_server(tmp_path, {"heard": "asr", "one": "diar", "two": "diar"}) as server:
        refusal = assert_refused(server.diarize("which"), 400, param="diarization_model")
        assert refusal.message == "there are several models for diarization; name one of one, two"
        assert server.diarize("which", diarization_model="two").status_code == 200


@pytest.mark.parametrize(
    ("fields", "status", "param", "code"),
    [
        ({"diarization_model": "nobody"}, 404, "diarization_model", "model_not_found"),
        ({"diarization_model": "heard"}, 400, "diarization_model", None),
        ({"model": "nobody"}, 404, "model", "model_not_found"),
        ({"model": "told"}, 400, "model", None),
        ({"stream": "true"}, 400, "stream", None),
        ({"file": b"no audio"}, 400, "file", None),
    ],
)
def test_what_cannot_be_answered_so_is_refused_by_the_field_at_fault(speakers, fields, status, param, code):
    assert_refused(speakers.diarize("refused", **fields), status, param, code)
    assert_unharmed(speakers.process, speakers.client, lambda: speakers.diarize("the next"))


def test_a_refused_file_reaches_neither_model(speakers):
    runs = len(speakers.checkpoints["told"].events("run"))
    assert_refused(speakers.diarize("unheard", file=b"no audio"), 400, param="file")
    assert speakers.checkpoints["heard"].events("run", "unheard") == []
    assert len(speakers.checkpoints["told"].events("run")) == runs


def test_a_fault_of_the_second_model_is_the_whole_answer(speakers):
    speakers.checkpoints["told"].fail("run")
    try:
        assert_refused(speakers.diarize("half"), 500, code="engine_error")
    finally:
        speakers.checkpoints["told"].unset("run.fail")
    assert_unharmed(speakers.process, speakers.client, lambda: speakers.diarize("the next"))


# One lease at a time.


def test_the_second_slot_is_asked_for_once_the_first_is_given_back(speakers):
    heard, told = speakers.checkpoints["heard"], speakers.checkpoints["told"]
    with told.held("run"), heard.held("run", "occupant"):
        telling = speakers.later(speakers.listen, "told")
        hearing = speakers.later(speakers.listen, "heard", prompt="occupant")
        for model_id in ("heard", "told"):
            speakers.await_model(model_id, active_slots=1)
        diarized = speakers.later(speakers.diarize, "between")
        speakers.await_model("heard", queued_requests=1)
        assert speakers.client.get("/v1/models/told").json()["queued_requests"] == 0

        heard.release("run", "occupant")
        speakers.await_model("told", queued_requests=1)

        assert speakers.client.get("/v1/models/heard").json()["active_slots"] == 0
        assert speakers.listen("heard", prompt="while it waits").status_code == 200
        assert not diarized.done()
    for call in (telling, hearing, diarized):
        assert call.result(HANG_GUARD_S).status_code == 200


def test_two_requests_that_need_the_same_two_models_in_opposite_order_both_end(tmp_path):
    """Each model becomes the other request's second one while both are in their first run: a registration is a barrier,
    so that a request which kept its first lease would wait for the other one for ever.
    """
    with speakers_server(tmp_path, {"x": "asr", "y": "asr"}, ui_management=True) as server:
        x, y = server.checkpoints["x"], server.checkpoints["y"]
        with x.held("run", "first"), y.held("run", "second"):
            first = server.later(server.diarize, "first", model="x", diarization_model="y")
            second = server.later(server.diarize, "second", model="y", diarization_model="x")
            x.wait_for("run", text="first")
            y.wait_for("run", text="second")
            changes = [server.later(loads_as, server, model_id, "diar") for model_id in ("x", "y")]
            for model_id in ("x", "y"):
                server.await_queue(model_id, "load")

        assert [it[1] for it in said(first.result(HANG_GUARD_S))] == ["first"]
        assert [it[1] for it in said(second.result(HANG_GUARD_S))] == ["second"]
        assert [change.result(HANG_GUARD_S).status_code for change in changes] == [200, 200]


def test_one_model_in_memory_at_a_time_is_enough(tmp_path):
    with speakers_server(tmp_path, {"heard": "asr", "told": "diar"}, max_loaded_models=1) as server:
        assert [server.diarize("again").status_code for _ in range(2)] == [200, 200]


def test_a_second_model_that_is_busy_makes_the_whole_answer_a_503(speakers):
    with speakers.checkpoints["told"].held("run"):
        telling = speakers.later(speakers.listen, "told")
        speakers.await_model("told", active_slots=1)

        assert_refused(speakers.diarize("in vain", busy_timeout_ms=50), 503, code="server_busy")

        assert speakers.client.get("/v1/models/heard").json()["active_slots"] == 0
    assert telling.result(HANG_GUARD_S).status_code == 200
    assert_unharmed(speakers.process, speakers.client, lambda: speakers.diarize("the next"))


def test_a_client_that_leaves_in_the_first_run_never_asks_for_the_second(speakers):
    heard, told = speakers.checkpoints["heard"], speakers.checkpoints["told"]
    runs = len(told.events("run"))
    heard.set("run.cancellable")
    try:
        with heard.held("run", "leaves"):
            with closing(speakers.diarize_unheard("leaves")):
                heard.wait_for("run", text="leaves")
            heard.wait_for("ran", text="leaves")  # it was told that nobody waits: the hold is still there
    finally:
        heard.unset("run.cancellable")

    assert speakers.diarize("stays").status_code == 200
    assert len(told.events("run")) == runs + 1


def test_a_client_that_leaves_between_the_runs_leaves_the_second_queue(speakers):
    told = speakers.checkpoints["told"]
    with told.held("run"):
        telling = speakers.later(speakers.listen, "told")
        speakers.await_model("told", active_slots=1)
        runs = len(told.events("run"))
        with closing(speakers.diarize_unheard("leaves between")):
            speakers.await_model("told", queued_requests=1)
        speakers.await_model("told", queued_requests=0)
    assert telling.result(HANG_GUARD_S).status_code == 200

    assert speakers.diarize("stays").status_code == 200
    assert len(told.events("run")) == runs + 1
