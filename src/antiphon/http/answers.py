"""The shapes of what the routes answer in JSON, for the OpenAPI document; who fills them in is not known here.

Units are those of docs/api.md: milliseconds where a name ends in `_ms`, samples where it ends in `_sample`.
"""

from typing import Literal

from pydantic import JsonValue
from typing_extensions import TypedDict

from antiphon.service.voices import VoiceKind
from antiphon.vocabulary.states import Isolation, ModelState
from antiphon.vocabulary.tasks import Mode, Segment, SpeakerTurn, Task, Word


class ErrorDetail(TypedDict):
    """What went wrong; `param` names the field at fault by its dotted name."""

    message: str
    type: str
    param: str | None
    code: str | None


class Error(TypedDict):
    """Every error, in OpenAI's shape."""

    error: ErrorDetail


class NotReady(Error):
    """`GET /health/ready` before the models of the start are loaded; `missing` is null for who brings no key."""

    missing: list[str] | None


class Health(TypedDict):
    """`GET /health`."""

    status: Literal["ok"]
    models: int


class Ready(TypedDict):
    """`GET /health/ready`."""

    status: Literal["ready"]


class TimingAnswer(TypedDict):
    """Where a request's time went."""

    queue_ms: float
    load_ms: float
    run_ms: float


class _ModelFields(TypedDict):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    family: str
    task: Task
    mode: Mode
    loaded: bool
    aliases: list[str]
    voices: list[str]
    languages: list[str]


class ModelAnswer(_ModelFields, total=False):
    """A model, or an alias of one; slots only with --parallel-jobs."""

    alias_of: str
    slots: int
    active_slots: int
    queued_requests: int
    max_parallel_slots: int | None


class ModelList(TypedDict):
    """`GET /v1/models`."""

    object: Literal["list"]
    data: list[ModelAnswer]


class SpeakingModels(TypedDict):
    """`GET /v1/audio/models`."""

    object: Literal["list"]
    models: list[ModelAnswer]


class _VoiceFields(TypedDict):
    id: str
    name: str
    kind: VoiceKind


class Voice(_VoiceFields, total=False):
    """A voice, and the models that have it where none was named."""

    models: list[str]


class _VoicesFields(TypedDict):
    voices: list[Voice]


class Voices(_VoicesFields, total=False):
    """`GET /v1/audio/voices`; `model` and its `default_preset` where one was named."""

    model: str
    default_preset: str | None


class LeaseAnswer(TypedDict):
    """A lease; `slot` null is exclusive."""

    slot: int | None
    kind: Literal["request", "management"]
    operation: str
    age_ms: int


class WaiterAnswer(TypedDict):
    """Who waits; `position` counts from 1."""

    position: int
    kind: Literal["request", "management"]
    operation: str
    age_ms: int
    estimate_ms: int | None
    waits_for: list[str]


class ModelStatusAnswer(TypedDict):
    """A model with its leases and its queue."""

    id: str
    state: ModelState
    loaded: bool
    slots: int
    active_slots: int
    queued_requests: int
    max_parallel_slots: int | None
    waiting: int
    leases: list[LeaseAnswer]
    queue: list[WaiterAnswer]
    resident_bytes: int | None
    last_error: str | None


class NotServedAnswer(TypedDict):
    """An installed model that the server left out at its start, because something in its package is damaged."""

    id: str
    error: str


class StatusAnswer(TypedDict):
    """`GET /v1/status`; `last_event_id` is that of the last event before this moment."""

    models: list[ModelStatusAnswer]
    not_served: list[NotServedAnswer]
    last_event_id: str


class ForeseenMemory(TypedDict):
    """What is free, and what a call would need."""

    free_bytes: int
    needed_bytes: int


class ForeseenRefusal(ErrorDetail):
    """What a call would be refused with."""

    status: int


class Foreseen(TypedDict):
    """A dry run."""

    dry_run: Literal[True]
    waits_for: list[str]
    evicts: list[str]
    loads: list[str]
    unloads: list[str]
    memory: ForeseenMemory
    estimate_ms: int | None
    refusal: ForeseenRefusal | None


class _RegistrationFields(TypedDict):
    id: str
    family: str
    path: str
    task: Task
    mode: Mode
    lazy: bool
    pinned: bool
    live_ingest: dict[str, int]


