"""What a host and its worker say to each other: orders, answers, and how our values become parts of them.

Audio is no part of a message: it goes beside it, in the order in which the message says that there is some.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias, assert_never

from antiphon.runtime.wire.coding import Decoder, Message
from antiphon.runtime.wire.faults import Failed
from antiphon.runtime.wire.signals import Began, Cancel, Ended, Grant, Leave
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import EngineError
from antiphon.vocabulary.spec import Capability, ModelSpec, SessionFacts
from antiphon.vocabulary.tasks import (
    AudioDelta,
    Cancellation,
    Final,
    Mode,
    OptionValue,
    Segment,
    SpeakerTurn,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
    TextDelta,
    TurnsDelta,
    Word,
)

Options: TypeAlias = dict[str, object]
"""JSON values, which msgspec has no recursive type for."""


class Spec(Message):
    """A `ModelSpec`."""

    id: str
    family: str
    path: str
    task: Task
    mode: Mode
    slots: int
    device: str
    threads: int
    load_options: Options
    session_options: Options


class Begin(Message):
    """The worker's first order, without an answer: the adapter as "module:Class", and what it will load."""

    adapter: str
    spec: Spec


class Inspect(Message):
    """Say what the model can do."""


class Load(Message):
    """Read the weights."""


class Open(Message):
    """Open the primary."""


class Probe(Message):
    """Open a session as `spec` has it, and close it."""

    spec: Spec


class Clone(Message):
    """Clone the primary behind `slot`."""

    slot: int


class Asked(Message):
    """A `TaskRequest`, with whether an audio and a reference voice go beside it."""

    text: str | None
    language: str | None
    voice: str | None
    seed: int
    options: Options
    audio: bool
    voice_ref: bool


class Run(Message):
    """Prepare and run one request."""

    slot: int
    request: Asked


class RunBatch(Message):
    """Prepare and run several."""

    slot: int
    requests: tuple[Asked, ...]


class Stream(Message):
    """Prepare and stream one request."""

    slot: int
    request: Asked


class Close(Message):
    """Close the sessions, then the weights."""


class Inspected(Message):
    """What the model can do."""

    capability: Capability


class Opened(Message):
    """What a session is; None where there is none."""

    facts: SessionFacts | None


class Done(Message):
    """It is done, and there is nothing to say of it."""


class Result(Message):
    """A `TaskResult`, with whether an audio goes beside it."""

    text: str | None
    language: str | None
    segments: tuple[Segment, ...]
    words: tuple[Word, ...]
    speaker_turns: tuple[SpeakerTurn, ...]
    sample_rate: int | None
    audio: bool


class Answered(Message):
    """The result of a batch's request number `index`."""

    index: int
    result: Result


class Spoken(Message):
    """The next piece of speech is beside this."""


class Written(Message):
    """The next piece of a transcript."""

    text: str
    until_sample: int | None


class Turned(Message):
    """Speaker turns that became certain."""

    turns: tuple[SpeakerTurn, ...]


class Concluded(Message):
    """The whole result of a stream."""

    result: Result


Order: TypeAlias = (
    Begin | Inspect | Load | Open | Probe | Clone | Run | RunBatch | Stream | Close | Cancel | Grant | Leave
)
Answer: TypeAlias = (
    Inspected | Opened | Done | Result | Began | Answered | Spoken | Written | Turned | Concluded | Ended | Failed
)


def order_decoder() -> Decoder[Order]:
    """Reads orders."""
    return Decoder(Order)


def answer_decoder() -> Decoder[Answer]:
    """Reads answers."""
    return Decoder(Answer)


def spec_told(spec: ModelSpec) -> Spec:
    """A spec as it crosses."""
    return Spec(
        spec.id,
        spec.family,
        spec.path,
        spec.task,
        spec.mode,
        spec.slots,
        spec.device,
        spec.threads,
        dict(spec.load_options),
        dict(spec.session_options),
    )


