"""Listens to one stream of samples, however it is cut into blocks, and says where speech begins and ends."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spool import pieces_of
from antiphon.vocabulary.tasks import SpeechStarted, SpeechStopped
from antiphon_adapters.silero.endpointing import FRAME_SAMPLES, Endpointer, Pauses
from antiphon_adapters.silero.network import SpeechDetector, whole_frames

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

BLOCK_SAMPLES = 256 * FRAME_SAMPLES
"""How much of a recording is listened to at once: about 8 s."""


class SpeechListener:
    """One stream, from its first sample to its last; it keeps less than a frame of it."""

    def __init__(self, network: "InferenceSession", pauses: Pauses) -> None:
        import numpy as np

        self._detector = SpeechDetector(network)
        self._endpointer = Endpointer(pauses)
        self._rest = np.zeros(0, np.float32)
        self._heard = 0

    @property
    def heard(self) -> int:
        """How many samples have come."""
        return self._heard

    def hear(self, samples: "NDArray[np.float32]") -> list[SpeechStarted | SpeechStopped]:
        """Take the next samples; return what they make certain."""
        import numpy as np

        self._heard += len(samples)
        joined = np.concatenate([self._rest, samples]) if len(self._rest) else samples
        whole = len(joined) - len(joined) % FRAME_SAMPLES
        self._rest = joined[whole:].copy()
        return self._edges(joined[:whole])

    def finish(self) -> list[SpeechStarted | SpeechStopped]:
        """Take the end of the stream."""
        edges = self._edges(self._rest) + list(self._endpointer.finish(self._heard))
        # The silence that fills the last frame up is no part of the stream.
        return [type(edge)(min(edge.at_sample, self._heard)) for edge in edges]

    def _edges(self, samples: "NDArray[np.float32]") -> list[SpeechStarted | SpeechStopped]:
        if not len(samples):
            return []
        probabilities = self._detector.probabilities(whole_frames(samples))
        edges = [self._endpointer.hear(float(probability)) for probability in probabilities]
        return [edge for edge in edges if edge is not None]


def blocks_of(pcm: Pcm) -> "Iterator[NDArray[np.float32]]":
    """Mono audio in blocks of a length that a network takes at once, without a copy."""
    import numpy as np

    for piece in pieces_of(pcm, BLOCK_SAMPLES):
        yield np.frombuffer(piece.cast("B"), np.float32)


def spans_of(edges: Iterable[SpeechStarted | SpeechStopped]) -> Iterator[tuple[int, int]]:
    """The stretches of speech between the edges of a whole stream, as (start, end) in samples."""
    start = 0
    for edge in edges:
        if isinstance(edge, SpeechStarted):
            start = edge.at_sample
        else:
            yield start, edge.at_sample
