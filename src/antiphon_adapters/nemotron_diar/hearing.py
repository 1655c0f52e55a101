"""One stream of audio as a diarizer hears it: features, steps of the graph, turns. It knows no request and no slot."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from antiphon_adapters.nemotron_diar.mel import BLOCK_SAMPLES, HOP, MelStream
from antiphon_adapters.nemotron_diar.memory import SpeakerMemory
from antiphon_adapters.nemotron_diar.model_files import MELS
from antiphon_adapters.nemotron_diar.profile import MEL_FRAMES, SAMPLE_RATE
from antiphon_adapters.nemotron_diar.turns import TurnFinder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from antiphon.vocabulary.tasks import SpeakerTurn
    from antiphon_adapters.nemotron_diar.network import Network


class Hearing:
    """The state of one stream. It is bounded by the model's schedule, and how the audio is cut changes no turn."""

    def __init__(self, network: "Network") -> None:
        files = network.files
        self._network = network
        self._memory = SpeakerMemory(files)
        self._mel = MelStream()
        self._features = np.zeros((0, MELS), np.float32)
        self._chunk = files.schedule.chunk_len * MEL_FRAMES
        self._step = self._chunk + files.schedule.right_context * MEL_FRAMES
        self._told_samples = BLOCK_SAMPLES // files.outputs.told_frames
        self._turns = TurnFinder(files.generation.rules, files.speakers, self._told_samples, SAMPLE_RATE)

    def feed(self, samples: "NDArray[np.float32]") -> "Iterator[list[SpeakerTurn]]":
        """Take the next samples, shape [n]; yield after each step the turns that became certain in it."""
        for block in self._mel.feed(samples):
            self._features = np.concatenate((self._features, block))
            if len(self._features) >= self._step:
                yield self._hear()

    def finish(self) -> "Iterator[list[SpeakerTurn]]":
        """End the audio; yield as `feed` does, and last of all what is left."""
        self._features = np.concatenate((self._features, self._mel.finish()))
        while len(self._features):
            yield self._hear()
        yield self._turns.finish(self._mel.samples)

    def _hear(self) -> "list[SpeakerTurn]":
        probabilities = self._network.step(self._memory, self._features[: self._step])
        new = self._features[: self._chunk]
        self._features = self._features[self._chunk :]
        # The graph rounds up to 80 ms; where it tells every 10 ms, what is behind the last ones is no audio.
        told = -(-len(new) * HOP // self._told_samples)
        return self._turns.feed(probabilities[:told])
