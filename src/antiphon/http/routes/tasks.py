"""`POST /v1/tasks/run`, `stream` and `batch`: any model's task, in the engine's own terms."""

import base64
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import assert_never

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.answers import TaskAnswer
from antiphon.http.bodies import read_json
from antiphon.http.document import INFERENCE_ERRORS, answered
from antiphon.http.fields import VoiceSources, busy_timeout_ms, called, open_audio, run_timeout_ms
from antiphon.http.presence import while_connected
from antiphon.http.routing import post
from antiphon.http.schemas import TaskBatchBody, TaskBody, TaskRunBody, operation
from antiphon.http.streaming import SSE_END, SSE_TYPE, AudioJsonResponse, EventResponse, event, json_answer
from antiphon.http.timing import timing_header, timing_json
from antiphon.ports.codec import Encoded
from antiphon.service.tasks import Heard, TaskBatch, TaskDone, TaskOrder, TaskService, TaskStream
from antiphon.transcripts.spans import details_json
from antiphon.vocabulary.tasks import (
    AudioDelta,
    Final,
    SpeechStarted,
    SpeechStopped,
    TaskResult,
    TextDelta,
    TurnsDelta,
)

_RESULT = answered(TaskAnswer, errors=INFERENCE_ERRORS, timed=True)
_EVENTS = answered({SSE_TYPE: None}, errors=INFERENCE_ERRORS, timed=True)


@dataclass(frozen=True, slots=True)
class TaskSources:
    """Where the sounds of a task may come from, beside its body."""

    audio_roots: tuple[str, ...]
    voices: VoiceSources

    async def opened(self, task: TaskBody, place: str, stack: ExitStack) -> Heard:
        """Open what is to be heard and the voice that is to be imitated; the stack closes them."""
        audio = task.audio
        body = None if audio is None else await open_audio(audio, self.audio_roots, f"{place}.audio")
        if body is not None:
            stack.enter_context(body)
        return Heard(body, await self.voices.opened(task.voice_ref or None, f"{place}.voice_ref", stack))


def add_task_routes(router: APIRouter, service: TaskService, max_body_bytes: int, sources: TaskSources) -> None:
    """The generic task routes."""

    @post(router, "/v1/tasks/run", operation(TaskRunBody) | _RESULT)
    async def run(request: Request) -> Response:
        """Run one task and answer its whole result."""
        body = await read_json(request, TaskRunBody, max_body_bytes)
        order = _timed(_order(body.model, body.request), request, body)
        with ExitStack() as opened, called(_params("request")):
            heard = await sources.opened(body.request, "request", opened)
            return await while_connected(request, service.run(order, heard, _render))

    @post(router, "/v1/tasks/stream", operation(TaskRunBody) | _EVENTS)
    async def stream(request: Request) -> Response:
        """Run one task and answer its result as events while it is made."""
        body = await read_json(request, TaskRunBody, max_body_bytes)
        order = _timed(_order(body.model, body.request), request, body)
        with ExitStack() as opened, called(_params("request")):
            heard = await sources.opened(body.request, "request", opened)
            started = await while_connected(request, service.stream(order, heard))
        return EventResponse(_TaskEvents(started), timing_header(started.timing, run=False))

    @post(router, "/v1/tasks/batch", operation(TaskBatchBody) | _EVENTS)
    async def batch(request: Request) -> Response:
        """Run several tasks in one native batch, and answer each result as it is done."""
        body = await read_json(request, TaskBatchBody, max_body_bytes)
        orders = [_timed(_order(body.model, task), request, body) for task in body.requests]
        with ExitStack() as opened, called(_params("requests")):
            heard = [
                await sources.opened(task, f"requests.{index}", opened) for index, task in enumerate(body.requests)
            ]
            started = await while_connected(request, service.batch(orders, heard))
        return EventResponse(_BatchEvents(started), timing_header(started.timing, run=False))


def _params(place: str) -> dict[str, str]:
    """What the other routes call the fields of a task."""
    names = {"input": "text", "file": "audio", **{name: name for name in ("language", "voice", "voice_ref")}}
    return {name: f"{place}.{ours}" for name, ours in names.items()}


def _timed(order: TaskOrder, request: Request, body: TaskRunBody | TaskBatchBody) -> TaskOrder:
    busy_ms = busy_timeout_ms(request, body.busy_timeout_ms)
    return replace(order, busy_timeout_ms=busy_ms, run_timeout_ms=run_timeout_ms(request, body.run_timeout_ms))


def _order(model: str, task: TaskBody) -> TaskOrder:
    return TaskOrder(
        model=model,
        text=task.text,
        language=task.language,
        voice=task.voice or None,
        seed=task.seed,
        options=task.options,
        reference_text=task.reference_text,
    )


class _TaskEvents:
    """A task's answer as events: deltas, `task.done` with the result but for the audio, then the end mark."""

    def __init__(self, stream: TaskStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        result = TaskResult()
        async for found, audio in self._stream:
            if isinstance(found, Final):
                result = found.result
            else:
                yield event({"type": "task.delta", **self._delta_json(found, audio)})
        await self._stream.aclose()  # the timing is complete, and the slot free, before `done` says so
        done = {"type": "task.done", "result": result_json(result, None), "timing": timing_json(self._stream.timing)}
        yield event(done)
        yield SSE_END

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _delta_json(
        self, found: AudioDelta | TextDelta | TurnsDelta | SpeechStarted | SpeechStopped, audio: bytes | None
    ) -> dict[str, object]:
        match found:
            case AudioDelta():
                return {
                    "audio": base64.b64encode(audio or b"").decode("ascii"),
                    "sample_format": "s16le",
                    "sample_rate": self._stream.sample_rate,
                }
            case TextDelta(text, until_sample):
                return {"text": text, **({} if until_sample is None else {"until_sample": until_sample})}
            case TurnsDelta(turns):
                return {"speaker_turns": [asdict(turn) for turn in turns]}
            case SpeechStarted(at_sample):
                return {"speech_started_sample": at_sample}
            case SpeechStopped(at_sample):
                return {"speech_stopped_sample": at_sample}
            case unknown:
                assert_never(unknown)


class _BatchEvents:
    """A batch's results as events, each with its index, then `task.batch.done`, then the end mark."""

    def __init__(self, batch: TaskBatch) -> None:
        self._batch = batch

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for index, done in self._batch:
            count += 1
            result = result_json(done.result, _base64(done.encoded))
            yield event({"type": "task.batch.result", "index": index, "result": result})
        await self._batch.aclose()
        timing = timing_json(self._batch.timing)
        yield event({"type": "task.batch.done", "result_count": count, "timing": timing})
        yield SSE_END

    async def aclose(self) -> None:
        await self._batch.aclose()


def _render(done: TaskDone) -> Response:
    content = {**_without_audio(done.result), "timing": timing_json(done.timing)}
    headers = timing_header(done.timing)
    if done.encoded is None:
        return json_answer({"audio": None, **content}, headers)
    return AudioJsonResponse(done.encoded.body, content, headers)


def result_json(result: TaskResult, audio: str | None) -> dict[str, object]:
    """A result as JSON, `audio` in base64; spans count samples, what the model did not produce is null or empty."""
    return {"audio": audio, **_without_audio(result)}


def _without_audio(result: TaskResult) -> dict[str, object]:
    return {"text": result.text, **details_json(result)}


def _base64(encoded: Encoded | None) -> str | None:
    if encoded is None:
        return None
    with encoded.body as body:
        return base64.b64encode(body.read()).decode("ascii")
