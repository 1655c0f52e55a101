"""A codec for simulations, over plain samples: it decodes and encodes at once, and knows no format."""

import asyncio
import io
from dataclasses import dataclass
from typing import BinaryIO

from antiphon.ports.codec import AudioFormat, Encoded
from antiphon.vocabulary.audio import Pcm

RATE = 16_000
"""The rate of every simulated session, in Hz."""


class SimCodec:
    """A `Codec` over plain float32 bytes of one channel at the simulated rate, in memory and at once."""

    async def decode(self, body: BinaryIO, wait_s: float = 0) -> Pcm:
        """View the bytes as audio, without a wait."""
        del wait_s
        return Pcm.from_bytes(body.read(), RATE)

    async def convert(self, pcm: Pcm, rate: int, channels: int) -> Pcm:
        """Call the same samples audio of another rate, which is as good in a simulation."""
        await asyncio.sleep(0)
        return pcm if (pcm.rate, pcm.channels) == (rate, channels) else Pcm(pcm.samples, rate, channels)

    def open_converter(self, given: Pcm, rate: int, channels: int) -> "SimConverter":
        """Begin to convert audio of unknown length."""
        del given
        return SimConverter(rate, channels)

    async def encode(self, pcm: Pcm, audio_format: AudioFormat) -> Encoded:
        """Give the samples' bytes."""
        data = pcm.samples.tobytes()
        return Encoded(io.BytesIO(data), len(data), f"audio/{audio_format}")

    def open_encoder(self, audio_format: AudioFormat, rate: int, channels: int) -> "SimEncoder":
        """Begin an answer of unknown length."""
        del rate, channels
        return SimEncoder(f"audio/{audio_format}")


@dataclass(frozen=True, slots=True)
class SimConverter:
    """A `ChunkConverter` that calls the same samples audio of another rate."""

    rate: int
    channels: int

    async def feed(self, pcm: Pcm) -> Pcm:
        """Give the same samples."""
        await asyncio.sleep(0)
        return Pcm(pcm.samples, self.rate, self.channels)

    async def finish(self) -> Pcm:
        """Nothing is left."""
        await asyncio.sleep(0)
        return Pcm.from_bytes(b"", self.rate, self.channels)


@dataclass(frozen=True, slots=True)
class SimEncoder:
    """A `ChunkEncoder` of bare samples."""

    content_type: str

    def header(self) -> bytes:
        """Nothing."""
        return b""

    async def feed(self, pcm: Pcm) -> bytes:
        """Give the samples' bytes."""
        return pcm.samples.tobytes()

    async def finish(self) -> bytes:
        """Nothing."""
        return b""

    def close(self) -> None:
        """Do nothing."""
