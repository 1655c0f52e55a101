"""Live audio as it is worked on: whole frames of one length, and a tape of what is still needed. It judges no sound."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from antiphon.vocabulary.audio import BYTES_PER_SAMPLE, AudioChunk
from antiphon.vocabulary.errors import InvalidRequest
from antiphon_adapters.whisper.listening import SAMPLE_RATE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def frames_of(audio: Iterator[AudioChunk], length: int) -> "Iterator[NDArray[np.float32]]":
    """Regroup chunks into frames of `length` samples, the last one what is left: no later step sees a chunk's edge.

    Samples that are no numbers are silence. Raises InvalidRequest for audio of another rate, and what `audio` raises.
    """
    import numpy as np

    rest = np.zeros(0, np.float32)
    for chunk in audio:
        if (chunk.pcm.rate, chunk.pcm.channels) != (SAMPLE_RATE, 1):
            raise InvalidRequest("live audio must come as 16000 Hz mono", param="audio")
        fresh = np.frombuffer(chunk.pcm.samples.cast("B"), np.float32)
        samples = np.concatenate([rest, np.nan_to_num(fresh, nan=0.0, posinf=0.0, neginf=0.0)])
        whole = len(samples) - len(samples) % length
        yield from samples[:whole].reshape(-1, length)
        rest = samples[whole:]
    if len(rest):
        yield rest


class Tape:
    """The newest part of a stream of samples. Positions count from the stream's beginning."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._start = 0

    @property
    def start(self) -> int:
        """The first sample that is still there."""
        return self._start

    @property
    def end(self) -> int:
        """How many samples have come, those that are gone included."""
        return self._start + len(self._data) // BYTES_PER_SAMPLE

    def append(self, samples: "NDArray[np.float32]") -> None:
        """Put samples at the end."""
        self._data += samples.tobytes()

    def forget(self, before: int) -> None:
        """Drop what lies before a position."""
        if before > self._start:
            del self._data[: (before - self._start) * BYTES_PER_SAMPLE]
            self._start = before

    def read(self, start: int, end: int) -> "NDArray[np.float32]":
        """Copy the samples from `start` to `end`."""
        import numpy as np

        first, last = ((place - self._start) * BYTES_PER_SAMPLE for place in (start, end))
        return np.frombuffer(bytes(self._data[first:last]), np.float32)
