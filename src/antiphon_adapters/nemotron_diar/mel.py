"""The sound of 80 ms as the model takes it: log mel features, block by block, of a recording that need not be whole.

Source: NeMo's AudioToMelSpectrogramPreprocessor as these models were taught with it (window 25 ms, symmetric Hann; hop
10 ms; 512 points; pre-emphasis 0.97; power; 128 Slaney mels; ln(x + 2^-24); no normalisation, no dither).
"""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from antiphon_adapters.mel import mel_filters
from antiphon_adapters.nemotron_diar.model_files import MELS
from antiphon_adapters.nemotron_diar.profile import MEL_FRAMES, SAMPLE_RATE

if TYPE_CHECKING:
    from numpy.typing import NDArray

HOP = 160
FFT = 512
WINDOW = 400
EMPHASIS = 0.97
LOG_GUARD = 2.0**-24

BLOCK_SAMPLES = MEL_FRAMES * HOP
_REACH = (MEL_FRAMES - 1) * HOP + WINDOW
"""How many samples a block is computed from; they begin half a window before its first frame."""


class MelStream:
    """Features of audio that comes in pieces of any length: the same, bit for bit, however it is cut.

    Every block is computed from as many samples and in the same shapes. The state is at most a piece and 95 ms.
    """

    def __init__(self) -> None:
        self._last = 0.0
        self._samples = 0
        self._blocks = 0
        # A frame is centred on its first sample: what would be before the audio is silence.
        self._emphasised = np.zeros(WINDOW // 2)

    @property
    def samples(self) -> int:
        """How many were taken so far."""
        return self._samples

    def feed(self, samples: "NDArray[np.float32]") -> "Iterator[NDArray[np.float32]]":
        """Take the next samples, shape [n]; yield each block that they complete, shape [8, 128]."""
        raw = np.nan_to_num(samples.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        if not len(raw):
            return
        before = np.concatenate(([self._last], raw[:-1]))
        self._last = float(raw[-1])
        self._samples += len(raw)
        self._emphasised = np.concatenate((self._emphasised, raw - EMPHASIS * before))
        while len(self._emphasised) >= _REACH:
            yield self._block(self._emphasised[:_REACH])
            self._emphasised = self._emphasised[BLOCK_SAMPLES:]

    def finish(self) -> "NDArray[np.float32]":
        """The frames after the last block, shape [0 to 8, 128]; there is one for each whole hop of the audio."""
        frames = self._samples // HOP - self._blocks * MEL_FRAMES
        rest = np.pad(self._emphasised, (0, _REACH - len(self._emphasised)))
        return self._block(rest)[:frames]

    def _block(self, emphasised: "NDArray[np.float64]") -> "NDArray[np.float32]":
        self._blocks += 1
        frames = np.lib.stride_tricks.sliding_window_view(emphasised, WINDOW)[::HOP] * _window()
        powers = np.square(np.abs(np.fft.rfft(frames, FFT)))
        features: NDArray[np.float32] = np.log(powers @ _filters() + LOG_GUARD).astype(np.float32)
        return features


@cache
def _filters() -> "NDArray[np.float64]":
    """Shape [257, 128]."""
    return mel_filters(SAMPLE_RATE, FFT, MELS).T


@cache
def _window() -> "NDArray[np.float64]":
    return np.hanning(WINDOW)
