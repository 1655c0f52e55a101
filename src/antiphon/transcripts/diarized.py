"""OpenAI's `diarized_json` transcript as a JSON value; it sends nothing and knows no route."""

from antiphon.transcripts.speakers import Utterance, utterances
from antiphon.vocabulary.tasks import OptionValue, TaskResult


def diarized_json(heard: TaskResult, told: TaskResult, duration_s: float) -> dict[str, OptionValue]:
    """Shape a transcript and the turns of its speakers as OpenAI's client knows it (`TranscriptionDiarized`).

    Units: times in seconds, to the millisecond. `speaker` is the diarization model's own name for somebody. Source:
    https://platform.openai.com/docs/api-reference/audio/diarized-json-object.
    """
    return {
        "task": "transcribe",
        "duration": round(duration_s, 3),
        "text": heard.text or "",
        "segments": [_segment(number, it) for number, it in enumerate(utterances(heard, told))],
    }


def _segment(number: int, utterance: Utterance) -> OptionValue:
    return {
        "type": "transcript.text.segment",
        "id": f"seg_{number}",
        "start": utterance.start_ms / 1000,
        "end": utterance.end_ms / 1000,
        "text": utterance.text,
        "speaker": utterance.speaker,
    }
