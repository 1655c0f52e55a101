"""Speech to text: whole, piece by piece, or with the speakers that another model tells apart."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from typing import BinaryIO, TypeVar

from antiphon.ports.codec import Codec
from antiphon.runtime.api import BatchInference, BoundModel, Draft, Inference, OpenStream, Runtime, Timing
from antiphon.service.answers import LeasedAnswer
from antiphon.service.binding import nearest_value, option_of, require_task, takes_option
from antiphon.service.completion import asked_language, completed_request
from antiphon.vocabulary.audio import Handover, Pcm
from antiphon.vocabulary.errors import InvalidRequest, ModelNotFound
from antiphon.vocabulary.spec import LiveLimits
from antiphon.vocabulary.tasks import Interface, OptionValue, StreamEvent, Task, TaskRequest, TaskResult
from antiphon.vocabulary.terms import Terms

T = TypeVar("T")

WORD_TIMES = "word_timestamps"
"""The option that asks a model for the times of its words."""

TARGET_LANGUAGE = "target_language"
"""The option that names the language to write; a model that has it, and English among its choices, translates."""

ENGLISH = "en"

SILENCE = "silence_ms"
"""The option that tells a model which pause ends an utterance."""

LISTENERS = (Task.ASR, Task.DIAR)
"""What the models are for that tell while they listen."""


class WordTimes(Enum):
    """Whether an answer is to have the times of words."""

    UNWANTED = auto()
    WHERE_TOLD = auto()
    REQUIRED = auto()


@dataclass(frozen=True, slots=True)
class TranscriptionOrder:
    """What a client wants transcribed, without the audio; None is not said. Units: `temperature` 0..1.

    `silence_ms` is the pause that is to end an utterance of live audio: the model comes as near to it as it can, and
    one that has a measure of its own keeps to that.
    `into_english` asks for a translation; `language` is what is spoken, whatever is written. `tasks` are those of the
    models that can answer it: for who speaks when, not every form of an answer has a place.
    """

    model: str
    language: str | None = None
    prompt: str | None = None
    temperature: float | None = None
    word_times: WordTimes = WordTimes.UNWANTED
    silence_ms: int | None = None
    into_english: bool = False
    seed: int | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    busy_timeout_ms: int | None = None
    run_timeout_ms: int | None = None
    tasks: tuple[Task, ...] = (Task.ASR,)


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was heard in a whole file, and what the model is for. Units: `duration_s` seconds of the audio as sent."""

    task: Task
    result: TaskResult
    duration_s: float
    timing: Timing


@dataclass(frozen=True, slots=True)
class SpokenTranscript:
    """What one model heard in a whole file and whom another told apart. Units: as in `Transcript`.

    `timing` is that of both runs together.
    """

    heard: TaskResult
    told: TaskResult
    duration_s: float
    timing: Timing


class TranscriptStream(LeasedAnswer[StreamEvent]):
    """A transcript as it is found. It holds a lease: close it. Units: `duration_s` seconds of the audio sent."""

    def __init__(self, stream: OpenStream[StreamEvent], duration_s: float) -> None:
        super().__init__(stream)
        self.duration_s = duration_s

    async def __anext__(self) -> StreamEvent:
        return await anext(self._stream)


class TranscriptBatch(LeasedAnswer[tuple[int, TaskResult]]):
    """Transcripts of several files as each is done, with its index. It holds a lease: close it."""

    def __init__(self, stream: OpenStream[tuple[int, TaskResult]], durations_s: Sequence[float]) -> None:
        super().__init__(stream)
        self._durations_s = durations_s

    async def __anext__(self) -> tuple[int, Transcript]:
        index, result = await anext(self._stream)
        return index, Transcript(self.task, result, self._durations_s[index], self._stream.timing)


