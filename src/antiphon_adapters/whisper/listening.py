"""Chooses what of a recording the model listens to: bounded stretches, and in each the parts that hold speech.

It knows no text. A stretch bounds the memory of one call: the model's features take about 1 MB a second on the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import Pcm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE_RATE = 16000
STRETCH_SAMPLES = 300 * SAMPLE_RATE
"""The longest stretch; longer recordings are cut at the quietest moment of its last `SEARCH_SAMPLES`."""

SEARCH_SAMPLES = 30 * SAMPLE_RATE
FRAME_SAMPLES = SAMPLE_RATE // 10

SHORTEST_MS = 100
"""No word is shorter; of less, Whisper makes up a phrase such as "Thank you." (measured on cuts of 40 and 50 ms)."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What is to be transcribed in one call. Units: samples at 16 kHz.

    `parts` say where in the recording's stretch the joined `speech` comes from: dicts with `start` and `end`, as
    faster-whisper gives and takes them; `offset` is where that stretch begins in the recording.
    """

    offset: int
    speech: "NDArray[np.float32]"
    parts: list[dict[str, int]]


def passages(pcm: Pcm, *, only_speech: bool) -> Iterator[Passage]:
    """Yield what is worth listening to, in order; nothing for silence and noise.

    `only_speech` asks the Silero detector inside faster-whisper; without it all of the recording is taken.
    """
    import numpy as np
    from faster_whisper.vad import VadOptions, get_speech_timestamps

    options = VadOptions(min_speech_duration_ms=SHORTEST_MS)
    for offset, stretch in _stretches(pcm):
        if only_speech:
            parts = get_speech_timestamps(stretch, options, sampling_rate=SAMPLE_RATE)
        else:
            parts = [{"start": 0, "end": len(stretch)}] if len(stretch) * 1000 >= SHORTEST_MS * SAMPLE_RATE else []
        if parts:
            speech = np.concatenate([stretch[part["start"] : part["end"]] for part in parts])
            yield Passage(offset, speech, parts)


def within_full_scale(samples: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Turn down what goes beyond -1..1: the detector of speech knows no such sound, and clipped words are others."""
    import numpy as np

    peak = max(float(samples.max(initial=0.0)), -float(samples.min(initial=0.0)))
    return samples if peak <= 1.0 else samples / np.float32(peak)


def quietest(samples: "NDArray[np.float32]") -> int:
    """The middle of the quietest tenth of a second, in samples from the start."""
    import numpy as np

    frames = samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)
    loudness = np.nan_to_num(np.square(frames).sum(axis=1), nan=0.0)
    return int(np.argmin(loudness)) * FRAME_SAMPLES + FRAME_SAMPLES // 2


def _stretches(pcm: Pcm) -> "Iterator[tuple[int, NDArray[np.float32]]]":
    import numpy as np

    samples = np.frombuffer(pcm.samples.cast("B"), np.float32)
    start = 0
    while start < len(samples):
        end = min(start + STRETCH_SAMPLES, len(samples))
        if len(samples) - end > 0:
            end = end - SEARCH_SAMPLES + quietest(samples[end - SEARCH_SAMPLES : end])
        # One sample that is no number would silence the detector for the rest of the stretch.
        yield start, within_full_scale(np.nan_to_num(samples[start:end], nan=0.0, posinf=0.0, neginf=0.0))
        start = end
