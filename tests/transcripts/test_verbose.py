"""API-05 and AUD-13: the shape of verbose_json, whole values compared."""

import json
import math

import pytest
from openai.types.audio import TranscriptionVerbose

from antiphon.transcripts.verbose import verbose_json
from antiphon.vocabulary.tasks import Segment, TaskResult, Word

RESULT = TaskResult(
    text="Hello there.",
    language="en",
    segments=(
        Segment(
            " Hello there.",
            0,
            19_992,
            tokens=(50364, 2425),
            temperature=0.2,
            avg_logprob=-0.25,
            compression_ratio=1.5,
            no_speech_prob=0.01,
        ),
    ),
    words=(Word(" Hello", 0, 8_000), Word(" there.", 9_000, 8_000)),
    sample_rate=16_000,
)
SILENCE = TaskResult(text="", sample_rate=16_000)


def test_a_transcript_has_every_field_of_the_openai_shape() -> None:
    assert verbose_json(RESULT, 1.25049, "transcribe", frozenset({"segment"})) == {
        "task": "transcribe",
        "language": "english",
        "duration": 1.25,
        "text": "Hello there.",
        "segments": [
            {
                "id": 0,
                "seek": 0,
                "start": 0.0,
                "end": 1.25,
                "text": " Hello there.",
                "tokens": [50364, 2425],
                "temperature": 0.2,
                "avg_logprob": -0.25,
                "compression_ratio": 1.5,
                "no_speech_prob": 0.01,
            }
        ],
    }


def test_words_come_when_they_are_asked_for_and_never_end_before_they_start() -> None:
    assert verbose_json(RESULT, 1.25, "transcribe", frozenset({"word"}))["words"] == [
        {"word": "Hello", "start": 0.0, "end": 0.5},
        {"word": "there.", "start": 0.563, "end": 0.563},
    ]


@pytest.mark.parametrize("spoken", ["de", None])
def test_a_translation_is_english_whatever_was_spoken(spoken: str | None) -> None:
    body = verbose_json(TaskResult(text="x", language=spoken), 1.0, "translate", frozenset())
    assert (body["task"], body["language"]) == ("translate", "english")


def test_silence_has_empty_text_and_empty_lists() -> None:
    assert verbose_json(SILENCE, 6.0, "transcribe", frozenset({"segment", "word"})) == {
        "task": "transcribe",
        "language": "unknown",
        "duration": 6.0,
        "text": "",
        "segments": [],
        "words": [],
    }


def test_what_the_model_did_not_say_is_zero_and_every_number_is_finite() -> None:
    result = TaskResult(
        text="x", segments=(Segment("x", 0, 1, avg_logprob=-math.inf, temperature=math.nan),), sample_rate=1
    )
    body = verbose_json(result, math.inf, "transcribe", frozenset())
    assert json.loads(json.dumps(body, allow_nan=False))["segments"] == [
        {
            "id": 0,
            "seek": 0,
            "start": 0.0,
            "end": 1.0,
            "text": "x",
            "tokens": [],
            "temperature": 0.0,
            "avg_logprob": 0.0,
            "compression_ratio": 0.0,
            "no_speech_prob": 0.0,
        }
    ]
    assert body["duration"] == 0.0


@pytest.mark.parametrize("result", [RESULT, SILENCE])
def test_the_official_client_accepts_the_value_strictly(result: TaskResult) -> None:
    body = verbose_json(result, 1.25, "transcribe", frozenset({"word"}))
    parsed = TranscriptionVerbose.model_validate_json(json.dumps(body), strict=True)
    assert parsed.text == result.text


def test_a_language_without_a_name_here_keeps_its_code() -> None:
    assert verbose_json(TaskResult(text="x", language="xx"), 1.0, "transcribe", frozenset())["language"] == "xx"


def test_spans_without_a_sample_rate_are_refused() -> None:
    with pytest.raises(ValueError, match="rate must be positive"):
        verbose_json(TaskResult(text="x", segments=(Segment("x", 0, 1),)), 1.0, "transcribe", frozenset())
