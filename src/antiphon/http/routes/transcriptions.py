"""`POST /v1/audio/transcriptions`, as a form or as JSON: what is said, or for a diarization model who speaks when."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import BinaryIO

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.bodies import MODEL_WANTED, invalid_request, is_json, media_type, read_json
from antiphon.http.fields import busy_timeout_ms, called, choice, integer, number, open_audio, run_timeout_ms, switch
from antiphon.http.multipart import Form, FormLimits, read_form
from antiphon.http.presence import while_connected
from antiphon.http.routing import post
from antiphon.http.schemas import MAX_SEED, MAX_TIMEOUT_MS, TranscriptionBody, form_operation, operation
from antiphon.http.streaming import SSE_END, EventResponse, event, json_answer
from antiphon.http.timing import timing_header, timing_json
from antiphon.http.transcript_events import ServerSentTranscript, TranscriptEvents, turns_json
from antiphon.service.transcription import (
    LISTENERS,
    Transcript,
    TranscriptBatch,
    TranscriptionOrder,
    TranscriptionService,
)
from antiphon.transcripts.verbose import verbose_json
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.tasks import Task


class TranscriptFormat(StrEnum):
    """How a transcript is answered."""

    JSON = "json"
    TEXT = "text"
    VERBOSE_JSON = "verbose_json"


class Granularity(StrEnum):
    """What a verbose transcript gives times for."""

    WORD = "word"
    SEGMENT = "segment"


@dataclass(frozen=True, slots=True)
class _Call:
    """One request, from either kind of body."""

    order: TranscriptionOrder
    transcript_format: TranscriptFormat
    granularities: frozenset[Granularity]
    stream: bool


def add_transcription_routes(
    router: APIRouter, service: TranscriptionService, max_body_bytes: int, allowed_roots: Sequence[str]
) -> None:
    """The routes that have audio transcribed."""
    limits = FormLimits(body_bytes=max_body_bytes)

    @post(router, "/v1/audio/transcriptions", operation(TranscriptionBody, file_in_form="audio"))
    async def transcriptions(request: Request) -> Response:
        """Have a file transcribed, or its speakers told apart: whole, or as events as it is found (`stream`)."""
        if is_json(media_type(request.headers)):
            body = await read_json(request, TranscriptionBody, max_body_bytes)
            call = _timed(_call_of_json(body), request)
            with open_audio(body.audio, allowed_roots, "audio") as audio, called({"file": "audio"}):
                return await while_connected(request, _answer(service, call, audio))
        with await read_form(request, limits) as form:
            call = _timed(_call_of_form(form), request)
            return await while_connected(request, _answer(service, call, _only_file(form)))

    @post(router, "/v1/batches/transcriptions", form_operation(TranscriptionBody, "audio"))
    async def batch(request: Request) -> Response:
        """Have several files, each a form field `file`, transcribed in one native batch; each is answered when done."""
        with await read_form(request, limits) as form:
            call = _timed(_call_of_form(form), request)
            files = form.files("file")
            if not files:
                raise InvalidRequest("file: one audio file or more is wanted, and none came", param="file")
            started = await while_connected(request, service.batch(call.order, [it.body for it in files]))
            names = [it.filename for it in files]
        return EventResponse(_BatchEvents(started, call, names), timing_header(started.timing, run=False))


async def _answer(service: TranscriptionService, call: _Call, audio: BinaryIO) -> Response:
    if call.stream:
        stream = await service.stream(call.order, audio)
        return EventResponse(ServerSentTranscript(TranscriptEvents(stream)), timing_header(stream.timing, run=False))
    return await service.transcribe(call.order, audio, _renderer(call))


def _timed(call: _Call, request: Request) -> _Call:
    busy_ms = busy_timeout_ms(request, call.order.busy_timeout_ms)
    run_ms = run_timeout_ms(request, call.order.run_timeout_ms)
    return replace(call, order=replace(call.order, busy_timeout_ms=busy_ms, run_timeout_ms=run_ms))


def _call_of_json(body: TranscriptionBody) -> _Call:
    return _call(
        TranscriptionOrder(
            model=body.model,
            language=body.language,
            prompt=body.prompt,
            temperature=body.temperature,
            seed=body.seed,
            options=body.options,
            busy_timeout_ms=body.busy_timeout_ms,
            run_timeout_ms=body.run_timeout_ms,
        ),
        body.response_format,
        body.timestamp_granularities,
        stream=body.stream,
    )


def _call_of_form(form: Form) -> _Call:
    model = form.one("model")
    if not model:
        raise invalid_request(("model",), MODEL_WANTED)
    return _call(
        TranscriptionOrder(
            model=model,
            language=form.one("language"),
            prompt=form.one("prompt"),
            temperature=number(form.one("temperature"), "temperature", 0.0, 1.0),
            seed=integer(form.one("seed"), "seed", 0, MAX_SEED) or 0,
            busy_timeout_ms=integer(form.one("busy_timeout_ms"), "busy_timeout_ms", 0, MAX_TIMEOUT_MS),
            run_timeout_ms=integer(form.one("run_timeout_ms"), "run_timeout_ms", 0, MAX_TIMEOUT_MS),
        ),
        form.one("response_format") or TranscriptFormat.JSON,
        form.values("timestamp_granularities[]") + form.values("timestamp_granularities"),
        stream=switch(form.one("stream"), "stream"),
    )


def _call(order: TranscriptionOrder, response_format: str, granularities: Sequence[str], *, stream: bool) -> _Call:
    wanted = frozenset(choice(Granularity, it, "timestamp_granularities") for it in granularities)
    transcript_format = choice(TranscriptFormat, response_format, "response_format")
    tasks = LISTENERS if stream or transcript_format is TranscriptFormat.JSON else (Task.ASR,)
    return _Call(
        order=replace(order, word_times=Granularity.WORD in wanted, tasks=tasks),
        transcript_format=transcript_format,
        granularities=wanted,
        stream=stream,
    )


def _only_file(form: Form) -> BinaryIO:
    files = form.files("file")
    if len(files) != 1:
        raise InvalidRequest(f"file: one audio file is wanted, and {len(files)} came", param="file")
    return files[0].body


def _renderer(call: _Call) -> Callable[[Transcript], Response]:
    def render(transcript: Transcript) -> Response:
        headers = timing_header(transcript.timing)
        if call.transcript_format is TranscriptFormat.TEXT:
            return Response((transcript.result.text or "") + "\n", media_type="text/plain", headers=headers)
        content = {**_transcript_json(call, transcript), "timing": timing_json(transcript.timing)}
        return json_answer(content, headers)

    return render


def _transcript_json(call: _Call, transcript: Transcript) -> Mapping[str, object]:
    if call.transcript_format is TranscriptFormat.VERBOSE_JSON:
        return verbose_json(transcript.result, transcript.duration_s, "transcribe", call.granularities)
    if transcript.task is Task.DIAR:
        return turns_json(transcript.result)
    return {"text": transcript.result.text or ""}


class _BatchEvents:
    """A batch's transcripts as events, each with its index and file name, then `done`, then the end mark."""

    def __init__(self, batch: TranscriptBatch, call: _Call, filenames: Sequence[str | None]) -> None:
        self._batch = batch
        self._call = call
        self._filenames = filenames

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for index, transcript in self._batch:
            count += 1
            place = {"type": "batch.transcription.result", "index": index, "filename": self._filenames[index]}
            yield event({**place, **_transcript_json(self._call, transcript)})
        await self._batch.aclose()
        timing = timing_json(self._batch.timing)
        yield event({"type": "batch.transcription.done", "result_count": count, "timing": timing})
        yield SSE_END

    async def aclose(self) -> None:
        await self._batch.aclose()
