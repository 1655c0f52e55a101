"""Sample formats: a file's bytes into float32, nominally in -1..1, and float32 into 16-bit integers; no container.

Integers are scaled by their full range (2**(bits-1)), 8-bit ones are offset by 128 (Microsoft, mmreg.h); the companded
ones follow ITU-T G.711 with its tables at 16-bit scale.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from antiphon.audio.blocks import Samples

LOUDEST = float(2**15)
"""The largest magnitude that is kept: that of 16-bit samples which somebody stored as floats and never scaled."""

Reader = Callable[[bytes], Samples]
"""Turns the bytes of whole samples into floats."""


def unsigned_8(data: bytes) -> Samples:
    """Samples of one byte around 128."""
    return (np.frombuffer(data, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(128)


def signed(sample_bytes: int) -> Reader:
    """Little-endian signed samples of 2, 3 or 4 bytes; fewer valid bits are left-justified, so they need no care."""

    def read(data: bytes) -> Samples:
        if sample_bytes == 2:
            return np.frombuffer(data, "<i2").astype(np.float32) / np.float32(2**15)
        if sample_bytes == 4:
            return (np.frombuffer(data, "<i4") / 2**31).astype(np.float32)
        wide = np.zeros((len(data) // 3, 4), "u1")
        wide[:, 1:] = np.frombuffer(data, "u1").reshape(-1, 3)
        return (wide.view("<i4")[:, 0] / 2**31).astype(np.float32)

    return read


def floating(sample_bytes: int) -> Reader:
    """Little-endian IEEE 754 samples of 4 or 8 bytes; they may be infinite or no number."""

    def read(data: bytes) -> Samples:
        if sample_bytes == 4:
            return np.frombuffer(data, "<f4").astype(np.float32)
        return presentable(np.frombuffer(data, "<f8"))

    return read


def companded(table: Samples) -> Reader:
    """Samples of one byte that index a table of 256."""

    def read(data: bytes) -> Samples:
        return table.take(np.frombuffer(data, np.uint8))

    return read


def presentable(samples: NDArray[np.float32] | NDArray[np.float64]) -> Samples:
    """What an engine can take: values that are no numbers or infinite are silence, others are bounded by `LOUDEST`.

    One NaN would otherwise spread through a resampler or a spectrogram into every result, and a huge value overflows.
    Floats beyond -1..1 are kept: clipping them would destroy what they say.
    """
    finite = np.where(np.isfinite(samples), samples, samples.dtype.type(0))
    return np.clip(finite, -LOUDEST, LOUDEST).astype(np.float32, copy=False)


def to_int16(samples: Samples) -> NDArray[np.int16]:
    """Round to 16-bit integers, without dither, clipped; the inverse of `signed(2)`. What is no number is silence."""
    return np.clip(np.rint(presentable(samples) * 2**15), -(2**15), 2**15 - 1).astype("<i2")


def _mulaw_table() -> Samples:
    code = ~np.arange(256, dtype=np.int32) & 0xFF
    magnitude = (((code & 0x0F) << 3) + 0x84 << ((code & 0x70) >> 4)) - 0x84
    return (np.where(code & 0x80, -magnitude, magnitude) / 2**15).astype(np.float32)


def _alaw_table() -> Samples:
    code = np.arange(256, dtype=np.int32) ^ 0x55
    mantissa, exponent = (code & 0x0F) << 4, (code & 0x70) >> 4
    magnitude = np.where(exponent == 0, mantissa + 8, mantissa + 0x108 << np.maximum(exponent - 1, 0))
    return (np.where(code & 0x80, magnitude, -magnitude) / 2**15).astype(np.float32)


MULAW_TABLE = _mulaw_table()
ALAW_TABLE = _alaw_table()
