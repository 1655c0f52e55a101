"""Chooses what of a recording the model listens to: bounded stretches, and in each the parts that hold speech.

It knows no text. A stretch bounds the memory of one call: the features take 1 MB a second on their way. After each, a
client that has left is noticed, and so much more of the recording is told to be over.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import Pcm
from antiphon_adapters.stretches import stretches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE_RATE = 16000
STRETCH_SAMPLES = 120 * SAMPLE_RATE
"""The longest stretch; longer recordings are cut at the quietest moment of its last `SEARCH_SAMPLES`.

A shorter one would cost time: the model hears 30 s at once, and the last of them is rarely full.
"""

SEARCH_SAMPLES = 30 * SAMPLE_RATE

SHORTEST_MS = 100
"""No word is shorter; of less, Whisper makes up a phrase such as "Thank you." (measured on cuts of 40 and 50 ms)."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What is to be transcribed in one call; nothing, where `parts` is empty. Units: samples at 16 kHz.

    `parts` say where in the recording's stretch the joined `speech` comes from: dicts with `start` and `end`, as
    faster-whisper gives and takes them; `offset` is where that stretch begins in the recording, `end` where it ends.
    """

    offset: int
    end: int
    speech: "NDArray[np.float32]"
    parts: list[dict[str, int]]


def passages(pcm: Pcm, *, only_speech: bool) -> Iterator[Passage]:
    """Yield each stretch with what of it is worth listening to, in order: of silence and noise, no part is.

    `only_speech` asks the Silero detector inside faster-whisper; without it all of the recording is taken.
    """
    import numpy as np
    from faster_whisper.vad import VadOptions, get_speech_timestamps

    options = VadOptions(min_speech_duration_ms=SHORTEST_MS)
    for offset, stretch in stretches(pcm, STRETCH_SAMPLES, SEARCH_SAMPLES):
        if only_speech:
            parts = get_speech_timestamps(stretch, options, sampling_rate=SAMPLE_RATE)
        else:
            parts = [{"start": 0, "end": len(stretch)}] if len(stretch) * 1000 >= SHORTEST_MS * SAMPLE_RATE else []
        speech = [stretch[part["start"] : part["end"]] for part in parts]
        yield Passage(offset, offset + len(stretch), np.concatenate(speech) if speech else stretch[:0], parts)