class TranscriptionService:
    """Has audio transcribed."""

    def __init__(self, runtime: Runtime, codec: Codec) -> None:
        self._runtime = runtime
        self._codec = codec

    async def transcribe(
        self,
        order: TranscriptionOrder,
        body: BinaryIO,
        render: Callable[[Transcript], T],
        *,
        continues: bool = False,
    ) -> T:
        """Decode, then transcribe. No slot is held while a file is decoded; one is held until `render` has returned.

        `continues` is as in `Inference`.
        """
        order = self._checked(order)
        inference, duration_s = await self._uploaded(order, body, Interface.OFFLINE)
        inference = replace(inference, continues=continues)

        async def finish(result: TaskResult, timing: Timing) -> T:
            task = self._runtime.view(order.model).registration.spec.task  # under the lease that the result came under
            return render(Transcript(task, result, duration_s, timing))

        return await self._runtime.run(inference, finish)

    async def transcribe_speakers(
        self,
        order: TranscriptionOrder,
        diarization_model: str | None,
        body: BinaryIO,
        render: Callable[[SpokenTranscript], T],
    ) -> T:
        """Decode, transcribe, then tell the speakers apart: two requests, one after the other, each in its own queue.

        The first gives its slot back before the second asks for one, so this never holds two. None takes the only
        model for diarization. Raises InvalidRequest (param "diarization_model") where there is none, or several.
        """
        order = self._checked(order)
        request = TaskRequest(text=order.prompt)
        diarizer = self._diarizer(diarization_model)
        audio = await self._decoded(order, body)
        first = _inference(order, replace(request, audio=audio), Interface.OFFLINE)
        heard, spent = await self._runtime.run(first, _both)
        duration_s = audio.duration_s

        async def finish(told: TaskResult, timing: Timing) -> T:
            return render(SpokenTranscript(heard, told, duration_s, _together(spent, timing)))

        bind, bounds = partial(_bind_diarizer, order.seed), (order.busy_timeout_ms, order.run_timeout_ms)
        asked = Inference(
            diarizer, TaskRequest(), bind, Interface.OFFLINE, *bounds, audio=Handover(audio), continues=True
        )
        del audio, first  # only the second run has it now, for no longer than it needs it
        with _about_the_diarizer():
            return await self._runtime.run(asked, finish)

    async def stream(self, order: TranscriptionOrder, body: BinaryIO) -> TranscriptStream:
        """Decode, then begin to transcribe; the stream holds a slot, so close it."""
        inference, duration_s = await self._uploaded(self._checked(order), body, Interface.STREAMING)
        return TranscriptStream(await self._runtime.open_stream(inference), duration_s)

    async def live(self, order: TranscriptionOrder, audio: AsyncIterator[Pcm]) -> TranscriptStream:
        """Begin to transcribe what is still being spoken; the stream holds a slot for as long as that takes.

        Close the stream, and then the `audio`, of which nothing is taken before a slot is granted and the model is
        loaded. What it raises comes out of the stream.
        """
        order = replace(self._checked(order), tasks=LISTENERS)
        inference = _inference(order, TaskRequest(text=order.prompt), Interface.STREAMING)
        return TranscriptStream(await self._runtime.open_stream(replace(inference, live=audio)), 0.0)

    def resolved(self, order: TranscriptionOrder) -> TranscriptionOrder:
        """The order with the id of its model in the place of an alias, which another registration may take away.

        Raises ModelNotFound.
        """
        return replace(order, model=self._runtime.view(order.model).registration.spec.id)

    def live_limits(self, model_id: str) -> LiveLimits:
        """What bounds a model's live audio. They cannot change while a lease on the model is held.

        Raises ModelNotFound.
        """
        return self._runtime.view(model_id).registration.live

    async def batch(self, order: TranscriptionOrder, bodies: Sequence[BinaryIO]) -> "TranscriptBatch":
        """Decode all, then begin one native batch in one slot; it holds the slot, so close it."""
        order = self._checked(order)
        drafts = [TaskRequest(text=order.prompt, audio=await self._decoded(order, body)) for body in bodies]
        bind = partial(_bind, order)
        batch = BatchInference(
            order.model, tuple(Draft(it, bind) for it in drafts), order.busy_timeout_ms, order.run_timeout_ms
        )
        return TranscriptBatch(await self._runtime.open_batch(batch), [_duration_s(it.audio) for it in drafts])

    def _checked(self, order: TranscriptionOrder) -> TranscriptionOrder:
        """The resolved order; raises InvalidRequest for an unknown language, before any audio is decoded."""
        asked_language(order.language)
        return self.resolved(order)

    async def _decoded(self, order: TranscriptionOrder, body: BinaryIO) -> Pcm:
        return await self._codec.decode(body, self._runtime.wait_limit_s(order.model, order.busy_timeout_ms))

    async def _uploaded(
        self, order: TranscriptionOrder, body: BinaryIO, interface: Interface
    ) -> tuple[Inference, float]:
        """The work on an upload, whose audio is handed over, and how long it sounds, in seconds."""
        audio = await self._decoded(order, body)
        request = TaskRequest(text=order.prompt)
        return replace(_inference(order, request, interface), audio=Handover(audio)), audio.duration_s

    def _diarizer(self, asked: str | None) -> str:
        if asked is not None:
            with _about_the_diarizer():
                return self._runtime.view(asked).registration.spec.id
        specs = [view.registration.spec for view in self._runtime.views()]
        known = [spec.id for spec in specs if spec.task is Task.DIAR]
        if len(known) == 1:
            return known[0]
        several = f"there are several models for diarization; name one of {', '.join(known)}"
        raise InvalidRequest(several if known else "there is no model for diarization", param="diarization_model")


