"""Text to speech: whole, or piece by piece."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from antiphon.ports.codec import AudioFormat, ChunkEncoder, Codec, Encoded
from antiphon.runtime.api import BoundModel, Inference, OpenStream, Runtime, Timing
from antiphon.service.answers import EncodedAnswer
from antiphon.service.binding import require_task
from antiphon.service.completion import SpeechTerms, asked_language
from antiphon.service.voice_library import NO_LIBRARY, Recording, VoiceLibrary
from antiphon.vocabulary.errors import EngineError, InvalidRequest, TooLarge
from antiphon.vocabulary.tasks import AudioDelta, Interface, OptionValue, StreamEvent, Task, TaskRequest, TaskResult
from antiphon.vocabulary.terms import Terms, at_speed


@dataclass(frozen=True, slots=True)
class SpeechOrder:
    """What a client wants spoken; None is not said. Units: `speed` is a factor, 2.0 is twice as fast.

    `reference_text` is what is said in the recording that may come beside it.
    """

    model: str
    text: str
    audio_format: AudioFormat = AudioFormat.WAV
    voice: str | None = None
    speed: float | None = None
    seed: int | None = None
    language: str | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    reference_text: str | None = None
    busy_timeout_ms: int | None = None
    run_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Spoken:
    """A whole spoken answer."""

    encoded: Encoded
    timing: Timing


class SpeechStream(EncodedAnswer):
    """Encoded speech as it is made, the header first. It holds a lease: close it."""

    def __init__(self, stream: OpenStream[StreamEvent], encoder: ChunkEncoder) -> None:
        super().__init__(stream, encoder)
        self._begun = False
        self._ended = False

    @property
    def content_type(self) -> str:
        """What the pieces are, together."""
        return self._encoder.content_type

    async def __anext__(self) -> bytes:
        while True:
            if not self._begun:
                self._begun = True
                if header := self._encoder.header():
                    return header
            event = None if self._ended else await anext(self._stream, None)
            if event is None:
                return await self._last()
            if isinstance(event, AudioDelta) and (piece := await self._encoder.feed(event.pcm)):
                return piece

    async def _last(self) -> bytes:
        """What the encoder still held, once; then the end."""
        if not self._ended:
            self._ended = True
            if piece := await self._encoder.finish():
                return piece
        raise StopAsyncIteration


class SpeechService:
    """Has text spoken. Units: `max_text_chars` characters a request."""

    def __init__(self, runtime: Runtime, codec: Codec, max_text_chars: int, library: VoiceLibrary = NO_LIBRARY) -> None:
        self._runtime = runtime
        self._codec = codec
        self._max_text_chars = max_text_chars
        self._terms = SpeechTerms(codec, library)

    async def speak(self, order: SpeechOrder, recording: Recording | None = None) -> Spoken:
        """Have all of it spoken and encoded, as a recording sounds if there is one.

        The slot is held until the encoding is done.
        """

        async def encode(result: TaskResult, timing: Timing) -> Spoken:
            if result.audio is None:
                raise EngineError("the engine returned no audio")
            return Spoken(await self._codec.encode(result.audio, order.audio_format), timing)

        return await self._runtime.run(await self._inference(order, recording, Interface.OFFLINE), encode)

    async def stream(self, order: SpeechOrder, recording: Recording | None = None) -> SpeechStream:
        """Begin to speak; returns when the request is known to be in order."""
        stream = await self._runtime.open_stream(await self._inference(order, recording, Interface.STREAMING))
        return await SpeechStream.over(stream, self._codec, order.audio_format)

    async def _inference(self, order: SpeechOrder, recording: Recording | None, interface: Interface) -> Inference:
        require_speakable(order.text, self._max_text_chars)
        # This refuses an unknown model, before anything is decoded.
        wait_s = self._runtime.wait_limit_s(order.model, order.busy_timeout_ms)
        own = Terms(
            voice=order.voice,
            reference=await self._terms.heard(recording, wait_s),
            reference_text=order.reference_text or (recording.text if recording else None),
            language=asked_language(order.language),
            seed=order.seed,
            named=at_speed(order.speed),
            options=order.options,
        )

        async def bind(model: BoundModel, request: TaskRequest) -> TaskRequest:
            require_task(model, Task.TTS)
            return await self._terms.completed_request(model, request, own, wait_s=wait_s)

        draft = TaskRequest(text=order.text)
        return Inference(order.model, draft, bind, interface, order.busy_timeout_ms, order.run_timeout_ms)


def require_speakable(text: str, max_text_chars: int, param: str = "input") -> None:
    """Refuse a text that is too long, or blank: nothing but spaces, controls and invisible marks.

    Raises TooLarge and InvalidRequest. A text with signs but no words is the engine's to refuse.
    """
    if len(text) > max_text_chars:
        raise TooLarge(f"the text has {len(text)} characters; the limit is {max_text_chars}", param=param)
    if all(unicodedata.category(char)[0] in "ZC" for char in text):
        raise InvalidRequest(f"{param} must hold something to say", param=param)
