"""The family `silero_vad`: what the detector can do, and how it comes into memory."""

from typing import TYPE_CHECKING

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Mode, Task
from antiphon_adapters.silero.model_files import read_network
from antiphon_adapters.silero.network import SAMPLE_RATE, open_network
from antiphon_adapters.silero.session import FAMILY, OPTIONS, SileroVadSession
from antiphon_adapters.wishes import require_no_options, require_task_on_cpu

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

LIBRARY_BYTES = 32 * 2**20
"""What the engine adds to the weights: its libraries, at a process's first model."""


class SileroVadAdapter:
    """Voice activity with the Silero detector, on the CPU."""

    family = FAMILY

    def inspect(self, spec: ModelSpec) -> Capability:
        """Look for the network. Raises ConfigError where it is missing, or for a wish that cannot be met."""
        require_task_on_cpu(spec, Task.VAD, "a Silero detector does nothing else")
        require_no_options(spec, "Silero")
        return Capability(
            tasks=frozenset({Task.VAD}),
            modes=frozenset(Mode),
            sample_rate=SAMPLE_RATE,
            weight_bytes=read_network(spec.path).stat().st_size + LIBRARY_BYTES,
            options=OPTIONS,
        )

    def load(self, spec: ModelSpec) -> LoadedModel:
        """Read the network once, to run each call on `spec.threads` threads; all slots share it."""
        return LoadedDetector(open_network(str(read_network(spec.path)), spec.threads), spec.mode)


class LoadedDetector:
    """A detector in memory."""

    def __init__(self, network: "InferenceSession", mode: Mode) -> None:
        self._network: InferenceSession | None = network
        self._mode = mode

    def open_session(self, spec: ModelSpec | None = None) -> SileroVadSession | None:
        """Open a slot over the network; None once it is closed."""
        mode = self._mode if spec is None else spec.mode
        return None if self._network is None else SileroVadSession(self._network, mode)

    def close(self) -> None:
        """Free the weights."""
        self._network = None
