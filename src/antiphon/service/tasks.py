"""The generic task: any model, its request as the engine takes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar

from antiphon.ports.codec import AudioFormat, Codec, Encoded
from antiphon.runtime.api import BoundModel, Inference, Runtime, Timing
from antiphon.service.binding import require_language, require_options, require_voice
from antiphon.service.speech import require_speakable
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.languages import base_language
from antiphon.vocabulary.tasks import OptionValue, Task, TaskRequest, TaskResult

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """What a client wants done, without the audio."""

    model: str
    text: str | None = None
    language: str | None = None
    voice: str | None = None
    seed: int = 0
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    busy_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TaskDone:
    """A task's result, its audio also as a whole wav, and where its time went."""

    result: TaskResult
    encoded: Encoded | None
    timing: Timing


class TaskService:
    """Runs tasks. Units: `max_text_chars` characters a request."""

    def __init__(self, runtime: Runtime, codec: Codec, max_text_chars: int) -> None:
        self._runtime = runtime
        self._codec = codec
        self._max_text_chars = max_text_chars

    async def run(self, order: TaskOrder, body: BinaryIO | None, render: Callable[[TaskDone], T]) -> T:
        """Decode what is to be heard, then run; the slot is held until `render` has returned."""
        language = base_language(order.language)
        if body is not None:
            self._runtime.view(order.model)  # an unknown model is refused before anything is decoded
        if order.text is not None:
            require_speakable(order.text, self._max_text_chars, param="request.text")
        draft = TaskRequest(
            text=order.text,
            audio=None if body is None else await self._codec.decode(body),
            language=language,
            voice=order.voice,
            seed=order.seed,
            options=order.options,
        )

        async def finish(result: TaskResult, timing: Timing) -> T:
            encoded = None if result.audio is None else await self._codec.encode(result.audio, AudioFormat.WAV)
            return render(TaskDone(result, encoded, timing))

        return await self._runtime.run(
            Inference(order.model, draft, _bind, busy_timeout_ms=order.busy_timeout_ms), finish
        )


def _bind(model: BoundModel, request: TaskRequest) -> TaskRequest:
    wanted = "text" if model.registration.spec.task is Task.TTS else "audio"
    if getattr(request, wanted) is None:
        raise InvalidRequest(f"a {model.registration.spec.task} model needs {wanted}", param=f"request.{wanted}")
    require_voice(model, request.voice)
    require_language(model, request.language)
    require_options(model, request.options, prefix="request.options.")
    return request
