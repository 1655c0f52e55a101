"""The generic task: any model, its request as the engine takes it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO, TypeVar

from antiphon.ports.codec import AudioFormat, Codec, Encoded
from antiphon.runtime.api import BatchInference, BoundModel, Draft, Inference, OpenStream, Runtime, Timing
from antiphon.service.answers import EncodedAnswer, LeasedAnswer
from antiphon.service.completion import SpeechTerms, asked_language
from antiphon.service.speech import require_speakable
from antiphon.service.voice_library import NO_LIBRARY, Recording, VoiceLibrary
from antiphon.vocabulary.audio import Handover
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.tasks import (
    AudioDelta,
    Interface,
    OptionValue,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
)
from antiphon.vocabulary.terms import Terms

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """What a client wants done, without the audio; None is not said."""

    model: str
    text: str | None = None
    language: str | None = None
    voice: str | None = None
    seed: int | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    reference_text: str | None = None
    busy_timeout_ms: int | None = None
    run_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """What comes beside an order: open files of what is to be heard, and of the voice that is to be imitated."""

    audio: BinaryIO | None = None
    recording: Recording | None = None


@dataclass(frozen=True, slots=True)
class TaskDone:
    """A task's result, its audio also as a whole wav, and where its time went."""

    result: TaskResult
    encoded: Encoded | None
    timing: Timing


class TaskService:
    """Runs tasks. Units: `max_text_chars` characters a request."""

    def __init__(self, runtime: Runtime, codec: Codec, max_text_chars: int, library: VoiceLibrary = NO_LIBRARY) -> None:
        self._runtime = runtime
        self._codec = codec
        self._max_text_chars = max_text_chars
        self._terms = SpeechTerms(codec, library)

    async def run(self, order: TaskOrder, heard: Heard, render: Callable[[TaskDone], T]) -> T:
        """Decode what is to be heard, then run; the slot is held until `render` has returned."""

        async def finish(result: TaskResult, timing: Timing) -> T:
            return render(TaskDone(result, await self._encoded(result), timing))

        return await self._runtime.run(await self._inference(order, heard, Interface.OFFLINE), finish)

    async def stream(self, order: TaskOrder, heard: Heard) -> "TaskStream":
        """Decode what is to be heard, then begin; the stream holds a slot, so close it."""
        stream = await self._runtime.open_stream(await self._inference(order, heard, Interface.STREAMING))
        return await TaskStream.over(stream, self._codec, AudioFormat.PCM)

    async def batch(self, orders: Sequence[TaskOrder], heard: Sequence[Heard]) -> "TaskBatch":
        """Decode all, then begin one native batch in one slot; it holds the slot, so close it.

        All orders are for the model of the first, which also says how long to wait and to run.
        """
        drafts = [await self._draft(order, beside) for order, beside in zip(orders, heard, strict=True)]
        batch = BatchInference(orders[0].model, tuple(drafts), orders[0].busy_timeout_ms, orders[0].run_timeout_ms)
        return TaskBatch(await self._runtime.open_batch(batch), self._encoded)

    async def _inference(self, order: TaskOrder, heard: Heard, interface: Interface) -> Inference:
        draft = await self._draft(order, heard)
        audio = draft.request.audio
        return Inference(
            order.model,
            replace(draft.request, audio=None),
            draft.bind,
            interface,
            order.busy_timeout_ms,
            order.run_timeout_ms,
            audio=None if audio is None else Handover(audio),
        )

    async def _draft(self, order: TaskOrder, heard: Heard) -> Draft:
        if order.text is not None:
            require_speakable(order.text, self._max_text_chars, param="request.text")
        # This refuses an unknown model, before anything is decoded.
        wait_s = self._runtime.wait_limit_s(order.model, order.busy_timeout_ms)
        language = asked_language(order.language)
        audio = None if heard.audio is None else await self._codec.decode(heard.audio, wait_s)
        own = Terms(
            voice=order.voice,
            reference=await self._terms.heard(heard.recording, wait_s),
            reference_text=order.reference_text or (heard.recording.text if heard.recording else None),
            language=language,
            seed=order.seed,
            options=order.options,
        )

        async def bind(model: BoundModel, request: TaskRequest) -> TaskRequest:
            _require_input(model, request)
            return await self._terms.completed_request(model, request, own, "request.options.", wait_s)

        return Draft(TaskRequest(text=order.text, audio=audio), bind)

    async def _encoded(self, result: TaskResult) -> Encoded | None:
        return None if result.audio is None else await self._codec.encode(result.audio, AudioFormat.WAV)


class TaskStream(EncodedAnswer):
    """A task's answer piece by piece, audio encoded as raw 16-bit PCM. It holds a lease: close it."""

    async def __anext__(self) -> tuple[StreamEvent, bytes | None]:
        """The next event, and its audio's bytes where it has some."""
        event = await anext(self._stream)
        return event, await self._encoder.feed(event.pcm) if isinstance(event, AudioDelta) else None


class TaskBatch(LeasedAnswer[tuple[int, TaskResult]]):
    """A batch's results as each is done, audio as a whole wav. It holds a lease: close it."""

    def __init__(
        self,
        stream: OpenStream[tuple[int, TaskResult]],
        encode: Callable[[TaskResult], Awaitable[Encoded | None]],
    ) -> None:
        super().__init__(stream)
        self._encode = encode

    async def __anext__(self) -> tuple[int, TaskDone]:
        index, result = await anext(self._stream)
        return index, TaskDone(result, await self._encode(result), self._stream.timing)


def _require_input(model: BoundModel, request: TaskRequest) -> None:
    wanted = "text" if model.registration.spec.task is Task.TTS else "audio"
    if getattr(request, wanted) is None:
        raise InvalidRequest(f"a {model.registration.spec.task} model needs {wanted}", param=f"request.{wanted}")
