"""Words and turns joined by hand-worked examples, and the shape of diarized_json as OpenAI's client has it."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.audio import TranscriptionDiarized

from antiphon.transcripts.diarized import diarized_json
from antiphon.transcripts.speakers import Utterance, utterances
from antiphon.vocabulary.tasks import Segment, SpeakerTurn, TaskResult, Word

RATE = 1000
"""A sample is a millisecond, so that the numbers can be read."""

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda it: (it[0], it[0] + it[1])), max_size=8)


def heard(*words: tuple[str, int, int], text: str | None = None) -> TaskResult:
    told = tuple(Word(*word) for word in words)
    return TaskResult(text=text or " ".join(word.text for word in told), words=told, sample_rate=RATE)


def told(*turns: tuple[str, int, int], rate: int = RATE) -> TaskResult:
    return TaskResult(speaker_turns=tuple(SpeakerTurn(a, b, name) for name, a, b in turns), sample_rate=rate)


def joined(words: TaskResult, turns: TaskResult) -> list[tuple[str, str]]:
    return [(it.speaker, it.text) for it in utterances(words, turns)]


def test_words_in_a_row_of_one_turn_are_one_utterance_from_the_first_to_the_last() -> None:
    words = heard(("Hello", 100, 300), ("there.", 300, 600), ("Good", 1100, 1300), ("day.", 1300, 1700))
    assert utterances(words, told(("A", 0, 1000), ("B", 1000, 2000))) == [
        Utterance("A", "Hello there.", 100, 600),
        Utterance("B", "Good day.", 1100, 1700),
    ]


def test_a_word_belongs_to_the_turn_that_it_overlaps_longest() -> None:
    turns = told(("A", 0, 1000), ("B", 1000, 2000))
    assert joined(heard(("mostly", 700, 1200)), turns) == [("A", "mostly")]  # 300 against 200
    assert joined(heard(("mostly", 800, 1300)), turns) == [("B", "mostly")]  # 200 against 300


def test_of_two_equal_overlaps_the_earlier_turn_counts() -> None:
    assert joined(heard(("half", 900, 1100)), told(("B", 1000, 2000), ("A", 0, 1000))) == [("A", "half")]


def test_a_word_in_no_turn_belongs_to_the_nearest() -> None:
    turns = told(("A", 1000, 2000), ("B", 3000, 4000))
    words = heard(("before", 0, 500), ("sooner", 2100, 2300), ("later", 2800, 2950), ("after", 5000, 6000))
    assert joined(words, turns) == [("A", "before sooner"), ("B", "later after")]


def test_the_nearest_turn_may_have_begun_before_another_that_ended_sooner() -> None:
    turns = told(("A", 0, 5000), ("B", 1000, 2000), ("C", 9000, 9500))
    assert joined(heard(("late", 6000, 6100)), turns) == [("A", "late")]


def test_a_word_of_no_length_belongs_to_the_turn_that_it_lies_in() -> None:
    assert joined(heard(("point", 1500, 1500)), told(("A", 0, 1000), ("B", 1200, 2000))) == [("B", "point")]


def test_two_turns_of_one_speaker_are_two_utterances() -> None:
    words = heard(("One.", 0, 500), ("Two.", 1000, 1500))
    assert joined(words, told(("A", 0, 600), ("A", 900, 1600))) == [("A", "One."), ("A", "Two.")]


def test_speakers_who_interrupt_each_other_are_told_apart() -> None:
    words = heard(("I", 0, 400), ("No", 500, 900), ("was", 1000, 1400))
    turns = told(("A", 0, 500), ("B", 500, 1000), ("A", 1000, 1500))
    assert joined(words, turns) == [("A", "I"), ("B", "No"), ("A", "was")]


def test_the_two_models_may_count_at_different_rates() -> None:
    words = heard(("first", 0, 500), ("second", 1000, 1500))
    assert joined(words, told(("A", 0, 8_000), ("B", 8_000, 16_000), rate=8_000)) == [("A", "first"), ("B", "second")]


def test_without_words_each_segment_is_an_utterance() -> None:
    segments = (Segment(" Yes. ", 0, 900), Segment("", 900, 950), Segment("No.", 950, 2000))
    result = TaskResult(text="Yes. No.", segments=segments, sample_rate=RATE)
    assert utterances(result, told(("A", 0, 3000))) == [
        Utterance("A", "Yes.", 0, 900),
        Utterance("A", "No.", 950, 2000),
    ]


def test_where_no_turn_was_found_the_speaker_is_unknown() -> None:
    assert joined(heard(("hello", 0, 500), ("you", 600, 800)), told()) == [("unknown", "hello you")]


@given(words=SPANS, turns=SPANS.filter(bool))
def test_the_sweep_finds_what_a_look_at_every_turn_finds(
    words: Sequence[tuple[int, int]], turns: Sequence[tuple[int, int]]
) -> None:
    def owner(start: int, end: int) -> str:
        shared = [min(end, turn[1]) - max(start, turn[0]) for turn in sorted(turns)]
        best = max(range(len(shared)), key=lambda place: (max(0, shared[place]), min(0, shared[place]), -place))
        return str(best)

    spoken = sorted(words)
    segments = tuple(Segment("x", *span) for span in spoken)
    numbered = told(*((str(place), *turn) for place, turn in enumerate(sorted(turns))))

    found = utterances(TaskResult(segments=segments, sample_rate=RATE), numbered)

    assert [it.speaker for it in found] == [owner(*span) for span in spoken]


def test_silence_has_no_utterance() -> None:
    assert utterances(TaskResult(text=""), TaskResult()) == []
    assert utterances(TaskResult(text="", sample_rate=RATE), told(("A", 0, 1000))) == []


@pytest.mark.parametrize(
    ("text", "words", "parts"),
    [
        ("今天天气很好。", ("今天", "天气", "很好。"), ["今天天气", "很好。"]),
        ("Well - known  facts", ("Well -", "known", "facts"), ["Well - known", "facts"]),
        ("another text", ("It", "was", "late"), ["It was", "late"]),
    ],
)
def test_words_are_joined_as_the_text_has_them(text: str, words: tuple[str, ...], parts: list[str]) -> None:
    spans = ((0, 400), (400, 800), (1200, 1600))
    result = heard(*((word, *span) for word, span in zip(words, spans, strict=True)), text=text)
    assert [it.text for it in utterances(result, told(("A", 0, 1000), ("B", 1000, 2000)))] == parts


def test_the_shape_is_that_of_openais_client() -> None:
    words = heard(("Hello.", 0, 500), ("Hi.", 1000, 1500))
    body = diarized_json(words, told(("A", 0, 900), ("B", 900, 2000)), 2.0004)
    assert body == {
        "task": "transcribe",
        "duration": 2.0,
        "text": "Hello. Hi.",
        "segments": [
            {
                "type": "transcript.text.segment",
                "id": "seg_0",
                "start": 0.0,
                "end": 0.5,
                "text": "Hello.",
                "speaker": "A",
            },
            {"type": "transcript.text.segment", "id": "seg_1", "start": 1.0, "end": 1.5, "text": "Hi.", "speaker": "B"},
        ],
    }
    assert TranscriptionDiarized.model_validate_json(json.dumps(body), strict=True).segments[1].speaker == "B"


def test_silence_has_an_empty_list() -> None:
    assert diarized_json(TaskResult(text=""), TaskResult(), 6.0)["segments"] == []
