"""How loud the runs of a voice's graph are played. It knows samples, and no text."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HEADROOM = 0.7
"""How loud the first part of a cut sentence is at most: a later part may be louder, and must not clip."""

_SILENT = 1e-8


class Loudness:
    """Scales each sentence so that its loudest sample is 1, as piper-tts does; the parts of a cut one share a divisor.

    Scaled one by one, they would change in loudness within the sentence: a part with one loud word would be soft. What
    a later part will be is not known yet, so the first leaves it some room; one that needs more is scaled down alone.
    """

    def __init__(self) -> None:
        self._shared: float | None = None

    def scale(self, samples: "NDArray[np.float32]", *, ends: bool) -> "NDArray[np.float32]":
        """Scale the next run, shape [n]; `ends` tells whether a sentence ends with it."""
        import numpy as np

        loudest = float(np.max(np.abs(samples), initial=0.0))
        if loudest <= _SILENT:
            return np.zeros_like(samples)
        if self._shared is not None:
            divisor = max(self._shared, loudest)
        else:
            self._shared = divisor = loudest if ends else loudest / HEADROOM
        if ends:
            self._shared = None
        return samples / np.float32(divisor)
