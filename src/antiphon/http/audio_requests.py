"""Receives requests to have audio heard, as a form or as JSON, and reads what they ask; what is done is not its."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import BinaryIO, TypeVar

from starlette.requests import Request

from antiphon.http.bodies import MODEL_WANTED, invalid_request, is_json, media_type, read_json
from antiphon.http.fields import busy_timeout_ms, called, integer, number, open_audio, run_timeout_ms, switch
from antiphon.http.multipart import Form, FormLimits, read_form
from antiphon.http.schemas import MAX_TIMEOUT_MS, HeardAudio, HearingFields, TranscriptionFields
from antiphon.service.transcription import TranscriptionOrder
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.terms import MAX_SEED

B = TypeVar("B", bound=HeardAudio)


class AudioRequests:
    """Receives what asks for one file to be heard. Units: `max_body_bytes` of a form, `max_json_bytes` of a JSON body.

    `allowed_roots` are the folders of which a JSON body may name a file.
    """

    def __init__(self, max_body_bytes: int, max_json_bytes: int, allowed_roots: Sequence[str]) -> None:
        self._max_body_bytes = max_body_bytes
        self._max_json_bytes = max_json_bytes
        self._allowed_roots = allowed_roots

    @asynccontextmanager
    async def received(
        self, request: Request, body: type[B]
    ) -> AsyncIterator[tuple[B | TranscriptionFields, BinaryIO]]:
        """The fields and the audio, which is open within the block. Raises what reading them raises.

        What the block refuses of the file is said of the field that brought it.
        """
        if is_json(media_type(request.headers)):
            fields = await read_json(request, body, self._max_json_bytes)
            with await open_audio(fields.audio, self._allowed_roots, "audio") as audio, called({"file": "audio"}):
                yield fields, audio
        else:
            with await self.received_form(request, files=1) as form:
                yield fields_of(form), _only_file(form)

    async def received_form(self, request: Request, *, files: int) -> Form:
        """A whole form with up to so many files; the caller closes it."""
        return await read_form(request, FormLimits(body_bytes=self._max_body_bytes, files=files))


def fields_of(form: Form) -> TranscriptionFields:
    """The fields of a form; it has all that any of the routes reads."""
    model = form.one("model")
    if not model:
        raise invalid_request(("model",), MODEL_WANTED)
    return TranscriptionFields(
        model=model,
        language=form.one("language"),
        prompt=form.one("prompt"),
        temperature=number(form.one("temperature"), "temperature", 0.0, 1.0),
        seed=integer(form.one("seed"), "seed", 0, MAX_SEED),
        busy_timeout_ms=integer(form.one("busy_timeout_ms"), "busy_timeout_ms", 0, MAX_TIMEOUT_MS),
        run_timeout_ms=integer(form.one("run_timeout_ms"), "run_timeout_ms", 0, MAX_TIMEOUT_MS),
        response_format=form.one("response_format") or "json",
        timestamp_granularities=form.values("timestamp_granularities[]") + form.values("timestamp_granularities"),
        diarization_model=form.one("diarization_model") or None,
        stream=switch(form.one("stream"), "stream"),
    )


def order_of(fields: HearingFields, request: Request) -> TranscriptionOrder:
    """What is to be heard and how; the query may say how long to wait and to run where the fields do not."""
    return TranscriptionOrder(
        model=fields.model,
        language=fields.language,
        prompt=fields.prompt,
        temperature=fields.temperature,
        seed=fields.seed,
        options=fields.options,
        busy_timeout_ms=busy_timeout_ms(request, fields.busy_timeout_ms),
        run_timeout_ms=run_timeout_ms(request, fields.run_timeout_ms),
    )


def _only_file(form: Form) -> BinaryIO:
    files = form.files("file")
    if len(files) != 1:
        raise InvalidRequest(f"file: one audio file is wanted, and {len(files)} came", param="file")
    return files[0].body