def _inference(order: TranscriptionOrder, request: TaskRequest, interface: Interface) -> Inference:
    bind = partial(_bind, order)
    return Inference(order.model, request, bind, interface, order.busy_timeout_ms, order.run_timeout_ms)


async def _bind(order: TranscriptionOrder, model: BoundModel, request: TaskRequest) -> TaskRequest:
    require_task(model, *order.tasks)
    if order.into_english:
        _require_translator(model)
    if order.word_times is WordTimes.REQUIRED and not takes_option(model, WORD_TIMES):
        raise InvalidRequest("the model gives no times of words", param="timestamp_granularities")
    named = {**_named_options(order), **_fitting_options(order, model)}
    own = Terms(language=asked_language(order.language), seed=order.seed, named=named, options=order.options)
    return await completed_request(model, request, own)


def _require_translator(model: BoundModel) -> None:
    option = option_of(model.capability, TARGET_LANGUAGE)
    if option is None or ENGLISH not in option.choices:
        raise InvalidRequest(f"model {model.registration.spec.id!r} cannot translate", param="model")


async def _bind_diarizer(seed: int | None, model: BoundModel, request: TaskRequest) -> TaskRequest:
    require_task(model, Task.DIAR)
    return await completed_request(model, request, Terms(seed=seed))


@contextmanager
def _about_the_diarizer() -> Iterator[None]:
    """Let what is wrong with the model, inside the block, be said of the field that names the second one."""
    try:
        yield
    except (InvalidRequest, ModelNotFound) as refusal:
        if refusal.param != "model":
            raise
        raise type(refusal)(refusal.message, param="diarization_model") from refusal


async def _both(result: TaskResult, timing: Timing) -> tuple[TaskResult, Timing]:
    return result, timing


def _together(first: Timing, second: Timing) -> Timing:
    return Timing(first.queue_s + second.queue_s, first.load_s + second.load_s, first.run_s + second.run_s)


def _named_options(order: TranscriptionOrder) -> dict[str, OptionValue]:
    """The options that have fields of their own; a temperature of 0 is left to the model."""
    options: dict[str, OptionValue] = {}
    if order.temperature is not None:
        options["temperature"] = order.temperature or None
    if order.word_times is WordTimes.REQUIRED:
        options[WORD_TIMES] = True
    if order.into_english:
        options[TARGET_LANGUAGE] = ENGLISH
    return options


def _fitting_options(order: TranscriptionOrder, model: BoundModel) -> dict[str, OptionValue]:
    """The options that a model is given only where it has them, as near to what is wanted as it can come."""
    options: dict[str, OptionValue] = {}
    if order.word_times is WordTimes.WHERE_TOLD and takes_option(model, WORD_TIMES):
        options[WORD_TIMES] = True
    silence_ms = None if order.silence_ms is None else nearest_value(model, SILENCE, order.silence_ms)
    if silence_ms is not None:
        options[SILENCE] = silence_ms
    return options


def _duration_s(audio: Pcm | None) -> float:
    return 0.0 if audio is None else audio.duration_s
