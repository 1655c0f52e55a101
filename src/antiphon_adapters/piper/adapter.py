"""The family `piper`: what a voice can do, and how it comes into memory."""

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Mode, Task
from antiphon_adapters.piper.session import FAMILY, OPTIONS, PiperSession
from antiphon_adapters.piper.voice import Voice
from antiphon_adapters.piper.voice_files import read_voice

LIBRARY_BYTES = 32 * 2**20
"""What the engine adds to the weights: its libraries at a process's first voice, packed copies of weights at each."""


class PiperAdapter:
    """Text to speech with Piper voices, on the CPU."""

    family = FAMILY

    def inspect(self, spec: ModelSpec) -> Capability:
        """Read the voice's configuration. Raises ConfigError for what is no voice, or a wish that it cannot meet."""
        if spec.task is not Task.TTS:
            raise ConfigError(f"model '{spec.id}': task must be tts, a Piper voice does nothing else")
        if spec.device != "cpu":
            raise ConfigError(f"model '{spec.id}': device must be cpu")
        for field, given in (("load_options", spec.load_options), ("session_options", spec.session_options)):
            if given:
                raise ConfigError(f"model '{spec.id}': unknown {field} {', '.join(sorted(given))}; Piper takes none")
        files = read_voice(spec.path)
        return Capability(
            tasks=frozenset({Task.TTS}),
            modes=frozenset(Mode),
            sample_rate=files.sample_rate,
            weight_bytes=files.weight_bytes + LIBRARY_BYTES,
            options=OPTIONS,
            voices=files.voices,
            voice_aliases=files.numbers,
            languages=(files.language,) if files.language else (),
            auto_threads=True,
        )

    def load(self, spec: ModelSpec) -> LoadedModel:
        """Read the weights once, to run calls on `spec.threads` threads; all slots share them."""
        return PiperModel(Voice.load(read_voice(spec.path), spec.threads, auto=spec.auto_threads), spec.mode)


class PiperModel:
    """A voice in memory."""

    def __init__(self, voice: Voice, mode: Mode) -> None:
        self._voice: Voice | None = voice
        self._mode = mode

    def open_session(self, spec: ModelSpec | None = None) -> PiperSession | None:
        """Open a slot over the voice; None once it is closed."""
        mode = self._mode if spec is None else spec.mode
        return None if self._voice is None else PiperSession(self._voice, mode)

    def close(self) -> None:
        """Free the weights."""
        self._voice = None
