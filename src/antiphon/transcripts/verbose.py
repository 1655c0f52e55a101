"""OpenAI's `verbose_json` transcript as a JSON value; it sends nothing and knows no route."""

import math

from antiphon.transcripts.clock import span_ms
from antiphon.vocabulary.languages import language_name
from antiphon.vocabulary.tasks import OptionValue, Segment, TaskResult, Word

UNKNOWN_LANGUAGE = "unknown"
"""OpenAI's clients want a string: this one stands where no language was asked for and none was recognised."""


def verbose_json(
    result: TaskResult, duration_s: float, task: str, granularities: frozenset[str]
) -> dict[str, OptionValue]:
    """Shape a transcript as `verbose_json` (https://platform.openai.com/docs/api-reference/audio/verbose-json-object).

    Units: times in seconds, to the millisecond. `task` is "transcribe" or "translate", whose language is English, as
    OpenAI says it: that of the text, whatever was spoken. Segments are always there, words when `granularities` has
    "word"; both are empty for silence. Every number is finite: 0 where the model said none. Raises ValueError for
    spans in a result without a sample rate.
    """
    rate = result.sample_rate or 0
    language = "en" if task == "translate" else result.language
    body: dict[str, OptionValue] = {
        "task": task,
        "language": language_name(language) if language else UNKNOWN_LANGUAGE,
        "duration": round(max(0.0, _finite(duration_s)), 3),
        "text": result.text or "",
        "segments": [_segment(index, segment, rate) for index, segment in enumerate(result.segments)],
    }
    if "word" in granularities:
        body["words"] = [_word(word, rate) for word in result.words]
    return body


def _segment(index: int, segment: Segment, rate: int) -> OptionValue:
    start_ms, end_ms = span_ms(segment, rate)
    return {
        "id": index,
        "seek": 0,
        "start": start_ms / 1000,
        "end": end_ms / 1000,
        "text": segment.text,
        "tokens": list(segment.tokens),
        "temperature": _finite(segment.temperature),
        "avg_logprob": _finite(segment.avg_logprob),
        "compression_ratio": _finite(segment.compression_ratio),
        "no_speech_prob": _finite(segment.no_speech_prob),
    }


def _word(word: Word, rate: int) -> OptionValue:
    start_ms, end_ms = span_ms(word, rate)
    return {"word": word.text.strip(), "start": start_ms / 1000, "end": end_ms / 1000}


def _finite(value: float | None) -> float:
    """JSON has no NaN and no infinity."""
    return value if value is not None and math.isfinite(value) else 0.0
