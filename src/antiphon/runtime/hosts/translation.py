"""Our values as parts of messages, and back: what crosses is equal to what was sent, and shares nothing with it."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from antiphon.runtime.hosts.messages import (
    Answer,
    Answered,
    Asked,
    Concluded,
    Options,
    Result,
    Spec,
    Spoken,
    Started,
    Stopped,
    Turned,
    Written,
)
from antiphon.runtime.wire.coding import Message
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import EngineError
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import (
    AudioDelta,
    Cancellation,
    Final,
    OptionValue,
    SpeechStarted,
    SpeechStopped,
    StreamEvent,
    TaskRequest,
    TaskResult,
    TextDelta,
    TurnsDelta,
)


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
        spec.auto_threads,
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
        auto_threads=told.auto_threads,
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
        request.live,
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
        live=asked.live,
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
        case SpeechStarted(at_sample):
            return Started(at_sample), []
        case SpeechStopped(at_sample):
            return Stopped(at_sample), []
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
        case Started(at_sample):
            return SpeechStarted(at_sample)
        case Stopped(at_sample):
            return SpeechStopped(at_sample)
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
