"""Where things lie in a recording, as JSON values and as lines of text; what the things are is not known here."""

from collections.abc import Iterable
from dataclasses import asdict

from antiphon.transcripts.clock import Span, span_ms
from antiphon.vocabulary.tasks import OptionValue, TaskResult, Word


def span_json(span: Span, rate: int) -> dict[str, OptionValue]:
    """A span in seconds, to the millisecond, and in samples. Units: `rate` in Hz."""
    start_ms, end_ms = span_ms(span, rate)
    return {
        "start": start_ms / 1000,
        "end": end_ms / 1000,
        "start_sample": span.start_sample,
        "end_sample": span.end_sample,
    }


def word_json(word: Word, rate: int) -> dict[str, OptionValue]:
    """A word and where it is; no confidence is null."""
    return {"word": word.text, **span_json(word, rate), "confidence": word.confidence}


def details_json(result: TaskResult) -> dict[str, OptionValue]:
    """All that was found and where, in samples at `sample_rate`; what the model did not produce is empty, or null."""
    return {
        "language": result.language,
        "segments": [asdict(segment) for segment in result.segments],
        "words": [asdict(word) for word in result.words],
        "speaker_turns": [asdict(turn) for turn in result.speaker_turns],
        "sample_rate": result.sample_rate,
    }


def span_lines(labelled: Iterable[tuple[Span, str]], rate: int) -> str:
    """A line for each span: its start and its end in seconds and its label, with tabs between them.

    That is a label track as Audacity reads it (https://manual.audacityteam.org/man/importing_and_exporting_labels.html).
    """
    return "".join(_line(span, " ".join(label.split()), rate) for span, label in labelled)


def _line(span: Span, label: str, rate: int) -> str:
    start_ms, end_ms = span_ms(span, rate)
    return f"{start_ms / 1000:.3f}\t{end_ms / 1000:.3f}\t{label}\n"
