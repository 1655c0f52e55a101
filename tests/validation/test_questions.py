"""Questions: what is asked, in which order, and what of an answer counts."""

import json

import pytest

from antiphon.validation.client import Answer
from antiphon.validation.questions import Deck, Input, Question, Way, digest_of, questions_of

A, B, C = (Input(name, {"text": name * size}) for name, size in (("a", 1), ("b", 3), ("c", 2)))
DONE = 'data: {"type": "task.done", "result": {"text": "x"}, "timing": {"run_ms": %d}}\n\ndata: [DONE]\n\n'


def answer(fields: dict[str, object], status: int = 200) -> Answer:
    return Answer(status, json.dumps(fields).encode())


def test_every_input_is_asked_in_the_first_way_and_every_second_and_fourth_in_the_others():
    names = [question.name for question in questions_of([A, B, C, A, B, C], list(Way))]
    assert [name for name in names if name.startswith("run/")] == ["run/a", "run/b", "run/c"] * 2
    assert [name for name in names if name.startswith("stream/")] == ["stream/b", "stream/a", "stream/c"]
    assert [name for name in names if name.startswith("batch/")] == ["batch/b+c", "batch/c+a"]


def test_questions_in_turn_mix_the_ways():
    names = [question.name for question in questions_of([A, B, C], list(Way))]
    assert names == ["run/a", "run/b", "stream/b", "batch/b+c", "run/c"]


def test_a_model_without_a_run_is_asked_everything_in_the_way_that_it_has():
    assert [question.name for question in questions_of([A, B, C], [Way.STREAM])] == ["stream/a", "stream/b", "stream/c"]


def test_a_body_names_the_model_and_brings_the_inputs():
    assert Question(Way.STREAM, (A,)).body("m") == {"model": "m", "request": {"text": "a"}}
    assert Question(Way.BATCH, (A, C)).body("m") == {"model": "m", "requests": [{"text": "a"}, {"text": "cc"}]}


def test_hands_go_on_where_the_last_one_ended_and_every_second_is_reversed():
    deck = Deck(questions_of([A, B, C], [Way.RUN]))
    assert [[it.inputs[0].name for it in deck.hand(2)] for _ in range(3)] == [["a", "b"], ["a", "c"], ["b", "c"]]


def test_the_longest_question_has_the_most_to_do():
    assert Deck(questions_of([A, B, C], [Way.RUN])).longest().inputs == (B,)


def test_nothing_but_the_timing_is_left_out_of_the_digest():
    first, _ = digest_of(Way.RUN, answer({"text": "x", "timing": {"run_ms": 1}}))
    assert first == digest_of(Way.RUN, answer({"text": "x", "timing": {"run_ms": 2}}))[0]
    assert first != digest_of(Way.RUN, answer({"text": "y", "timing": {"run_ms": 1}}))[0]
    assert first != digest_of(Way.RUN, answer({"text": "x", "words": []}))[0]


def test_timing_within_a_result_counts():
    one, two = (digest_of(Way.RUN, answer({"result": {"timing": number}}))[0] for number in (1, 2))
    assert one != two


def test_a_streams_digest_has_every_event():
    delta = 'data: {"type": "task.delta", "text": "x"}\n\n'
    first, _ = digest_of(Way.STREAM, Answer(200, (delta + DONE % 1).encode()))
    assert first == digest_of(Way.STREAM, Answer(200, (delta + DONE % 2).encode()))[0]
    assert first != digest_of(Way.STREAM, Answer(200, (DONE % 1).encode()))[0]


@pytest.mark.parametrize(
    ("way", "given", "fault"),
    [
        (Way.RUN, answer({"error": {}}, status=503), "HTTP 503"),
        (Way.RUN, Answer(200, b"no json"), "cannot be read"),
        (Way.RUN, Answer(200, b"[]"), "cannot be read"),
        (Way.RUN, Answer(200, b"\xff"), "cannot be read"),
        (Way.STREAM, Answer(200, b'data: {"type": "error"}\n\n'), "breaks off"),
        (Way.STREAM, Answer(200, b""), "breaks off"),
    ],
)
def test_what_is_no_answer_has_a_fault_instead_of_a_digest(way, given, fault):
    digest, told = digest_of(way, given)
    assert digest is None
    assert fault in (told or "")
