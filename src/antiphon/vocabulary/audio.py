"""Decoded audio as a value: what the layers hand to each other, without numpy."""

import sys
from dataclasses import dataclass, field
from typing import Self

BYTES_PER_SAMPLE = 4


@dataclass(frozen=True, slots=True)
class Pcm:
    """Interleaved 32-bit float samples, nominally in -1..1.

    Shapes: `samples` has format "f" and `frames * channels` elements. Units: `rate` is frames per second. The view may
    rest on a mapped file; it keeps that alive. Raises ValueError for anything that is no such view.
    """

    samples: "memoryview[float]"
    rate: int
    channels: int = 1
    owner: object = field(default=None, repr=False, compare=False)
    """Whatever must live as long as the samples do, such as their share of a memory budget."""

    def __post_init__(self) -> None:
        if self.samples.format != "f" or self.samples.ndim != 1 or not self.samples.c_contiguous:
            raise ValueError("samples must be a flat, contiguous view of 32-bit floats")
        if self.rate < 1 or self.channels < 1:
            raise ValueError("rate and channels must be positive")
        if len(self.samples) % self.channels:
            raise ValueError("samples do not fill the last frame")

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, rate: int, channels: int = 1) -> Self:
        """View little-endian float32 bytes as audio, without a copy."""
        assert sys.byteorder == "little", "antiphon runs on little-endian machines"
        return cls(memoryview(data).cast("B").cast("f"), rate, channels)

    @property
    def frames(self) -> int:
        """How many frames there are: one frame has a sample of every channel."""
        return len(self.samples) // self.channels

    @property
    def duration_s(self) -> float:
        """How long it sounds, in seconds."""
        return self.frames / self.rate


class Handover:
    """Audio that changes hands: once it is taken, only its taker keeps it alive, whoever else still has this."""

    __slots__ = ("_pcm",)

    def __init__(self, pcm: Pcm) -> None:
        self._pcm: Pcm | None = pcm

    def take(self) -> Pcm:
        """Take it, once; raises ValueError afterwards."""
        pcm, self._pcm = self._pcm, None
        if pcm is None:
            raise ValueError("the audio was taken already")
        return pcm


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """A piece of a stream of audio and where it starts, in frames from the beginning."""

    pcm: Pcm
    offset: int