def spec_of(told: Spec) -> ModelSpec:
    """The spec that crossed."""
    return ModelSpec(
        told.id,
        told.family,
        told.path,
        told.task,
        told.mode,
        told.slots,
        told.device,
        told.threads,
        _options(told.load_options),
        _options(told.session_options),
    )


def request_told(request: TaskRequest) -> tuple[Asked, list[Pcm]]:
    """A request as it crosses, and the sounds that go beside it."""
    asked = Asked(
        request.text,
        request.language,
        request.voice,
        request.seed,
        dict(request.options),
        request.audio is not None,
        request.voice_ref is not None,
    )
    return asked, [it for it in (request.audio, request.voice_ref) if it is not None]


def requests_told(requests: Sequence[TaskRequest]) -> tuple[tuple[Asked, ...], list[Pcm]]:
    """Several requests as they cross, and the sounds of all of them."""
    told = [request_told(request) for request in requests]
    return tuple(asked for asked, _ in told), [sound for _, sounds in told for sound in sounds]


def request_of(asked: Asked, sounds: Iterator[Pcm]) -> TaskRequest:
    """The request that crossed; it takes its sounds from those that came beside it."""
    return TaskRequest(
        text=asked.text,
        audio=next(sounds) if asked.audio else None,
        language=asked.language,
        voice=asked.voice,
        voice_ref=next(sounds) if asked.voice_ref else None,
        seed=asked.seed,
        options=_options(asked.options),
        cancellation=Cancellation(),
    )


def result_told(result: TaskResult) -> tuple[Result, list[Pcm]]:
    """A result as it crosses, and the sound that goes beside it."""
    told = Result(
        result.text,
        result.language,
        result.segments,
        result.words,
        result.speaker_turns,
        result.sample_rate,
        result.audio is not None,
    )
    return told, [] if result.audio is None else [result.audio]


def result_of(told: Result, sounds: Sequence[Pcm]) -> TaskResult:
    """The result that crossed."""
    return TaskResult(
        text=told.text,
        audio=sounds[0] if told.audio else None,
        language=told.language,
        segments=told.segments,
        words=told.words,
        speaker_turns=told.speaker_turns,
        sample_rate=told.sample_rate,
    )


def event_told(event: StreamEvent) -> tuple[Message, list[Pcm]]:
    """A stream's event as it crosses, and the sound that goes beside it."""
    match event:
        case AudioDelta(pcm):
            return Spoken(), [pcm]
        case TextDelta(text, until_sample):
            return Written(text, until_sample), []
        case TurnsDelta(turns):
            return Turned(turns), []
        case Final(result):
            told, sounds = result_told(result)
            return Concluded(told), sounds
        case _:
            assert_never(event)


def event_of(told: Answer, sounds: Sequence[Pcm]) -> StreamEvent:
    """The event that crossed; raises EngineError for an answer that is none."""
    match told:
        case Spoken():
            return AudioDelta(sounds[0])
        case Written(text, until_sample):
            return TextDelta(text, until_sample)
        case Turned(turns):
            return TurnsDelta(turns)
        case Concluded(result):
            return Final(result_of(result, sounds))
        case _:
            raise EngineError("the worker's answer is no event of a stream")


def answer_told(answer: tuple[int, TaskResult]) -> tuple[Message, list[Pcm]]:
    """One answer of a batch as it crosses, and the sound that goes beside it."""
    told, sounds = result_told(answer[1])
    return Answered(answer[0], told), sounds


def answer_of(told: Answer, sounds: Sequence[Pcm]) -> tuple[int, TaskResult]:
    """The answer of a batch that crossed; raises EngineError for one that is none."""
    if not isinstance(told, Answered):
        raise EngineError("the worker's answer is none of a batch")
    return told.index, result_of(told.result, sounds)


def _options(told: Options) -> dict[str, OptionValue]:
    """JSON values again: MessagePack has no other kinds that an order could have been made of."""
    return told  # type: ignore[return-value]  # see above
