"""What a diarizer remembers of the audio before: the speaker cache and, before it, the queue of the latest frames.

Source: NeMo's SortformerModules.streaming_update. It calls no graph.
"""

from typing import TYPE_CHECKING

import numpy as np

from antiphon_adapters.nemotron_diar.compression import compress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from antiphon_adapters.nemotron_diar.model_files import ModelFiles

SILENT_BELOW = 0.2
"""A frame is silent whose probabilities sum up to less."""


class SpeakerMemory:
    """The state of one stream. Shapes: `cache` [c, d] and `fifo` [f, d], both bounded by the schedule."""

    def __init__(self, files: "ModelFiles") -> None:
        empty = np.zeros((0, files.embedding_size), np.float32)
        self.cache = empty
        self.fifo = empty
        self._schedule = files.schedule
        self._cache_predictions: NDArray[np.float32] | None = None
        self._learned = np.array(files.silence, np.float32) if files.generation.learns_silence else None
        self._silence_sum = np.zeros(files.embedding_size)
        self._silent_frames = 0

    def update(self, predictions: "NDArray[np.float32]", embeddings: "NDArray[np.float32]") -> None:
        """Take a step in.

        Shapes: `embeddings` [k, d] of the frames to keep, `predictions` [c + f + k, speakers] for the cache, the queue
        and them, in this order.
        """
        schedule = self._schedule
        cached, queued = len(self.cache), len(self.fifo)
        self.fifo = np.concatenate((self.fifo, embeddings))
        if len(self.fifo) <= schedule.fifo_len:
            return
        over = len(embeddings) + queued - schedule.fifo_len
        popped = min(len(self.fifo), max(schedule.spkcache_update_period, over))
        leaving, leaving_predictions = self.fifo[:popped], predictions[cached : cached + popped]
        self.fifo = self.fifo[popped:]
        self._note_silence(leaving, leaving_predictions)
        self._extend_cache(leaving, leaving_predictions, predictions[:cached])

    def _extend_cache(
        self,
        embeddings: "NDArray[np.float32]",
        predictions: "NDArray[np.float32]",
        fresh: "NDArray[np.float32]",
    ) -> None:
        """Append to the cache; what its frames were first kept for counts later on, not the `fresh` predictions."""
        schedule = self._schedule
        self.cache = np.concatenate((self.cache, embeddings))
        if self._cache_predictions is not None:
            self._cache_predictions = np.concatenate((self._cache_predictions, predictions))
        if len(self.cache) > schedule.spkcache_len:
            known = self._cache_predictions
            self.cache, self._cache_predictions = compress(
                self.cache,
                np.concatenate((fresh, predictions)) if known is None else known,
                self._silence(),
                schedule.spkcache_len,
                schedule.sil_frames,
            )

    def _note_silence(self, embeddings: "NDArray[np.float32]", predictions: "NDArray[np.float32]") -> None:
        silent = predictions.sum(axis=1) < SILENT_BELOW
        self._silence_sum += embeddings[silent].sum(axis=0, dtype=np.float64)
        self._silent_frames += int(silent.sum())

    def _silence(self) -> "NDArray[np.float32]":
        """What fills the rows of nobody: as learned, else the mean of all silent frames so far."""
        if self._learned is not None:
            return self._learned
        return (self._silence_sum / max(self._silent_frames, 1)).astype(np.float32)
