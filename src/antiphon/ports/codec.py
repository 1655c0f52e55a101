"""Decoding and encoding behind an async seam, so that no audio is parsed on the event loop."""

from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Protocol

from antiphon.vocabulary.audio import Pcm


class AudioFormat(StrEnum):
    """The encodings that speech is answered in."""

    WAV = "wav"
    MP3 = "mp3"
    OPUS = "opus"
    FLAC = "flac"
    AAC = "aac"
    PCM = "pcm"


@dataclass(frozen=True, slots=True)
class Encoded:
    """A whole encoded answer: an open file at its start, unlinked or in memory, and its size in bytes."""

    body: BinaryIO
    size_bytes: int
    content_type: str


class ChunkEncoder(Protocol):
    """Encodes speech whose length is not yet known: header, pieces and end are one file.

    wav and pcm hold nothing back: for them `finish` gives nothing, and there is nothing to close.
    """

    content_type: str

    def header(self) -> bytes:
        """What goes before the first piece; may be empty."""
        ...

    async def feed(self, pcm: Pcm) -> bytes:
        """Encode the next piece; what can be told by now, which may be nothing. Raises EngineError."""
        ...

    async def finish(self) -> bytes:
        """End the file: what the encoder still held, and its last page. Nothing may be fed afterwards."""
        ...

    def close(self) -> None:
        """Let go of a file that may not be at its end, also while a piece is encoded; harmless when done twice."""
        ...


class ChunkConverter(Protocol):
    """Converts audio whose length is not yet known, piece by piece, as `Codec.convert` would the whole."""

    async def feed(self, pcm: Pcm) -> Pcm:
        """Convert the next piece; what the resampler still needs more for comes later, so this may be empty."""
        ...

    async def finish(self) -> Pcm:
        """Give what is left."""
        ...


class Codec(Protocol):
    """Turns bytes of any accepted container into audio and back; each call owns no more than it returns."""

    async def decode(self, body: BinaryIO, wait_s: float = 0) -> Pcm:
        """Decode an upload at its native rate and channels.

        Units: `wait_s` seconds that it may wait for a decoder, 0 without bound. Raises InvalidRequest (param "file")
        for what is no accepted audio, TooLarge over the duration limit, ServerBusy when no decoder was free in time, or
        the audio in flight is over the server's budget.
        """
        ...

    async def convert(self, pcm: Pcm, rate: int, channels: int) -> Pcm:
        """Resample and mix to `rate` in Hz and `channels`; the same object when nothing is to do."""
        ...

    def open_converter(self, given: Pcm, rate: int, channels: int) -> ChunkConverter:
        """Begin to convert pieces of the rate and the channels of `given`, the first of them."""
        ...

    async def encode(self, pcm: Pcm, audio_format: AudioFormat) -> Encoded:
        """Encode a whole answer; its header carries the true sizes, where the format has them.

        Raises EngineError or WorkerDied where an encoder fails, ServerBusy where there is no room for one.
        """
        ...

    def open_encoder(self, audio_format: AudioFormat, rate: int, channels: int) -> ChunkEncoder:
        """Begin an answer of unknown length."""
        ...
