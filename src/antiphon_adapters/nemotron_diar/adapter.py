"""The family `nemotron_diar`: what a model can do, and how it comes into memory."""

from typing import TYPE_CHECKING

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Mode, Task
from antiphon_adapters.nemotron_diar.model_files import ModelFiles, read_model
from antiphon_adapters.nemotron_diar.profile import SAMPLE_RATE
from antiphon_adapters.nemotron_diar.session import FAMILY, NemotronDiarSession
from antiphon_adapters.wishes import require_task_on_cpu

if TYPE_CHECKING:
    from antiphon_adapters.nemotron_diar.network import Network

LIBRARY_BYTES = 32 * 2**20
"""What the engine adds to the weights: mostly its library, at a process's first model."""


class NemotronDiarAdapter:
    """Diarization with streaming Sortformer v2 and v2.1 and with Nemotron-3 in ONNX, on the CPU."""

    family = FAMILY

    def inspect(self, spec: ModelSpec) -> Capability:
        """Read the model's header. Raises ConfigError for what is no such model, or a wish that it cannot meet."""
        require_task_on_cpu(spec, Task.DIAR, "such a model does nothing else")
        if spec.load_options:
            raise ConfigError(f"model '{spec.id}': nemotron_diar takes no load_options")
        files = _files(spec)
        return Capability(
            tasks=frozenset({Task.DIAR}),
            modes=frozenset(Mode),
            sample_rate=SAMPLE_RATE,
            weight_bytes=files.weight_bytes + LIBRARY_BYTES,
        )

    def load(self, spec: ModelSpec) -> LoadedModel:
        """Read the weights into one ONNX Runtime session of `spec.threads` threads, shared by all slots."""
        from antiphon_adapters.nemotron_diar.network import Network

        return LoadedDiarizer(Network.load(_files(spec), spec.threads), spec.mode)


class LoadedDiarizer:
    """A diarizer in memory."""

    def __init__(self, network: "Network", mode: Mode) -> None:
        self._network: Network | None = network
        self._mode = mode

    def open_session(self, spec: ModelSpec | None = None) -> NemotronDiarSession | None:
        """Open a slot over the weights, with the schedule that `spec` asks for; None once they are closed."""
        if self._network is None:
            return None
        if spec is None:
            return NemotronDiarSession(self._network, self._mode)
        return NemotronDiarSession(self._network.scheduled(_files(spec)), spec.mode)

    def close(self) -> None:
        """Free the weights."""
        self._network = None


def _files(spec: ModelSpec) -> ModelFiles:
    try:
        return read_model(spec.path, spec.session_options)
    except ConfigError as exc:
        raise ConfigError(f"model '{spec.id}': {exc.message}") from exc
