"""Decoded audio on its way: a format and blocks of samples, as every decoder of this package yields them."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from antiphon.vocabulary.audio import Pcm

Samples: TypeAlias = NDArray[np.float32]
"""Flat, interleaved 32-bit float samples."""

BLOCK_SAMPLES = 64 * 1024
"""How many samples are worked on at once: 256 KiB of float32, whatever the length of the audio."""


def samples_of(pcm: Pcm) -> Samples:
    """The samples of `pcm` as an array, without a copy."""
    return np.frombuffer(pcm.samples.cast("B"), np.float32)


@dataclass(frozen=True, slots=True)
class AudioBlocks:
    """A format and the blocks that follow; nothing is decoded before the first block is asked for.

    Units: `rate` in Hz. `frames` is the true count where it is known beforehand. Each block holds whole frames.
    """

    rate: int
    channels: int
    blocks: Generator[Samples, None, None]
    frames: int | None = None

    def close(self) -> None:
        """Let go of what the decoder holds open."""
        self.blocks.close()
