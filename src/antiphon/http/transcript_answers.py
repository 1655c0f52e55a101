"""What was heard in a whole file, in the format that was asked for; it asks no service and reads no request."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from starlette.responses import Response

from antiphon.http.schemas import TranscriptFormat
from antiphon.http.streaming import json_answer
from antiphon.http.timing import timing_header, timing_json
from antiphon.http.transcript_events import turns_json
from antiphon.service.transcription import SpokenTranscript, Transcript
from antiphon.transcripts.diarized import diarized_json
from antiphon.transcripts.spans import details_json
from antiphon.transcripts.srt import srt
from antiphon.transcripts.verbose import verbose_json
from antiphon.transcripts.vtt import vtt
from antiphon.vocabulary.tasks import Task, TaskResult

TEXT_TYPES = {
    TranscriptFormat.TEXT: "text/plain",
    TranscriptFormat.SRT: "text/plain",  # SubRip has no type of its own
    TranscriptFormat.VTT: "text/vtt",
}


class Granularity(StrEnum):
    """What a verbose transcript gives times for."""

    WORD = "word"
    SEGMENT = "segment"


@dataclass(frozen=True, slots=True)
class TranscriptForm:
    """How a transcript is to be answered; `verb` is OpenAI's word for what was done, transcribe or translate."""

    transcript_format: TranscriptFormat = TranscriptFormat.JSON
    granularities: frozenset[Granularity] = frozenset()
    verb: str = "transcribe"


def transcript_answer(transcript: Transcript, form: TranscriptForm) -> Response:
    """A transcript as a whole answer: a text, or JSON with its timing."""
    headers = timing_header(transcript.timing)
    if media_type := TEXT_TYPES.get(form.transcript_format):
        end = "\n" if form.transcript_format is TranscriptFormat.TEXT else ""
        return Response(_text(transcript.result, form.transcript_format) + end, media_type=media_type, headers=headers)
    return json_answer({**transcript_json(transcript, form), "timing": timing_json(transcript.timing)}, headers)


def transcript_json(transcript: Transcript, form: TranscriptForm) -> Mapping[str, object]:
    """A transcript as JSON; a format that is a text is its `text`."""
    if form.transcript_format is TranscriptFormat.VERBOSE_JSON:
        return verbose_json(transcript.result, transcript.duration_s, form.verb, form.granularities)
    if transcript.task is Task.DIAR:
        return turns_json(transcript.result)
    return {"text": _text(transcript.result, form.transcript_format)}


def diarized_answer(transcript: SpokenTranscript) -> Response:
    """A transcript with its speakers, in OpenAI's `diarized_json`."""
    content = diarized_json(transcript.heard, transcript.told, transcript.duration_s)
    timing = transcript.timing
    return json_answer({**content, "timing": timing_json(timing)}, timing_header(timing))


def details_answer(transcript: Transcript) -> Response:
    """All that the model found, in samples."""
    content = {"text": transcript.result.text, **details_json(transcript.result)}
    return json_answer({**content, "timing": timing_json(transcript.timing)}, timing_header(transcript.timing))


def _text(result: TaskResult, transcript_format: TranscriptFormat) -> str:
    match transcript_format:
        case TranscriptFormat.SRT:
            return srt(result.segments, result.sample_rate or 0)
        case TranscriptFormat.VTT:
            return vtt(result.segments, result.sample_rate or 0)
        case _:
            return result.text or ""
