"""The family `whisper`: what a model can do, and how it comes into memory."""

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Mode, Task
from antiphon_adapters.whisper.decoding import Weights
from antiphon_adapters.whisper.listening import SAMPLE_RATE
from antiphon_adapters.whisper.model_files import read_model
from antiphon_adapters.whisper.session import FAMILY, WhisperSession, options_of
from antiphon_adapters.wishes import require_task_on_cpu

COMPUTE_TYPES = ("int8", "int8_float32", "float32")
"""How the weights are held and multiplied on a CPU; the first is the default."""

LIBRARY_BYTES = 32 * 2**20
"""What the engine adds to the weights: mostly its libraries, at a process's first model."""


class WhisperAdapter:
    """Transcription and translation with Whisper models in CTranslate2's format, on the CPU."""

    family = FAMILY

    def inspect(self, spec: ModelSpec) -> Capability:
        """Read the model's files. Raises ConfigError for what is no such model, or a wish that it cannot meet."""
        require_task_on_cpu(spec, Task.ASR, "a Whisper model does nothing else")
        if spec.session_options:
            raise ConfigError(f"model '{spec.id}': Whisper takes no session_options")
        _compute_type(spec)
        files = read_model(spec.path)
        return Capability(
            tasks=frozenset({Task.ASR}),
            modes=frozenset(Mode),
            sample_rate=SAMPLE_RATE,
            weight_bytes=files.weight_bytes + LIBRARY_BYTES,
            options=options_of(files),
            languages=files.languages,
        )

    def load(self, spec: ModelSpec) -> LoadedModel:
        """Read the weights once, with a worker of `spec.threads` threads for each slot."""
        from faster_whisper.vad import get_vad_model

        from antiphon_adapters.whisper.engine import WhisperEngine

        files = read_model(spec.path)
        model = WhisperEngine(
            str(files.folder),
            device="cpu",
            compute_type=_compute_type(spec),
            cpu_threads=spec.threads,
            num_workers=spec.slots,
            local_files_only=True,
        )
        get_vad_model()  # a load reads everything: the first request finds the detector in memory
        return LoadedWhisper(Weights(model, files), spec.mode)


class LoadedWhisper:
    """A Whisper model in memory."""

    def __init__(self, weights: Weights, mode: Mode) -> None:
        self.weights: Weights | None = weights
        self._mode = mode

    def open_session(self, spec: ModelSpec | None = None) -> WhisperSession | None:
        """Open a slot over the weights; None once they are closed."""
        mode = self._mode if spec is None else spec.mode
        return None if self.weights is None else WhisperSession(self.weights, mode)

    def close(self) -> None:
        """Free the weights."""
        self.weights = None


def _compute_type(spec: ModelSpec) -> str:
    unknown = sorted(set(spec.load_options) - {"compute_type"})
    if unknown:
        raise ConfigError(f"model '{spec.id}': unknown load_options {', '.join(unknown)}; Whisper takes compute_type")
    wanted = spec.load_options.get("compute_type", COMPUTE_TYPES[0])
    if not isinstance(wanted, str) or wanted not in COMPUTE_TYPES:
        raise ConfigError(f"model '{spec.id}': load_options.compute_type must be one of {', '.join(COMPUTE_TYPES)}")
    return wanted
