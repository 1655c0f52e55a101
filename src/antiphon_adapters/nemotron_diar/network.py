"""The loaded graph, one step of which hears a chunk. Importing this module imports the engine: only `load` may."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import onnxruntime

from antiphon_adapters.nemotron_diar.memory import SpeakerMemory
from antiphon_adapters.nemotron_diar.model_files import EMBEDDINGS, MELS, ModelFiles
from antiphon_adapters.nemotron_diar.profile import MEL_FRAMES

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Network:
    """Immutable weights: `step` may run on several threads at once, and equal calls answer equal bytes."""

    files: ModelFiles
    graph: onnxruntime.InferenceSession

    @classmethod
    def load(cls, files: ModelFiles, threads: int) -> Self:
        """Read the weights, to run each step on `threads` threads."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        return cls(files, onnxruntime.InferenceSession(str(files.graph), options, providers=["CPUExecutionProvider"]))

    def scheduled(self, files: ModelFiles) -> Self:
        """The same weights with the schedule of `files`."""
        return replace(self, files=files)

    def step(self, memory: SpeakerMemory, features: "NDArray[np.float32]") -> "NDArray[np.float32]":
        """Hear a chunk with its right context, shape [n, 128], and remember it.

        Returns the probabilities of the chunk without its context, shape [frames, speakers], in the frames that the
        model tells: of 10 or 80 ms, the last of which may reach behind `features`.
        """
        outputs = self.files.outputs
        # Whatever is added beyond a whole frame would be heard by the frames before it.
        padding = -len(features) % MEL_FRAMES
        chunk = np.concatenate((features, np.zeros((padding, MELS), np.float32)))
        predictions, told, embeddings = self.graph.run(
            [outputs.preds, outputs.told, EMBEDDINGS],
            {
                "chunk": chunk[None],
                "chunk_lengths": np.array([len(features)], np.int64),
                "spkcache": memory.cache[None],
                "spkcache_lengths": np.array([len(memory.cache)], np.int64),
                "fifo": memory.fifo[None],
                "fifo_lengths": np.array([len(memory.fifo)], np.int64),
            },
        )
        before = len(memory.cache) + len(memory.fifo)
        kept = min(self.files.schedule.chunk_len, -(-len(features) // MEL_FRAMES))
        memory.update(predictions[0, : before + kept], embeddings[0, :kept])
        scored: NDArray[np.float32] = told[0, before * outputs.told_frames : (before + kept) * outputs.told_frames]
        return scored
