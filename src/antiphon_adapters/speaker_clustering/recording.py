"""A recording as this family hears it: its samples, raised if they are quiet. It judges no sound.

Source: Resemblyzer's audio.py raises quiet recordings to -30 dBFS; the detector of speech also hears them better so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spool import let_go
from antiphon_adapters.silero.listening import BLOCK_SAMPLES, blocks_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

QUIETEST_DBFS = -30.0
MAX_GAIN = 1000.0


@dataclass(frozen=True, slots=True)
class Recording:
    """Mono audio at 16 kHz and the factor that it is raised by. It is read in pieces and never copied whole."""

    pcm: Pcm
    gain: float

    @classmethod
    def of(cls, pcm: Pcm) -> Self:
        """Measure how quiet the audio is, by its root mean square."""
        import numpy as np

        square_sum = sum(float(np.square(_clean(block).astype(np.float64)).sum()) for block in blocks_of(pcm))
        level = max(square_sum / max(pcm.frames, 1), 1e-12) ** 0.5
        return cls(pcm, float(min(max(10 ** (QUIETEST_DBFS / 20) / level, 1.0), MAX_GAIN)))

    def read(self, start: int, end: int) -> "NDArray[np.float32]":
        """The samples from `start` to `end`; silence where there are none."""
        import numpy as np

        first, last = max(0, start), max(0, start, min(end, self.pcm.frames))
        found = np.frombuffer(self.pcm.samples[first:last].cast("B"), np.float32)
        raised = np.pad(_clean(found) * np.float32(self.gain), (first - start, end - last))
        let_go(self.pcm, first, last)
        return raised

    def blocks(self) -> "Iterator[NDArray[np.float32]]":
        """All of it, piece by piece."""
        for start in range(0, self.pcm.frames, BLOCK_SAMPLES):
            yield self.read(start, min(start + BLOCK_SAMPLES, self.pcm.frames))


def _clean(samples: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """A sample that is no number is silence."""
    import numpy as np

    return np.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
