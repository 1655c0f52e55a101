"""`POST /v1/tasks/run`: any model's task, in the engine's own terms."""

import base64
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.bodies import read_json
from antiphon.http.fields import busy_timeout_ms, called, open_audio
from antiphon.http.presence import while_connected
from antiphon.http.routing import post
from antiphon.http.schemas import TaskRunBody, operation
from antiphon.http.streaming import json_bytes
from antiphon.http.timing import timing_header, timing_json
from antiphon.ports.codec import Encoded
from antiphon.service.tasks import TaskDone, TaskOrder, TaskService
from antiphon.vocabulary.tasks import TaskResult

_PARAMS = {
    "input": "request.text",
    "file": "request.audio",
    "language": "request.language",
    "voice": "request.voice",
}
"""What the other routes call the fields of a task."""


def add_task_routes(router: APIRouter, service: TaskService, max_body_bytes: int, allowed_roots: Sequence[str]) -> None:
    """The generic task routes."""

    @post(router, "/v1/tasks/run", operation(TaskRunBody))
    async def run(request: Request) -> Response:
        """Run one task and answer its whole result."""
        body = await read_json(request, TaskRunBody, max_body_bytes)
        task = body.request
        order = TaskOrder(
            model=body.model,
            text=task.text,
            language=task.language,
            voice=task.voice or None,
            seed=task.seed,
            options=task.options,
            busy_timeout_ms=busy_timeout_ms(request, body.busy_timeout_ms),
        )
        opened = nullcontext() if task.audio is None else open_audio(task.audio, allowed_roots, "request.audio")
        with opened as audio, called(_PARAMS):
            return await while_connected(request, service.run(order, audio, _render))


def _render(done: TaskDone) -> Response:
    content = {**result_json(done.result, _base64(done.encoded)), "timing": timing_json(done.timing)}
    return Response(json_bytes(content), media_type="application/json", headers=timing_header(done.timing))


def result_json(result: TaskResult, audio: str | None) -> dict[str, object]:
    """A result as JSON, `audio` in base64; spans count samples, what the model did not produce is null or empty."""
    return {
        "text": result.text,
        "audio": audio,
        "language": result.language,
        "segments": [asdict(segment) for segment in result.segments],
        "words": [asdict(word) for word in result.words],
        "speaker_turns": [asdict(turn) for turn in result.speaker_turns],
        "sample_rate": result.sample_rate,
    }


def _base64(encoded: Encoded | None) -> str | None:
    if encoded is None:
        return None
    with encoded.body as body:
        return base64.b64encode(body.read()).decode("ascii")
