"""The Silero detector, v6, fed frame by frame; it says how likely speech is and draws no conclusion."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONTEXT_SAMPLES = 64
"""How much of the frame before it the network sees in front of each."""

STATE_SHAPE = (1, 1, 128)


class SpeechDetector:
    """One stream's detector over the network that faster-whisper carries; the network is shared, the state is not."""

    def __init__(self) -> None:
        import numpy as np
        from faster_whisper.vad import get_vad_model

        self._network = get_vad_model().session
        self._context = np.zeros(CONTEXT_SAMPLES, np.float32)
        self._h = np.zeros(STATE_SHAPE, np.float32)
        self._c = np.zeros(STATE_SHAPE, np.float32)
        self._peak = 1.0

    def probability(self, frame: "NDArray[np.float32]") -> float:
        """How likely there is speech in the next 512 samples at 16 kHz.

        Sound beyond -1..1 is turned down by the loudest so far: the network knows no such sound.
        """
        import numpy as np

        self._peak = max(self._peak, float(np.abs(frame).max()))
        frame = frame / np.float32(self._peak)
        fed = {"input": np.concatenate([self._context, frame])[np.newaxis], "h": self._h, "c": self._c}
        probabilities, self._h, self._c = self._network.run(None, fed)
        self._context = frame[-CONTEXT_SAMPLES:]
        return float(probabilities[0])