class RegistrationAnswer(_RegistrationFields, total=False):
    """`GET /v1/ui/models/{model_id}`: a body for `/v1/models/load`; what is open is left out."""

    slots: int
    aliases: list[str]
    busy_timeout_ms: int
    run_timeout_ms: int
    cancel_timeout_ms: int
    load_timeout_ms: int
    teardown_timeout_ms: int
    threads: int | Literal["auto"]
    isolation: Isolation
    load_options: dict[str, JsonValue]
    session_options: dict[str, JsonValue]
    voice_presets: dict[str, dict[str, JsonValue]]
    default_voice_preset: str
    default_request_options: dict[str, JsonValue]


class LoadedAnswer(TypedDict):
    """`POST /v1/models/load`."""

    id: str
    loaded: bool


class ReturnedMemory(TypedDict):
    """What the server's process held before and after an unload, and what came back."""

    before_bytes: int | None
    after_bytes: int | None
    returned_bytes: int | None


class UnloadedAnswer(LoadedAnswer):
    """`POST /v1/models/unload`."""

    memory: ReturnedMemory | None


class BulkUnloaded(TypedDict):
    """`POST /v1/tasks/unload_models` and `unload_all_models`."""

    unloaded: list[str]
    not_found: list[str]


class ForeseenBulk(Foreseen, BulkUnloaded):
    """A dry run of those."""


class PackageAnswer(TypedDict):
    """A model package; `progress` is from 0 to 1, and null where no install is queued or runs."""

    id: str
    summary: str
    family: str
    task: Task
    mode: Mode
    licence: str
    size_bytes: int
    download_bytes: int
    state: str
    installed: bool
    path: str | None
    phase: str | None
    progress: float | None
    error: str | None


class ForeseenPackage(Foreseen):
    """A dry run about a package, which is told of as it is now."""

    package: PackageAnswer


class ModelsRootAnswer(TypedDict):
    """The folder of the model packages."""

    path: str


class ForeseenRoot(Foreseen, ModelsRootAnswer):
    """A dry run of another folder."""


class SpeechJson(TypedDict):
    """Speech with `response_format` json: a whole wav in base64."""

    audio: str
    timing: TimingAnswer


class DetailsAnswer(TypedDict):
    """`POST /v1/audio/transcriptions/details`: all that was found, in samples."""

    text: str | None
    language: str | None
    segments: list[Segment]
    words: list[Word]
    speaker_turns: list[SpeakerTurn]
    sample_rate: int | None
    timing: TimingAnswer


class TaskAnswer(DetailsAnswer):
    """`POST /v1/tasks/run`; `audio` is a whole wav in base64."""

    audio: str | None


class AlignedWord(TypedDict):
    """A word, and when it is spoken: in seconds and in samples."""

    word: str
    start: float
    end: float
    start_sample: int
    end_sample: int
    confidence: float | None


class AlignmentAnswer(TypedDict):
    """`POST /v1/audio/alignments`."""

    language: str | None
    duration: float
    words: list[AlignedWord]
    sample_rate: int | None
    timing: TimingAnswer


class TranscriptJson(TypedDict):
    """A transcript with `response_format` json."""

    text: str
    timing: TimingAnswer


class _VerboseFields(TranscriptJson):
    task: Literal["transcribe", "translate"]
    language: str
    duration: float
    segments: list[dict[str, JsonValue]]


class VerboseTranscript(_VerboseFields, total=False):
    """A transcript with `response_format` verbose_json; `words` where they were asked for."""

    words: list[dict[str, JsonValue]]


class DiarizedSegment(TypedDict):
    """What one speaker says, in seconds."""

    type: Literal["transcript.text.segment"]
    id: str
    start: float
    end: float
    text: str
    speaker: str


class DiarizedTranscript(TranscriptJson):
    """A transcript with `response_format` diarized_json."""

    task: Literal["transcribe"]
    duration: float
    segments: list[DiarizedSegment]


class _TurnsFields(TypedDict):
    speaker_turns: list[SpeakerTurn]
    sample_rate: int | None
    timing: TimingAnswer


class SpeakerTurns(_TurnsFields, total=False):
    """Who speaks when, of a model for diarization."""

    text: str
