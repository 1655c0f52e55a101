"""A text and its recording: when each word of the one is spoken in the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from antiphon.ports.codec import Codec
from antiphon.runtime.api import BoundModel, Inference, Runtime, Timing
from antiphon.service.binding import require_task
from antiphon.service.completion import asked_language, completed_request
from antiphon.service.speech import require_speakable
from antiphon.vocabulary.audio import Handover
from antiphon.vocabulary.tasks import Task, TaskRequest, TaskResult
from antiphon.vocabulary.terms import Terms

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AlignmentOrder:
    """What a client wants aligned, without the audio."""

    model: str
    text: str
    language: str | None = None
    busy_timeout_ms: int | None = None
    run_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Alignment:
    """The words of a text and where they are. Units: `duration_s` seconds of the audio as it was sent."""

    result: TaskResult
    duration_s: float
    timing: Timing


class AlignmentService:
    """Has texts aligned. Units: `max_text_chars` characters a request."""

    def __init__(self, runtime: Runtime, codec: Codec, max_text_chars: int) -> None:
        self._runtime = runtime
        self._codec = codec
        self._max_text_chars = max_text_chars

    async def align(self, order: AlignmentOrder, body: BinaryIO, render: Callable[[Alignment], T]) -> T:
        """Decode, then align; the slot is held until `render` has returned."""
        require_speakable(order.text, self._max_text_chars, param="text")
        inference, duration_s = await self._uploaded(order, body)

        async def finish(result: TaskResult, timing: Timing) -> T:
            return render(Alignment(result, duration_s, timing))

        return await self._runtime.run(inference, finish)

    async def _uploaded(self, order: AlignmentOrder, body: BinaryIO) -> tuple[Inference, float]:
        """The work on an upload, whose audio is handed over, and how long it sounds, in seconds."""
        own = Terms(language=asked_language(order.language))
        wait_s = self._runtime.wait_limit_s(order.model, order.busy_timeout_ms)  # refuses an unknown model, too
        audio = await self._codec.decode(body, wait_s)

        async def bind(model: BoundModel, request: TaskRequest) -> TaskRequest:
            require_task(model, Task.ALIGN)
            return await completed_request(model, request, own)

        inference = Inference(
            order.model,
            TaskRequest(text=order.text),
            bind,
            busy_timeout_ms=order.busy_timeout_ms,
            run_timeout_ms=order.run_timeout_ms,
            audio=Handover(audio),
        )
        return inference, audio.duration_s
