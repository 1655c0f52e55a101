"""A PocketSphinx model on disk: the acoustic model's files and the dictionary. It imports no engine.

Format: `acoustic/` as SphinxTrain writes it, and `dictionary.dict`, a word and its phonemes a line, more pronunciations
of a word as `word(2)`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from antiphon.vocabulary.errors import ConfigError
from antiphon_adapters.files import read_text

ACOUSTIC_FILES = ("feat.params", "mdef", "means", "noisedict", "transition_matrices", "variances")
DICTIONARY_NAME = "dictionary.dict"

_ENTRY = re.compile(r"(?P<word>\S+?)(\(\d+\))?\s+(?P<phonemes>\S.*)")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """One model."""

    acoustic: Path
    dictionary: Path
    size_bytes: int


def read_model(path: str) -> ModelFiles:
    """Find the model in the folder `path`; raises ConfigError naming the file that is not there."""
    folder = Path(path)
    if not folder.is_dir():
        raise ConfigError("a PocketSphinx model is a folder")
    files = [*(Path("acoustic") / name for name in ACOUSTIC_FILES), Path(DICTIONARY_NAME)]
    for file in files:
        if not (folder / file).is_file():
            raise ConfigError(f"the PocketSphinx model has no {file}")
    return ModelFiles(
        folder / "acoustic", folder / DICTIONARY_NAME, sum((folder / file).stat().st_size for file in files)
    )


def read_pronunciations(dictionary: Path) -> Mapping[str, tuple[str, ...]]:
    """Every word of the dictionary and its pronunciations, the first first; raises ConfigError for another format."""
    found: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(read_text(dictionary).splitlines(), 1):
        if not line.strip():
            continue
        match = _ENTRY.fullmatch(line.strip())
        if match is None:
            raise ConfigError(f"{dictionary.name}: line {number} is no word with its phonemes")
        found[match["word"]] = (*found.get(match["word"], ()), match["phonemes"])
    return found
