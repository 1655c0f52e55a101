"""`POST /v1/audio/alignments`: when each word of a text is spoken in a file."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from antiphon.http.answers import AlignmentAnswer
from antiphon.http.bodies import MODEL_WANTED, invalid_request
from antiphon.http.document import INFERENCE_ERRORS, UNSUPPORTED_TYPE, answered
from antiphon.http.fields import busy_timeout_ms, integer, run_timeout_ms
from antiphon.http.multipart import Form, FormLimits, read_form
from antiphon.http.presence import while_connected
from antiphon.http.routing import post
from antiphon.http.schemas import MAX_TIMEOUT_MS, AlignmentForm, form_operation
from antiphon.http.streaming import json_answer
from antiphon.http.timing import timing_header, timing_json
from antiphon.service.alignment import Alignment, AlignmentOrder, AlignmentService
from antiphon.transcripts.spans import word_json
from antiphon.vocabulary.errors import InvalidRequest

_ANSWERS = answered(AlignmentAnswer, errors=(*INFERENCE_ERRORS, UNSUPPORTED_TYPE), timed=True)


def add_alignment_routes(router: APIRouter, service: AlignmentService, max_body_bytes: int) -> None:
    """The route that aligns a text with its recording."""
    limits = FormLimits(body_bytes=max_body_bytes)

    @post(router, "/v1/audio/alignments", form_operation(AlignmentForm, "audio") | _ANSWERS)
    async def alignments(request: Request) -> Response:
        """Say when each word of `text` is spoken in `file`."""
        with await read_form(request, limits) as form:
            files = form.files("file")
            if len(files) != 1:
                raise InvalidRequest(f"file: one audio file is wanted, and {len(files)} came", param="file")
            order = _order(form, request)
            return await while_connected(request, service.align(order, files[0].body, _render))


def _order(form: Form, request: Request) -> AlignmentOrder:
    model, text = form.one("model"), form.one("text")
    if not model:
        raise invalid_request(("model",), MODEL_WANTED)
    if not text:
        raise InvalidRequest("text: what is said in the file is wanted", param="text")
    busy_ms = integer(form.one("busy_timeout_ms"), "busy_timeout_ms", 0, MAX_TIMEOUT_MS)
    run_ms = integer(form.one("run_timeout_ms"), "run_timeout_ms", 0, MAX_TIMEOUT_MS)
    return AlignmentOrder(
        model=model,
        text=text,
        language=form.one("language"),
        busy_timeout_ms=busy_timeout_ms(request, busy_ms),
        run_timeout_ms=run_timeout_ms(request, run_ms),
    )


def _render(alignment: Alignment) -> Response:
    result = alignment.result
    rate = result.sample_rate or 0
    content = {
        "language": result.language,
        "duration": round(alignment.duration_s, 3),
        "words": [word_json(word, rate) for word in result.words],
        "sample_rate": result.sample_rate,
        "timing": timing_json(alignment.timing),
    }
    return json_answer(content, timing_header(alignment.timing))
