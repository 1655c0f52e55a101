"""`POST /v1/audio/transcriptions` and what is like it: what is said in a file, in English too, and who speaks when."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from typing import BinaryIO

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.answers import (
    DetailsAnswer,
    DiarizedTranscript,
    SpeakerTurns,
    TranscriptJson,
    VerboseTranscript,
)
from antiphon.http.audio_requests import AudioRequests, fields_of, order_of
from antiphon.http.document import INFERENCE_ERRORS, UNSUPPORTED_TYPE, answered
from antiphon.http.fields import choice
from antiphon.http.presence import while_connected
from antiphon.http.routing import post
from antiphon.http.schemas import (
    BatchForm,
    DetailsBody,
    TranscriptFormat,
    TranscriptionBody,
    TranscriptionFields,
    TranslationBody,
    form_operation,
    operation,
)
from antiphon.http.streaming import SSE_END, SSE_TYPE, EventResponse, event
from antiphon.http.timing import timing_header, timing_json
from antiphon.http.transcript_answers import (
    TEXT_TYPES,
    Granularity,
    TranscriptForm,
    details_answer,
    diarized_answer,
    transcript_answer,
    transcript_json,
)
from antiphon.http.transcript_events import ServerSentTranscript, TranscriptEvents
from antiphon.service.transcription import (
    LISTENERS,
    TranscriptBatch,
    TranscriptionOrder,
    TranscriptionService,
    WordTimes,
)
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.tasks import Task

MAX_BATCH_FILES = 64
"""The most recordings of one batch. Each may take a file descriptor while the form arrives."""

_FOUND_IN_AUDIO = (*LISTENERS, Task.VAD)
"""What the models are for whose whole finding `details` can tell; an alignment needs a text as well."""

_ERRORS = (*INFERENCE_ERRORS, UNSUPPORTED_TYPE)
_ANSWERS = answered(
    {
        "application/json": TranscriptJson | VerboseTranscript | DiarizedTranscript | SpeakerTurns,
        **dict.fromkeys(TEXT_TYPES.values()),
        SSE_TYPE: None,
    },
    errors=_ERRORS,
    timed=True,
    description="A transcript, or events.",
)
_TRANSLATED = answered(
    {
        "application/json": TranscriptJson | VerboseTranscript,
        **dict.fromkeys(TEXT_TYPES.values()),
        SSE_TYPE: None,
    },
    errors=_ERRORS,
    timed=True,
    description="A transcript in English, or events.",
)
_FOUND = answered(DetailsAnswer, errors=_ERRORS, timed=True)
_EVENTS = answered({SSE_TYPE: None}, errors=_ERRORS, timed=True)


def add_transcription_routes(router: APIRouter, service: TranscriptionService, requests: AudioRequests) -> None:
    """The routes that have audio transcribed."""

    @post(router, "/v1/audio/transcriptions", operation(TranscriptionBody, file_in_form="audio") | _ANSWERS)
    async def transcriptions(request: Request) -> Response:
        """Have a file transcribed, or its speakers told apart: whole, or as events as it is found (`stream`)."""
        async with requests.received(request, TranscriptionBody) as (fields, audio):
            form = _form_of(fields)
            order = _transcription_order(order_of(fields, request), form, stream=fields.stream)
            if form.transcript_format is TranscriptFormat.DIARIZED_JSON:
                work = service.transcribe_speakers(order, fields.diarization_model, audio, diarized_answer)
                return await while_connected(request, work)
            return await while_connected(request, _answer(service, order, form, audio, stream=fields.stream))

    @post(router, "/v1/audio/translations", operation(TranslationBody, file_in_form="audio") | _TRANSLATED)
    async def translations(request: Request) -> Response:
        """Have what is said in a file written in English: whole, or as events as it is found (`stream`)."""
        async with requests.received(request, TranslationBody) as (fields, audio):
            form = TranscriptForm(_format_of(fields.response_format, TranscriptFormat.DIARIZED_JSON), verb="translate")
            order = replace(order_of(fields, request), into_english=True)
            return await while_connected(request, _answer(service, order, form, audio, stream=fields.stream))

    @post(router, "/v1/audio/transcriptions/details", operation(DetailsBody, file_in_form="audio") | _FOUND)
    async def details(request: Request) -> Response:
        """Have a file heard, and all that the model found in it told, in samples."""
        async with requests.received(request, DetailsBody) as (fields, audio):
            order = replace(order_of(fields, request), word_times=WordTimes.WHERE_TOLD, tasks=_FOUND_IN_AUDIO)
            return await while_connected(request, service.transcribe(order, audio, details_answer))

    @post(router, "/v1/batches/transcriptions", form_operation(BatchForm, "audio", several=True) | _EVENTS)
    async def batch(request: Request) -> Response:
        """Have several files, each a form field `file`, transcribed in one native batch; each is answered when done."""
        with await requests.received_form(request, files=MAX_BATCH_FILES) as received:
            fields = fields_of(received)
            form = _form_of(fields, TranscriptFormat.DIARIZED_JSON)
            order = _transcription_order(order_of(fields, request), form, stream=False)
            files = received.files("file")
            if not files:
                raise InvalidRequest("file: one audio file or more is wanted, and none came", param="file")
            started = await while_connected(request, service.batch(order, [it.body for it in files]))
            names = [it.filename for it in files]
        return EventResponse(_BatchEvents(started, form, names), timing_header(started.timing, run=False))


async def _answer(
    service: TranscriptionService, order: TranscriptionOrder, form: TranscriptForm, audio: BinaryIO, *, stream: bool
) -> Response:
    if stream:
        started = await service.stream(order, audio)
        return EventResponse(ServerSentTranscript(TranscriptEvents(started)), timing_header(started.timing, run=False))
    return await service.transcribe(order, audio, partial(transcript_answer, form=form))


def _form_of(fields: TranscriptionFields, *without: TranscriptFormat) -> TranscriptForm:
    wanted = frozenset(choice(Granularity, it, "timestamp_granularities") for it in fields.timestamp_granularities)
    return TranscriptForm(_format_of(fields.response_format, *without), wanted)


def _format_of(text: str, *without: TranscriptFormat) -> TranscriptFormat:
    return choice(TranscriptFormat, text, "response_format", without=without)


def _transcription_order(order: TranscriptionOrder, form: TranscriptForm, *, stream: bool) -> TranscriptionOrder:
    """The order as the form of its answer has it; raises InvalidRequest for a stream of what is there only at the end.

    Who speaks when has a place in JSON and in events; for a transcript with speakers, words are joined with them.
    """
    if form.transcript_format is TranscriptFormat.DIARIZED_JSON:
        if stream:
            raise InvalidRequest(
                "diarized_json is there once both models are through; it has no stream", param="stream"
            )
        return replace(order, word_times=WordTimes.WHERE_TOLD)
    words = WordTimes.REQUIRED if Granularity.WORD in form.granularities else WordTimes.UNWANTED
    tasks = LISTENERS if stream or form.transcript_format is TranscriptFormat.JSON else (Task.ASR,)
    return replace(order, word_times=words, tasks=tasks)


class _BatchEvents:
    """A batch's transcripts as events, each with its index and file name, then `done`, then the end mark."""

    def __init__(self, batch: TranscriptBatch, form: TranscriptForm, filenames: Sequence[str | None]) -> None:
        self._batch = batch
        self._form = form
        self._filenames = filenames

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for index, transcript in self._batch:
            count += 1
            place = {"type": "batch.transcription.result", "index": index, "filename": self._filenames[index]}
            yield event({**place, **transcript_json(transcript, self._form)})
        await self._batch.aclose()
        timing = timing_json(self._batch.timing)
        yield event({"type": "batch.transcription.done", "result_count": count, "timing": timing})
        yield SSE_END

    async def aclose(self) -> None:
        await self._batch.aclose()
