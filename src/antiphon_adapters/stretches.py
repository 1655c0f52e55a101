"""Cuts a recording at 16 kHz into stretches of a bounded length, where it is quiet; it knows no engine and no words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spool import let_go

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FRAME_SAMPLES = 1600
"""A tenth of a second, the middle of the quietest of which is where a cut falls. Units: samples at 16 kHz."""

PAUSE_FRAMES = 3
"""What is looked for first is a quiet moment of this length: inside a word a stop is as quiet, and not as long."""


def stretches(pcm: Pcm, longest: int, search: int) -> "Iterator[tuple[int, NDArray[np.float32]]]":
    """Yield (where it begins, its samples), in order and without a gap; `pcm` is mono at 16 kHz.

    Units: samples. A stretch has at most `longest`; one that is not the last ends at the quietest moment of its last
    `search`. Samples that are no numbers are silence, and a stretch beyond -1..1 is turned down as a whole.
    """
    import numpy as np

    samples = np.frombuffer(pcm.samples.cast("B"), np.float32)
    start = 0
    while start < len(samples):
        end = min(start + longest, len(samples))
        if len(samples) - end > 0:
            end = end - search + quietest(samples[end - search : end])
        # One sample that is no number would silence a detector, or a feature, for the rest of the stretch.
        yield start, within_full_scale(np.nan_to_num(samples[start:end], nan=0.0, posinf=0.0, neginf=0.0))
        let_go(pcm, start, end)
        start = end


def within_full_scale(samples: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Turn down what goes beyond -1..1: a detector of speech knows no such sound, and clipped words are others."""
    import numpy as np

    peak = max(float(samples.max(initial=0.0)), -float(samples.min(initial=0.0)))
    return samples if peak <= 1.0 else samples / np.float32(peak)


def quietest(samples: "NDArray[np.float32]") -> int:
    """The middle of the quietest tenth of a second in the quietest pause, in samples from the start.

    There must be samples for a pause.
    """
    import numpy as np

    frames = samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)
    loudness = np.nan_to_num(np.square(frames).sum(axis=1), nan=0.0)
    pause = int(np.argmin(np.convolve(loudness, np.ones(PAUSE_FRAMES), "valid")))
    # Of frames that are equally quiet, the one in the middle is furthest from any word.
    found = min((1, 0, 2), key=lambda place: loudness[pause + place])
    return (pause + found) * FRAME_SAMPLES + FRAME_SAMPLES // 2
