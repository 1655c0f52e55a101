"""Text to speech: whole, or piece by piece."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from antiphon.ports.codec import AudioFormat, ChunkEncoder, Codec, Encoded
from antiphon.runtime.api import BoundModel, Inference, OpenStream, Runtime, Timing
from antiphon.service.answers import LeasedAnswer
from antiphon.service.binding import bound_voice, require_language, require_options, require_task
from antiphon.vocabulary.errors import EngineError, InvalidRequest, TooLarge
from antiphon.vocabulary.languages import base_language
from antiphon.vocabulary.tasks import AudioDelta, Interface, OptionValue, StreamEvent, Task, TaskRequest, TaskResult

NATURAL_SPEED = 1.0


@dataclass(frozen=True, slots=True)
class SpeechOrder:
    """What a client wants spoken. Units: `speed` is a factor, 2.0 is twice as fast; None is as the model speaks."""

    model: str
    text: str
    audio_format: AudioFormat = AudioFormat.WAV
    voice: str | None = None
    speed: float | None = None
    seed: int = 0
    language: str | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    busy_timeout_ms: int | None = None
    run_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Spoken:
    """A whole spoken answer."""

    encoded: Encoded
    timing: Timing


class SpeechStream(LeasedAnswer[StreamEvent]):
    """Encoded speech as it is made, the header first. It holds a lease: close it."""

    def __init__(self, stream: OpenStream[StreamEvent], encoder: ChunkEncoder) -> None:
        super().__init__(stream)
        self._encoder = encoder
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

    async def aclose(self) -> None:
        """Stop the engine, give the slot back, and let go of the encoder."""
        self._encoder.close()
        await super().aclose()

    async def _last(self) -> bytes:
        """What the encoder still held, once; then the end."""
        if not self._ended:
            self._ended = True
            if piece := await self._encoder.finish():
                return piece
        raise StopAsyncIteration


class SpeechService:
    """Has text spoken. Units: `max_text_chars` characters a request."""

    def __init__(self, runtime: Runtime, codec: Codec, max_text_chars: int) -> None:
        self._runtime = runtime
        self._codec = codec
        self._max_text_chars = max_text_chars

    async def speak(self, order: SpeechOrder) -> Spoken:
        """Have all of it spoken and encoded; the slot is held until the encoding is done."""

        async def encode(result: TaskResult, timing: Timing) -> Spoken:
            if result.audio is None:
                raise EngineError("the engine returned no audio")
            return Spoken(await self._codec.encode(result.audio, order.audio_format), timing)

        return await self._runtime.run(self._inference(order, Interface.OFFLINE), encode)

    async def stream(self, order: SpeechOrder) -> SpeechStream:
        """Begin to speak; returns when the request is known to be in order."""
        stream = await self._runtime.open_stream(self._inference(order, Interface.STREAMING))
        try:
            facts = stream.facts
            encoder = self._codec.open_encoder(order.audio_format, facts.sample_rate, facts.channels)
        except BaseException:
            await stream.aclose()
            raise
        return SpeechStream(stream, encoder)

    def _inference(self, order: SpeechOrder, interface: Interface) -> Inference:
        require_speakable(order.text, self._max_text_chars)
        language = base_language(order.language)
        named = _named_options(order)
        draft = TaskRequest(
            text=order.text, voice=order.voice, language=language, seed=order.seed, options={**order.options, **named}
        )

        def bind(model: BoundModel, request: TaskRequest) -> TaskRequest:
            require_task(model, Task.TTS)
            voice = bound_voice(model, request.voice)
            require_language(model, language)
            require_options(model, order.options)
            require_options(model, named, prefix="")
            return request if voice == request.voice else replace(request, voice=voice)

        return Inference(order.model, draft, bind, interface, order.busy_timeout_ms, order.run_timeout_ms)


def require_speakable(text: str, max_text_chars: int, param: str = "input") -> None:
    """Refuse a text that is too long, or blank: nothing but spaces, controls and invisible marks.

    Raises TooLarge and InvalidRequest. A text with signs but no words is the engine's to refuse.
    """
    if len(text) > max_text_chars:
        raise TooLarge(f"the text has {len(text)} characters; the limit is {max_text_chars}", param=param)
    if all(unicodedata.category(char)[0] in "ZC" for char in text):
        raise InvalidRequest(f"{param} must hold something to say", param=param)


def _named_options(order: SpeechOrder) -> dict[str, OptionValue]:
    """The options that have fields of their own; what is at its default is left to the model."""
    return {} if order.speed in (None, NATURAL_SPEED) else {"speed": order.speed}
