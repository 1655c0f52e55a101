"""The family `speaker_clustering`: what a model can do, how it is converted, and how it comes into memory."""

from pathlib import Path

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Mode, Task
from antiphon_adapters.silero.network import SAMPLE_RATE, open_network
from antiphon_adapters.speaker_clustering.checkpoint import read_tensors
from antiphon_adapters.speaker_clustering.encoder import write_encoder
from antiphon_adapters.speaker_clustering.model_files import CHECKPOINT_NAME, ENCODER_NAME, read_model
from antiphon_adapters.speaker_clustering.session import FAMILY, OPTIONS, SpeakerClusteringSession, Weights
from antiphon_adapters.wishes import require_no_options, require_task_on_cpu

LIBRARY_BYTES = 64 * 2**20
"""What the engine adds to the weights: its libraries, at a process's first model."""


class SpeakerClusteringAdapter:
    """Diarization by voice prints, on the CPU."""

    family = FAMILY

    def inspect(self, spec: ModelSpec) -> Capability:
        """Look for both networks. Raises ConfigError where one is missing, or for a wish that cannot be met."""
        require_task_on_cpu(spec, Task.DIAR, "speaker clustering does nothing else")
        require_no_options(spec, "speaker clustering")
        return Capability(
            tasks=frozenset({Task.DIAR}),
            modes=frozenset(Mode),
            sample_rate=SAMPLE_RATE,
            weight_bytes=read_model(spec.path).weight_bytes + LIBRARY_BYTES,
            options=OPTIONS,
        )

    def load(self, spec: ModelSpec) -> LoadedModel:
        """Read both networks once, to run each call on `spec.threads` threads; all slots share them."""
        import scipy.cluster.hierarchy  # noqa: F401 (a load reads everything: the first request finds it in memory)

        files = read_model(spec.path)
        weights = Weights(
            open_network(str(files.encoder), spec.threads), open_network(str(files.detector), spec.threads)
        )
        return LoadedSpeakerClustering(weights, spec.mode)

    def convert(self, folder: Path) -> None:
        """Make the encoder's graph of Resemblyzer's checkpoint. Raises ConfigError for another file."""
        write_encoder(read_tensors(folder / CHECKPOINT_NAME, "model_state"), folder / ENCODER_NAME)


class LoadedSpeakerClustering:
    """Both networks in memory."""

    def __init__(self, weights: Weights, mode: Mode) -> None:
        self._weights: Weights | None = weights
        self._mode = mode

    def open_session(self, spec: ModelSpec | None = None) -> SpeakerClusteringSession | None:
        """Open a slot over the weights; None once they are closed."""
        mode = self._mode if spec is None else spec.mode
        return None if self._weights is None else SpeakerClusteringSession(self._weights, mode)

    def close(self) -> None:
        """Free the weights."""
        self._weights = None
