"""NeMo's log mel features in plain loops over floats: slow, and sharing nothing with the product. It asserts nothing.

Source of the filters: librosa's `filters.mel(sr=16000, n_fft=512, n_mels=128)`, Slaney's scale and norm.
"""

import math
from collections.abc import Sequence
from functools import cache
from operator import mul

RATE, FFT, WINDOW, HOP, MELS = 16000, 512, 400, 160, 128


def log_mel(samples: Sequence[float]) -> list[list[float]]:
    """ln(energy + 2^-24) of every filter, one row for each whole hop of the samples."""
    emphasised = [samples[at] - 0.97 * (samples[at - 1] if at else 0.0) for at in range(len(samples))]
    return [_features(emphasised, frame * HOP) for frame in range(len(samples) // HOP)]


def mel_filters() -> list[list[float]]:
    """Triangles over the 257 frequencies, shape [128][257]."""
    edges = [_hertz(_mel(RATE / 2) * number / (MELS + 1)) for number in range(MELS + 2)]
    rows = []
    for low, peak, high in zip(edges, edges[1:], edges[2:], strict=False):
        frequencies = [RATE * bin_ / FFT for bin_ in range(FFT // 2 + 1)]
        rows.append(
            [
                max(0.0, min((it - low) / (peak - low), (high - it) / (high - peak))) * 2 / (high - low)
                for it in frequencies
            ]
        )
    return rows


def _features(emphasised: Sequence[float], centre: int) -> list[float]:
    seen = [emphasised[at] if 0 <= at < len(emphasised) else 0.0 for at in range(centre - FFT // 2, centre + FFT // 2)]
    windowed = list(map(mul, seen, _window()))
    powers = [sum(map(mul, windowed, cosine)) ** 2 + sum(map(mul, windowed, sine)) ** 2 for cosine, sine in _waves()]
    return [math.log(sum(map(mul, row, powers)) + 2**-24) for row in _filters()]


@cache
def _filters() -> list[list[float]]:
    return mel_filters()


@cache
def _window() -> list[float]:
    """Hann's window, symmetric, in the middle of the transform."""
    hann = [0.5 - 0.5 * math.cos(2 * math.pi * at / (WINDOW - 1)) for at in range(WINDOW)]
    margin = [0.0] * ((FFT - WINDOW) // 2)
    return margin + hann + margin


@cache
def _waves() -> list[tuple[list[float], list[float]]]:
    def angle(bin_: int, at: int) -> float:
        return 2 * math.pi * bin_ * at / FFT

    return [
        ([math.cos(angle(bin_, at)) for at in range(FFT)], [math.sin(angle(bin_, at)) for at in range(FFT)])
        for bin_ in range(FFT // 2 + 1)
    ]


def _mel(hertz: float) -> float:
    return 3 * hertz / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)


def _hertz(mel: float) -> float:
    return 200 * mel / 3 if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)
