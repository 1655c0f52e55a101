"""Decoded audio on its way: a format and blocks of samples, as every decoder of this package yields them."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spool import pieces_of

Samples: TypeAlias = NDArray[np.float32]
"""Flat, interleaved 32-bit float samples."""

BLOCK_SAMPLES = 64 * 1024
"""How many samples are worked on at once: 256 KiB of float32, whatever the length of the audio."""


def samples_of(pcm: Pcm) -> Samples:
    """The samples of `pcm` as an array, without a copy."""
    return np.frombuffer(pcm.samples.cast("B"), np.float32)


def blocks_of(pcm: Pcm) -> Iterator[Samples]:
    """The samples of `pcm` in blocks of whole frames, without a copy; a long sound is never in memory as a whole."""
    for piece in pieces_of(pcm, BLOCK_SAMPLES * pcm.channels):
        yield np.frombuffer(piece.cast("B"), np.float32)


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
