"""The JSON bodies that the routes take. Unknown fields are ignored: gateways add their own.

Source of the OpenAI shapes: https://platform.openai.com/docs/api-reference/audio.
"""

from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from antiphon.http.document import schema_of
from antiphon.runtime.api import Strategy
from antiphon.vocabulary.terms import MAX_SEED, MAX_SPEED, MIN_SPEED

MAX_TIMEOUT_MS = 2**53 - 1
"""The largest integer that every JSON reader keeps exact."""

_Timeout = Annotated[int | None, Field(ge=0, le=MAX_TIMEOUT_MS, description="longest wait for a slot; 0 = no bound")]
_RunTimeout = Annotated[
    int | None, Field(ge=0, le=MAX_TIMEOUT_MS, description="longest run without progress; 0 = the configured one")
]
_Seed = Annotated[
    int | None, Field(ge=0, le=MAX_SEED, description="equal requests with equal seeds get equal bytes; 0 by default")
]
_Options = Annotated[dict[str, JsonValue], Field(description="the model's own options")]


def _one_of(kind: type[StrEnum], *without: StrEnum) -> Any:  # pydantic's own type
    """Document a field that is read as one of these, but for some, in any case of its letters."""
    return Field(json_schema_extra={"enum": [str(value) for value in kind if value not in without]})


class Body(BaseModel):
    """What all bodies share."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class SpeechFormat(StrEnum):
    """What speech may be answered in: an encoding of `AudioFormat`, or JSON that holds a wav in base64."""

    WAV = "wav"
    MP3 = "mp3"
    OPUS = "opus"
    FLAC = "flac"
    AAC = "aac"
    PCM = "pcm"
    JSON = "json"


class TranscriptFormat(StrEnum):
    """What a transcript may be answered in."""

    JSON = "json"
    TEXT = "text"
    SRT = "srt"
    VTT = "vtt"
    VERBOSE_JSON = "verbose_json"
    DIARIZED_JSON = "diarized_json"


class AudioData(Body):
    """Audio in a JSON body: base64, or a path on the server under an allowed folder."""

    data: str | None = None
    path: str | None = None


_VoiceRef = Annotated[
    AudioData | str | None, Field(description="the recording of a voice to be imitated, or its name in the library")
]


class SpeechBody(Body):
    """`POST /v1/audio/speech`."""

    model: str
    input: str
    voice: str | None = None
    voice_ref: _VoiceRef = None
    reference_text: str | None = None
    response_format: Annotated[str, _one_of(SpeechFormat)] = SpeechFormat.WAV
    speed: float | None = Field(default=None, ge=MIN_SPEED, le=MAX_SPEED)
    seed: _Seed = None
    language: str | None = None
    stream_format: Literal["sse", "audio"] | None = None
    options: _Options = {}
    busy_timeout_ms: _Timeout = None
    run_timeout_ms: _RunTimeout = None


class HearingFields(Body):
    """What every request to have a file heard may say, as JSON or as a form."""

    model: str
    language: str | None = None
    prompt: str | None = None
    temperature: float | None = Field(default=None, ge=0.0, le=1.0)
    seed: _Seed = None
    options: _Options = {}
    busy_timeout_ms: _Timeout = None
    run_timeout_ms: _RunTimeout = None


class TranslationFields(HearingFields):
    """What a translation may say besides."""

    response_format: Annotated[str, _one_of(TranscriptFormat, TranscriptFormat.DIARIZED_JSON)] = TranscriptFormat.JSON
    stream: bool = False


class TranscriptionFields(TranslationFields):
    """What a transcription may say besides."""

    response_format: Annotated[str, _one_of(TranscriptFormat)] = TranscriptFormat.JSON
    timestamp_granularities: list[str] = []
    diarization_model: str | None = Field(default=None, description="for diarized_json; by default the only one")


class HeardAudio(Body):
    """The audio of a JSON body; a form has it as `file`.

    As the first base it comes last among the fields, and so among the faults: a missing model is told of before it.
    """

    audio: AudioData | str


class TranscriptionBody(HeardAudio, TranscriptionFields):
    """`POST /v1/audio/transcriptions` as JSON."""

    timestamp_granularities: list[str] = Field(default=[], max_length=16)


class TranslationBody(HeardAudio, TranslationFields):
    """`POST /v1/audio/translations` as JSON."""


class DetailsBody(HeardAudio, HearingFields):
    """`POST /v1/audio/transcriptions/details` as JSON."""


class BatchForm(HeardAudio, HearingFields):
    """`POST /v1/batches/transcriptions`, a form: `audio` stands for its `file`s."""

    response_format: Annotated[str, _one_of(TranscriptFormat, TranscriptFormat.DIARIZED_JSON)] = TranscriptFormat.JSON
    timestamp_granularities: list[str] = []


class AlignmentForm(Body):
    """`POST /v1/audio/alignments`, a form: `audio` stands for its `file`."""

    model: str
    audio: str
    text: str = Field(description="what is said in the file")
    language: str | None = None
    busy_timeout_ms: _Timeout = None
    run_timeout_ms: _RunTimeout = None


class TaskBody(Body):
    """The `request` of `POST /v1/tasks/run` and `stream`, and one of the `requests` of `batch`."""

    text: str | None = None
    audio: AudioData | str | None = None
    language: str | None = None
    voice: str | None = None
    voice_ref: _VoiceRef = None
    reference_text: str | None = None
    seed: _Seed = None
    options: _Options = {}


class TaskRunBody(Body):
    """`POST /v1/tasks/run` and `stream`."""

    model: str
    request: TaskBody
    busy_timeout_ms: _Timeout = None
    run_timeout_ms: _RunTimeout = None


class TaskBatchBody(Body):
    """`POST /v1/tasks/batch`."""

    model: str
    requests: list[TaskBody] = Field(min_length=1, max_length=256)
    busy_timeout_ms: _Timeout = None
    run_timeout_ms: _RunTimeout = None


class LoadBody(BaseModel):
    """`POST /v1/models/load`: the id alone, or the id and every field of the model's configuration."""

    model_config = ConfigDict(extra="allow", frozen=True)

    id: str
    strategy: Strategy = Strategy.REPLACE
    dry_run: bool = False


