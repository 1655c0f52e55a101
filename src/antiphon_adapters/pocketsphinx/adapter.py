"""The family `pocketsphinx`: what a model can do, and how it comes into memory."""

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Mode, Task
from antiphon_adapters.pocketsphinx.model_files import read_model, read_pronunciations
from antiphon_adapters.pocketsphinx.session import FAMILY, SAMPLE_RATE, PocketsphinxSession, Weights
from antiphon_adapters.wishes import require_no_options, require_task_on_cpu

DICTIONARY_FACTOR = 8
"""How many times its size on disk the dictionary takes in memory, about, with a decoder at work."""


class PocketsphinxAdapter:
    """Alignment of a text with its recording, on the CPU."""

    family = FAMILY

    def inspect(self, spec: ModelSpec) -> Capability:
        """Look for the model's files. Raises ConfigError where one is missing, or for a wish that cannot be met."""
        require_task_on_cpu(spec, Task.ALIGN, "PocketSphinx does nothing else here")
        require_no_options(spec, "PocketSphinx")
        return Capability(
            tasks=frozenset({Task.ALIGN}),
            modes=frozenset({Mode.OFFLINE}),
            sample_rate=SAMPLE_RATE,
            weight_bytes=DICTIONARY_FACTOR * read_model(spec.path).size_bytes,
            languages=("en",),
            holds_gil=True,
        )

    def load(self, spec: ModelSpec) -> LoadedModel:
        """Read the dictionary; `spec.threads` is of no use, a decoder has one."""
        import pocketsphinx  # noqa: F401 (a load reads everything: the first request finds it in memory)

        files = read_model(spec.path)
        return LoadedPocketsphinx(Weights(files, read_pronunciations(files.dictionary)), spec.mode)


class LoadedPocketsphinx:
    """A dictionary in memory."""

    def __init__(self, weights: Weights, mode: Mode) -> None:
        self._weights: Weights | None = weights
        self._mode = mode

    def open_session(self, spec: ModelSpec | None = None) -> PocketsphinxSession | None:
        """Open a slot over the dictionary; None once it is closed."""
        mode = self._mode if spec is None else spec.mode
        return None if self._weights is None else PocketsphinxSession(self._weights, mode)

    def close(self) -> None:
        """Free the dictionary."""
        self._weights = None
