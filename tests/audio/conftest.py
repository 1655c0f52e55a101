"""What the audio tests share: decoding bytes as an upload would be."""

import io
from collections.abc import Callable

import numpy as np
import pytest

from antiphon.audio.decode import DecodeLimits, decode
from antiphon.vocabulary.audio import Pcm
from audio_assets import Samples

LIMITS = DecodeLimits(max_seconds=60)


@pytest.fixture
def decode_bytes() -> Callable[..., Pcm]:
    def decode_bytes(
        data: bytes, limits: DecodeLimits = LIMITS, on_growth: Callable[[int], None] = lambda _: None
    ) -> Pcm:
        return decode(io.BytesIO(data), limits, on_growth)

    return decode_bytes


@pytest.fixture
def samples_of() -> Callable[[Pcm], Samples]:
    def samples_of(pcm: Pcm) -> Samples:
        return np.array(pcm.samples, np.float32).reshape(-1, pcm.channels)

    return samples_of


@pytest.fixture
def as_pcm() -> Callable[..., Pcm]:
    def as_pcm(samples: Samples, rate: int = 16_000, channels: int = 1) -> Pcm:
        return Pcm.from_bytes(samples.astype(np.float32).tobytes(), rate, channels)

    return as_pcm
