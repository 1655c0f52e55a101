"""Spans as JSON, as label tracks and as RTTM: whole answers compared."""

from antiphon.transcripts.rttm import rttm
from antiphon.transcripts.spans import span_json, span_lines, word_json
from antiphon.vocabulary.tasks import Segment, SpeakerTurn, Word

RATE = 16_000


def test_a_span_is_told_in_seconds_and_in_samples() -> None:
    assert span_json(Word("x", 8, 24_007), RATE) == {
        "start": 0.001,
        "end": 1.5,
        "start_sample": 8,
        "end_sample": 24_007,
    }


def test_a_word_without_a_confidence_has_null_there() -> None:
    assert word_json(Word("x", 0, 16_000), RATE) == {
        "word": "x",
        "start": 0.0,
        "end": 1.0,
        "start_sample": 0,
        "end_sample": 16_000,
        "confidence": None,
    }


def test_a_label_cannot_break_its_line() -> None:
    assert span_lines([(Segment("", 0, 16_000), "a\tb\nc")], RATE) == "0.000\t1.000\ta b c\n"


def test_no_spans_are_an_empty_text() -> None:
    assert span_lines([], RATE) == ""
    assert rttm([], RATE, "x") == ""


def test_a_turn_is_a_line_of_ten_fields_with_its_duration() -> None:
    turns = [SpeakerTurn(7_616, 58_432, "SPEAKER_00"), SpeakerTurn(68_032, 96_832, "the other")]
    assert rttm(turns, RATE, "my meeting") == (
        "SPEAKER my_meeting 1 0.476 3.176 <NA> <NA> SPEAKER_00 <NA> <NA>\n"
        "SPEAKER my_meeting 1 4.252 1.800 <NA> <NA> the_other <NA> <NA>\n"
    )


def test_a_file_or_a_speaker_without_a_name_keeps_its_field() -> None:
    assert len(rttm([SpeakerTurn(0, 1, " ")], RATE, "").split()) == 10
