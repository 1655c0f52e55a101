"""Voice prints of a recording: what the encoder makes of every 1.6 s of speech. It tells no speakers apart.

Source: Resemblyzer, whose audio.py makes the features (a mel spectrogram of power, no logarithm); a window is as long
as those that the encoder was trained on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from antiphon_adapters.mel import mel_filters
from antiphon_adapters.silero.network import SAMPLE_RATE
from antiphon_adapters.speaker_clustering.encoder import BANDS
from antiphon_adapters.speaker_clustering.recording import Recording

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

FRAME_SAMPLES = 160
"""A feature frame is 10 ms."""

N_FFT = 400
WINDOW_FRAMES = 160
HOP_FRAMES = 25
"""A window begins every quarter of a second."""

SURE_FRAMES = 80
"""A print of less speech says little of whose it is (seen: one of 0.3 s was like nobody's)."""

BATCH_WINDOWS = 64
"""How many windows the encoder hears at once: with the hop, 17 s of speech."""


@dataclass(frozen=True, slots=True)
class Window:
    """What one print is of. Units: samples from the recording's start."""

    start: int
    end: int

    @property
    def frames(self) -> int:
        """How many feature frames there are."""
        return (self.end - self.start) // FRAME_SAMPLES

    @property
    def middle(self) -> float:
        """Whose voice this is is surest here."""
        return (self.start + self.end) / 2


def windows_of(start: int, end: int) -> list[Window]:
    """The windows of one stretch of speech, in order, the last one ending with it to the frame; at least one.

    Units: samples. They begin whole frames after the stretch does. A stretch shorter than a window is one.
    """
    frames = (end - start) // FRAME_SAMPLES
    if frames <= WINDOW_FRAMES:
        return [Window(start, end)]
    firsts = [*range(0, frames - WINDOW_FRAMES, HOP_FRAMES), frames - WINDOW_FRAMES]
    length = WINDOW_FRAMES * FRAME_SAMPLES
    return [Window(start + first * FRAME_SAMPLES, start + first * FRAME_SAMPLES + length) for first in firsts]


def prints_of(
    encoder: "InferenceSession", recording: Recording, windows: list[Window]
) -> "Iterator[NDArray[np.float32]]":
    """The voice prints of the windows of one stretch, in batches of shape [n, 256], each of length one."""
    import numpy as np

    for first in range(0, len(windows), BATCH_WINDOWS):
        features = _features(recording, windows[first : first + BATCH_WINDOWS])
        yield np.asarray(encoder.run(None, {"mel": features})[0], np.float32)


def _features(recording: Recording, windows: list[Window]) -> "NDArray[np.float32]":
    """The features of neighbouring windows, shape [n, 160, 40]; a short one is repeated until it fills that."""
    import numpy as np

    start = windows[0].start
    frames = max(1, (windows[-1].end - start) // FRAME_SAMPLES)
    first = start - N_FFT // 2  # a frame is around its place
    samples = recording.read(first, first + (frames - 1) * FRAME_SAMPLES + N_FFT)
    framed = np.lib.stride_tricks.sliding_window_view(samples, N_FFT)[::FRAME_SAMPLES]
    power = np.abs(np.fft.rfft(framed * _hann(), axis=1)).astype(np.float32) ** 2
    mel = power @ _filters().T
    places = [(window.start - start) // FRAME_SAMPLES for window in windows]
    return np.stack([np.resize(mel[place : place + WINDOW_FRAMES], (WINDOW_FRAMES, BANDS)) for place in places])


@cache
def _filters() -> "NDArray[np.float32]":
    import numpy as np

    return mel_filters(SAMPLE_RATE, N_FFT, BANDS).astype(np.float32)


@cache
def _hann() -> "NDArray[np.float32]":
    import numpy as np

    return np.asarray(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT), np.float32)
