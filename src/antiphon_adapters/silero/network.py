"""The Silero network, v6: how likely there is speech in each frame of a stream. It draws no conclusion.

Format: inputs `input` f32 [n, 576], a frame of 512 samples at 16 kHz behind the 64 before it, and the state `h`, `c`
f32 [1, 1, 128]; outputs `speech_probs` f32 [n], `hn`, `cn`. The numbers do not hang on how many frames come at once.
"""

from typing import TYPE_CHECKING

from antiphon_adapters.silero.endpointing import FRAME_SAMPLES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

SAMPLE_RATE = 16_000

CONTEXT_SAMPLES = 64
"""How much of the frame before it the network sees in front of each."""

STATE_SHAPE = (1, 1, 128)


def open_network(file: str, threads: int) -> "InferenceSession":
    """Read the weights, to run each call on `threads` threads; any number of detectors may share them."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # it would keep the most that any call took
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


class SpeechDetector:
    """One stream's detector; the network is shared, the state is not."""

    def __init__(self, network: "InferenceSession") -> None:
        import numpy as np

        self._network = network
        self._context = np.zeros(CONTEXT_SAMPLES, np.float32)
        self._h = np.zeros(STATE_SHAPE, np.float32)
        self._c = np.zeros(STATE_SHAPE, np.float32)
        self._peak = np.float32(1.0)

    def probability(self, frame: "NDArray[np.float32]") -> float:
        """How likely there is speech in the next 512 samples."""
        return float(self.probabilities(frame[None])[0])

    def probabilities(self, frames: "NDArray[np.float32]") -> "NDArray[np.float32]":
        """How likely there is speech in each of the next frames, shape [n, 512], n at least 1; the result is [n].

        A sample that is no number is silence. Sound beyond -1..1 is turned down by the loudest so far: the network
        knows no such sound.
        """
        import numpy as np

        frames = np.nan_to_num(frames, nan=0.0, posinf=0.0, neginf=0.0)
        peaks = np.maximum.accumulate(np.maximum(np.abs(frames).max(axis=1), self._peak))
        frames = np.divide(frames, peaks[:, None], dtype=np.float32)
        before = np.concatenate([self._context[None], frames[:-1, -CONTEXT_SAMPLES:]])
        fed = {"input": np.concatenate([before, frames], axis=1), "h": self._h, "c": self._c}
        found, self._h, self._c = self._network.run(None, fed)
        self._context, self._peak = frames[-1, -CONTEXT_SAMPLES:], peaks[-1]
        return np.asarray(found, np.float32).reshape(len(frames))


def whole_frames(samples: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Samples as frames, shape [n, 512], the last one filled up with silence."""
    import numpy as np

    return np.pad(samples, (0, -len(samples) % FRAME_SAMPLES)).reshape(-1, FRAME_SAMPLES)
