"""A Whisper model on disk: which files it is, and which languages it knows. It reads no weights and no engine.

Format: a folder as `ct2-transformers-converter` writes it, with the tokenizer beside it.
"""

from dataclasses import dataclass
from pathlib import Path

from antiphon.vocabulary.errors import ConfigError
from antiphon_adapters.files import read_json, read_text

MULTILINGUAL_TOKENS = 51865
"""The smallest vocabulary of a model that knows more than English (CTranslate2 draws the same line)."""

MAX_LANGUAGES = 500
"""Whisper's largest vocabulary has 100; each is listed in answers."""

MAX_TOKEN_CHARS = 20
"""The longest token of a language: a code of two or three letters between its marks."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """One model. `languages` are ISO 639 codes: ("en",) for a model that knows only English."""

    folder: Path
    languages: tuple[str, ...]
    weight_bytes: int

    @property
    def multilingual(self) -> bool:
        """Whether the model must be told the language, or find it."""
        return self.languages != ("en",)


def read_model(path: str) -> ModelFiles:
    """Find and read the model in the folder `path`.

    Raises ConfigError, naming the file, for anything that is no such model. A missing tokenizer counts: faster-whisper
    would ask a model hub for it.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ConfigError("a Whisper model is a folder")
    for name in ("model.bin", "config.json", "tokenizer.json"):
        if not (folder / name).is_file():
            raise ConfigError(f"the Whisper model has no {name}")
    for name in ("config.json", "tokenizer.json"):
        read_json(folder / name, dict)
    return ModelFiles(folder, _languages(_tokens(folder)), (folder / "model.bin").stat().st_size)


def _tokens(folder: Path) -> list[object]:
    """The vocabulary in order of id: a JSON list, or a token a line in older conversions."""
    listed = folder / "vocabulary.json"
    lines = folder / "vocabulary.txt"
    if listed.is_file():
        return list(read_json(listed, list))
    if lines.is_file():
        # Not splitlines: tokens hold other line separators than this one.
        return list(read_text(lines, errors="replace").removesuffix("\n").split("\n"))
    raise ConfigError("the Whisper model has no vocabulary.json or vocabulary.txt")


def _languages(tokens: list[object]) -> tuple[str, ...]:
    """The language tokens stand between these two in every Whisper vocabulary."""
    try:
        first = tokens.index("<|startoftranscript|>") + 1
        last = tokens.index("<|translate|>", first)
    except ValueError as exc:
        raise ConfigError("the vocabulary is not that of a Whisper model") from exc
    if len(tokens) < MULTILINGUAL_TOKENS:
        return ("en",)
    if last - first > MAX_LANGUAGES or any(len(str(token)) > MAX_TOKEN_CHARS for token in tokens[first:last]):
        raise ConfigError("the vocabulary is not that of a Whisper model: it has no sensible languages")
    return tuple(str(token).removeprefix("<|").removesuffix("|>") for token in tokens[first:last])
