"""What answers that come piece by piece have in common; what a piece is, each of them says itself."""

from typing import Generic, Self, TypeVar

from antiphon.ports.codec import AudioFormat, ChunkEncoder, Codec
from antiphon.runtime.api import OpenStream, Timing
from antiphon.vocabulary.tasks import StreamEvent, Task

T = TypeVar("T")


class LeasedAnswer(Generic[T]):
    """An answer over a stream of the runtime's. It holds a lease: close it."""

    def __init__(self, stream: OpenStream[T]) -> None:
        self._stream = stream

    @property
    def timing(self) -> Timing:
        """Where the time went so far."""
        return self._stream.timing

    @property
    def sample_rate(self) -> int:
        """The rate of the audio that comes, and of positions and spans, in Hz."""
        return self._stream.facts.sample_rate

    @property
    def task(self) -> Task:
        """What the model that answers is for."""
        return self._stream.facts.task

    def __aiter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        """Stop the engine and give the slot back."""
        await self._stream.aclose()


class EncodedAnswer(LeasedAnswer[StreamEvent]):
    """An answer whose audio is encoded while it comes. It holds a lease and an encoder: close it."""

    def __init__(self, stream: OpenStream[StreamEvent], encoder: ChunkEncoder) -> None:
        super().__init__(stream)
        self._encoder = encoder

    @classmethod
    async def over(cls, stream: OpenStream[StreamEvent], codec: Codec, audio_format: AudioFormat) -> Self:
        """Take over a stream, which is closed where no encoder for it can be opened."""
        try:
            facts = stream.facts
            return cls(stream, codec.open_encoder(audio_format, facts.sample_rate, facts.channels))
        except BaseException:
            await stream.aclose()
            raise

    async def aclose(self) -> None:
        """Stop the engine, give the slot back, and let go of the encoder."""
        self._encoder.close()
        await super().aclose()