class ModelsRootBody(Body):
    """`POST /v1/ui/models_root`."""

    path: str
    dry_run: bool = False


class PackageBody(Body):
    """`POST /v1/ui/packages/install`, `stop` and `remove`."""

    id: str
    dry_run: bool = False


class UnloadBody(Body):
    """`POST /v1/models/unload`."""

    id: str
    force: bool = False
    dry_run: bool = False


class BulkUnloadBody(Body):
    """`POST /v1/tasks/unload_models`."""

    model_ids: list[str] = Field(max_length=10_000)
    force: bool = False
    dry_run: bool = False


class BulkUnloadAllBody(Body):
    """`POST /v1/tasks/unload_all_models`."""

    force: bool = False
    dry_run: bool = False


@cache  # the same for every application, and most of what building one takes
def operation(
    body: type[BaseModel], *, file_in_form: str | None = None, waits: bool = True
) -> dict[str, Any]:  # OpenAPI's own type
    """Describe what a route takes for the OpenAPI document: the routes read bodies and queries themselves.

    `file_in_form` names the field that a form has a file for; the form's file is called `file`. `waits` says whether
    the route's own wait may be bounded in the query.
    """
    content = {"application/json": {"schema": schema_of(body)}}
    if file_in_form is not None:
        content |= _form(body, file_in_form)
    return _described(body, content) if waits else {"requestBody": {"required": True, "content": content}}


@cache
def form_operation(
    body: type[BaseModel], file_in_form: str, *, several: bool = False
) -> dict[str, Any]:  # OpenAPI's own type
    """Describe a route that takes a form alone, with one file in `file`, or with `several` one or more."""
    return _described(body, _form(body, file_in_form, several=several))


def _form(body: type[BaseModel], file_in_form: str, *, several: bool = False) -> dict[str, Any]:
    """A form has no objects, and says by a field's name that it is a list."""
    schema = schema_of(body)
    fields = {
        f"{name}[]" if field.get("type") == "array" else name: field
        for name, field in schema["properties"].items()
        if name not in (file_in_form, "options")
    }
    file = {"type": "string", "format": "binary"}
    fields["file"] = {"type": "array", "items": file, "minItems": 1} if several else file
    required = ["file" if name == file_in_form else name for name in schema["required"]]
    return {"multipart/form-data": {"schema": {"type": "object", "properties": fields, "required": required}}}


def _described(body: type[BaseModel], content: dict[str, Any]) -> dict[str, Any]:
    runs = "run_timeout_ms" in body.model_fields
    in_query = [_TIMEOUT_IN_QUERY, _RUN_TIMEOUT_IN_QUERY] if runs else [_TIMEOUT_IN_QUERY]
    return {"parameters": in_query, "requestBody": {"required": True, "content": content}}


_TIMEOUT_IN_QUERY = {
    "name": "busy_timeout_ms",
    "in": "query",
    "description": "longest wait for a slot, in milliseconds; 0 = no bound. A body's own value goes before it",
    "schema": {"type": "integer", "minimum": 0, "maximum": MAX_TIMEOUT_MS},
}

_RUN_TIMEOUT_IN_QUERY = {
    "name": "run_timeout_ms",
    "in": "query",
    "description": "longest run without progress, in milliseconds; 0 = the configured one. As `busy_timeout_ms`",
    "schema": {"type": "integer", "minimum": 0, "maximum": MAX_TIMEOUT_MS},
}


def live_operation() -> dict[str, Any]:  # OpenAPI's own type
    """Describe the route of live audio, which takes raw samples and has all else in its query."""
    content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {
        "parameters": [*_LIVE_IN_QUERY, _TIMEOUT_IN_QUERY, _RUN_TIMEOUT_IN_QUERY],
        "requestBody": {"required": True, "content": content},
    }


def in_query(name: str, description: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    """Describe a parameter of the query."""
    return {"name": name, "in": "query", "required": required, "description": description, "schema": schema}


_LIVE_IN_QUERY = [
    in_query("model", "the model that listens", {"type": "string"}, required=True),
    in_query("sample_rate", "frames a second", {"type": "integer", "default": 16_000}),
    in_query("channels", "interleaved channels, which are mixed", {"type": "integer", "default": 1}),
    in_query(
        "sample_format", "how samples are written", {"enum": ["s16le", "f32le", "mulaw", "alaw"], "default": "s16le"}
    ),
    in_query("language", "what is spoken, as an ISO 639-1 code", {"type": "string"}),
    in_query("prompt", "a text that the transcript follows on from", {"type": "string"}),
]
