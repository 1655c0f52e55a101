"""The family `canary`: what a model can do, and how it comes into memory."""

from typing import TYPE_CHECKING

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Mode, Task
from antiphon_adapters.canary.model_files import read_model
from antiphon_adapters.canary.session import FAMILY, SAMPLE_RATE, CanarySession, Weights, options_of
from antiphon_adapters.wishes import require_task_on_cpu

if TYPE_CHECKING:
    from antiphon_adapters.canary.model_files import ModelFiles

QUANTIZATIONS = ("int8",)
"""The words in the names of graphs that hold other weights than float32, as in encoder-model.int8.onnx."""

LIBRARY_BYTES = 32 * 2**20
"""What the engine adds to the weights: mostly its libraries, at a process's first model."""


class CanaryAdapter:
    """Transcription and translation with NeMo Canary models in ONNX, on the CPU."""

    family = FAMILY

    def inspect(self, spec: ModelSpec) -> Capability:
        """Read the model's files. Raises ConfigError for what is no such model, or a wish that it cannot meet."""
        require_task_on_cpu(spec, Task.ASR, "a Canary model does nothing else")
        if spec.session_options:
            raise ConfigError(f"model '{spec.id}': Canary takes no session_options")
        files = _files(spec)
        return Capability(
            tasks=frozenset({Task.ASR}),
            modes=frozenset(Mode),
            sample_rate=SAMPLE_RATE,
            weight_bytes=files.weight_bytes + LIBRARY_BYTES,
            options=options_of(files),
            languages=files.languages,
        )

    def load(self, spec: ModelSpec) -> LoadedModel:
        """Read the weights into two ONNX Runtime sessions of `spec.threads` threads, shared by all slots."""
        from antiphon_adapters.canary.engine import CanaryEngine

        files = _files(spec)
        return LoadedCanary(Weights(CanaryEngine(files, spec.threads), files), spec.mode)


class LoadedCanary:
    """A Canary model in memory."""

    def __init__(self, weights: Weights, mode: Mode) -> None:
        self._weights: Weights | None = weights
        self._mode = mode

    def open_session(self, spec: ModelSpec | None = None) -> CanarySession | None:
        """Open a slot over the weights; None once they are closed."""
        mode = self._mode if spec is None else spec.mode
        return None if self._weights is None else CanarySession(self._weights, mode)

    def close(self) -> None:
        """Free the weights."""
        self._weights = None


def _files(spec: ModelSpec) -> "ModelFiles":
    if unknown := sorted(set(spec.load_options) - {"quantization"}):
        raise ConfigError(f"model '{spec.id}': unknown load_options {', '.join(unknown)}; Canary takes quantization")
    wanted = spec.load_options.get("quantization")
    if wanted is not None and (not isinstance(wanted, str) or wanted not in QUANTIZATIONS):
        raise ConfigError(f"model '{spec.id}': load_options.quantization must be one of {', '.join(QUANTIZATIONS)}")
    try:
        return read_model(spec.path, wanted)
    except ConfigError as exc:
        raise ConfigError(f"model '{spec.id}': {exc.message}") from exc
