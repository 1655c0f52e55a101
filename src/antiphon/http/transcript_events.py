"""What a model finds while it listens, as the events of OpenAI's API; how they travel is not known here."""

from collections.abc import AsyncIterator
from dataclasses import asdict

from antiphon.http.streaming import SSE_END, event
from antiphon.http.timing import timing_json
from antiphon.service.transcription import TranscriptStream
from antiphon.vocabulary.tasks import Final, Task, TaskResult, TextDelta, TurnsDelta


class TranscriptEvents:
    """The events of one stream, which it owns: text or speaker turns as they are found, then `done` with all of it.

    The joined deltas of a text are the text of `done`. Of an upload each says how far the model has got, where it can
    tell: OpenAI's clients let further members pass. Source: https://platform.openai.com/docs/api-reference/audio.
    """

    def __init__(self, stream: TranscriptStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[dict[str, object]]:
        result = TaskResult()
        async for found in self._stream:
            match found:
                case TextDelta(piece, until_sample):
                    yield {"type": "transcript.text.delta", "delta": piece, **self._progress(until_sample)}
                case TurnsDelta(turns):
                    yield {"type": "diarization.delta", "speaker_turns": [asdict(turn) for turn in turns]}
                case Final(result):
                    pass
                case _:
                    pass
        await self._stream.aclose()  # the timing is complete, and the slot free, before `done` says so
        yield {**self._done(result), "timing": timing_json(self._stream.timing)}

    async def aclose(self) -> None:
        """Stop the engine and give the slot back."""
        await self._stream.aclose()

    def _progress(self, until_sample: int | None) -> dict[str, float]:
        if until_sample is None or not self._stream.duration_s:
            return {}
        duration_s = self._stream.duration_s
        return {"until": min(until_sample / self._stream.sample_rate, duration_s), "duration": duration_s}

    def _done(self, result: TaskResult) -> dict[str, object]:
        if self._stream.task is Task.DIAR:
            return {"type": "diarization.done", **turns_json(result)}
        return {"type": "transcript.text.done", "text": result.text or ""}


def turns_json(result: TaskResult) -> dict[str, object]:
    """Who speaks when, in samples; with the text where the model gave one."""
    text = {} if result.text is None else {"text": result.text}
    turns = [asdict(turn) for turn in result.speaker_turns]
    return {**text, "speaker_turns": turns, "sample_rate": result.sample_rate}


class ServerSentTranscript:
    """The same as server-sent events, with the mark of their end."""

    def __init__(self, events: TranscriptEvents) -> None:
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for found in self._events:
            yield event(found)
        yield SSE_END

    async def aclose(self) -> None:
        """Stop the engine and give the slot back."""
        await self._events.aclose()
