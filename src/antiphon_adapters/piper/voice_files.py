"""A Piper voice on disk: which files it is, and what its configuration says. It reads no weights and no engine.

Format: `NAME.onnx` beside `NAME.onnx.json`, as https://huggingface.co/rhasspy/piper-voices publishes them.
"""

from dataclasses import dataclass
from pathlib import Path

from antiphon.vocabulary.errors import ConfigError
from antiphon_adapters.files import read_json, require_regular

OFFLINE_PHONEMES = frozenset({"espeak", "text"})
"""Phoneme types that piper-tts makes with what it carries; the others fetch models or need more packages."""


MAX_SPEAKERS = 10_000
"""Ten times as many as any published voice has: each becomes a name, and in memory a number of its own."""

MAX_NAME_CHARS = 200
"""The longest name of a speaker."""

MAX_SYMBOLS = 100_000
"""No alphabet of phonemes is as large; published voices have 256."""

MAX_SAMPLE_RATE = 192_000
"""In Hz, far above any voice; buffers are made for it."""


@dataclass(frozen=True, slots=True)
class VoiceFiles:
    """One voice. Units: `sample_rate` in Hz.

    `speakers` maps names to ids, in order of id; a one-speaker voice has none.
    """

    graph: Path
    config: Path
    sample_rate: int
    length_scale: float
    noise_scale: float
    noise_w: float
    speakers: dict[str, int]
    default_speaker: int
    language: str | None

    @property
    def name(self) -> str:
        """The voice's own name, such as en_US-joe-medium."""
        return self.graph.stem

    @property
    def voices(self) -> tuple[str, ...]:
        """What a request may ask for as its voice."""
        return ("default", self.name, *(speaker for speaker in self.speakers if speaker not in ("default", self.name)))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers of the speakers, which requests may ask for instead of the names."""
        return tuple(number for number in map(str, self.speakers.values()) if number not in self.voices)

    @property
    def weight_bytes(self) -> int:
        """The size of the graph, in bytes."""
        return self.graph.stat().st_size


def read_voice(path: str) -> VoiceFiles:
    """Find and read the voice at `path`: its folder, or the .onnx file itself.

    Raises ConfigError, naming the file and the field, for anything that is no such voice.
    """
    graph = _find_graph(Path(path))
    config = graph.with_name(f"{graph.name}.json")
    fields = _Fields(config.name, _read_config(config))
    if fields.optional_text("phoneme_type", "espeak") not in OFFLINE_PHONEMES:
        raise ConfigError(f"{config.name}: phoneme_type must be one of {', '.join(sorted(OFFLINE_PHONEMES))}")
    for required in ("phoneme_id_map", "espeak"):
        fields.group(required)
    fields.whole("num_symbols", 1, MAX_SYMBOLS)
    inference = fields.group("inference", optional=True)
    language = fields.group("language", optional=True)
    return VoiceFiles(
        graph=graph,
        config=config,
        sample_rate=fields.group("audio").whole("sample_rate", 1, MAX_SAMPLE_RATE),
        length_scale=inference.positive("length_scale", 1.0),
        noise_scale=inference.positive("noise_scale", 0.667),
        noise_w=inference.positive("noise_w", 0.8),
        speakers=_speakers(fields),
        default_speaker=fields.whole("default_speaker_id", 0, MAX_SPEAKERS - 1, default=0),
        language=language.optional_text("family", "") or None,
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    """A JSON object whose faults are told with the file's name and the field's."""

    where: str
    values: dict[str, object]

    def group(self, name: str, *, optional: bool = False) -> "_Fields":
        value = self.values.get(name, {} if optional else None)
        if not isinstance(value, dict):
            raise ConfigError(f"{self.where}: {name} must be an object")
        return _Fields(f"{self.where}: {name}", value)

    def whole(self, name: str, minimum: int, maximum: int, default: int | None = None) -> int:
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise ConfigError(f"{self.where}: {name} must be an integer from {minimum} to {maximum}")
        return value

    def positive(self, name: str, default: float) -> float:
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 100:
            raise ConfigError(f"{self.where}: {name} must be a number between 0 and 100")
        return float(value)

    def optional_text(self, name: str, default: str) -> str:
        value = self.values.get(name, default)
        if not isinstance(value, str):
            raise ConfigError(f"{self.where}: {name} must be a string")
        return value


def _find_graph(path: Path) -> Path:
    if path.is_dir():
        graphs = sorted(path.glob("*.onnx"))
        if len(graphs) != 1:
            raise ConfigError(f"a Piper voice's folder holds one .onnx file, this one holds {len(graphs)}")
        return require_regular(graphs[0])
    if path.suffix != ".onnx" or not path.is_file():
        raise ConfigError("a Piper voice is a folder with one .onnx file, or that file")
    return path


def _read_config(config: Path) -> dict[str, object]:
    if not config.exists():
        raise ConfigError(f"{config.name} is missing beside the voice's .onnx file")
    return read_json(config, dict)


def _speakers(fields: _Fields) -> dict[str, int]:
    """The speakers of a many-speaker voice; where the configuration names none, their ids are their names."""
    count = fields.whole("num_speakers", 0, MAX_SPEAKERS, default=1)
    if count <= 1:
        return {}
    named = fields.group("speaker_id_map", optional=True)
    if len(named.values) > MAX_SPEAKERS or any(len(name) > MAX_NAME_CHARS for name in named.values):
        most = f"at most {MAX_SPEAKERS} names of at most {MAX_NAME_CHARS} characters"
        raise ConfigError(f"{named.where} must hold {most}")
    speakers = {name: named.whole(name, 0, MAX_SPEAKERS - 1) for name in named.values}
    return dict(sorted(speakers.items(), key=lambda item: item[1])) or {str(number): number for number in range(count)}
