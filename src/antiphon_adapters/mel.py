"""The mel scale as Slaney drew it, for the features that several engines hear; it knows no engine and no sound.

Source: Auditory Toolbox (Slaney 1998), as librosa has it: linear up to 1 kHz, logarithmic above, each band of area one.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LINEAR_HZ = 200 / 3
"""The width of a mel below the break. Units: Hz."""

BREAK_HZ = 1000.0
BREAK_MEL = BREAK_HZ / LINEAR_HZ
LOG_STEPS = 27
"""How many mels a factor of 6.4 takes above the break."""


def mel_filters(rate: int, n_fft: int, bands: int) -> "NDArray[np.float64]":
    """Triangular filters from 0 Hz to half the rate, shape [bands, n_fft // 2 + 1], for spectra of `n_fft` samples."""
    import numpy as np

    bins = np.linspace(0, rate / 2, n_fft // 2 + 1)
    edges = _hz_of(np.linspace(0, _mel_of(rate / 2), bands + 2))
    widths = np.diff(edges)
    slopes = edges[:, None] - bins[None]
    triangles = np.maximum(0, np.minimum(-slopes[:-2] / widths[:-1, None], slopes[2:] / widths[1:, None]))
    filters: NDArray[np.float64] = triangles * (2 / (edges[2:] - edges[:-2]))[:, None]
    return filters


def _mel_of(frequency_hz: float) -> float:
    import numpy as np

    if frequency_hz < BREAK_HZ:
        return frequency_hz / LINEAR_HZ
    return float(BREAK_MEL + np.log(frequency_hz / BREAK_HZ) / (np.log(6.4) / LOG_STEPS))


def _hz_of(mels: "NDArray[np.float64]") -> "NDArray[np.float64]":
    import numpy as np

    above = BREAK_HZ * np.exp((mels - BREAK_MEL) * (np.log(6.4) / LOG_STEPS))
    return np.where(mels < BREAK_MEL, mels * LINEAR_HZ, above)
