"""A Canary model on disk: which files it is, and which languages it knows. It reads no weights and no engine.

Format: a folder as https://huggingface.co/istupakov/canary-1b-v2-onnx has it. `vocab.txt` holds a token and its number
on each line; `config.json` may be missing.
"""

from dataclasses import dataclass
from pathlib import Path

from antiphon.vocabulary.errors import ConfigError
from antiphon_adapters.files import read_json, read_text

MODEL_TYPE = "nemo-conformer-aed"
FEATURE_SIZES = (80, 128)
"""The mel features that onnx-asr can make for NeMo's encoders."""

PROMPT_TOKENS = (
    "\u2581",
    "<|startofcontext|>",
    "<|startoftranscript|>",
    "<|emo:undefined|>",
    "<|en|>",
    "<|pnc|>",
    "<|noitn|>",
    "<|notimestamp|>",
    "<|nodiarize|>",
    "<|endoftext|>",
)
"""What onnx-asr's prompt for Canary, and the end of its answer, are made of."""

FLASH_LANGUAGES = ("en", "de", "es", "fr")
MANY_LANGUAGES = (
    *("en", "bg", "hr", "cs", "da", "nl", "et", "fi", "fr", "de", "el", "hu", "it"),
    *("lv", "lt", "mt", "pl", "pt", "ro", "sk", "sl", "es", "sv", "ru", "uk"),
)
"""Those of Canary 1B v2. Vocabularies have tokens for many more languages, which no model was taught."""

FLASH_TOKENS = 10_000
"""Vocabularies below this size are those of the Flash models, which know four languages (theirs have 5,248 tokens)."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """One model. `languages` are ISO 639 codes, English first; `knows_pnc` says that it can leave out punctuation."""

    folder: Path
    quantization: str | None
    languages: tuple[str, ...]
    knows_pnc: bool
    weight_bytes: int


def read_model(path: str, quantization: str | None) -> ModelFiles:
    """Find and read the model in the folder `path`; `quantization` is the word in its graphs' names.

    Raises ConfigError, naming the file, for anything that is no such model.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ConfigError("a Canary model is a folder")
    suffix = f".{quantization}" if quantization else ""
    graphs = [f"{part}-model{suffix}.onnx" for part in ("encoder", "decoder")]
    for name in (*graphs, "vocab.txt"):
        if not (folder / name).is_file():
            raise ConfigError(f"the Canary model has no {name}")
    _check_config(folder / "config.json")
    tokens = _tokens(folder / "vocab.txt")
    if missing := [token for token in PROMPT_TOKENS if token not in tokens]:
        raise ConfigError(f"vocab.txt is not that of a Canary model: it has no {missing[0]}")
    known = FLASH_LANGUAGES if len(tokens) < FLASH_TOKENS else MANY_LANGUAGES
    return ModelFiles(
        folder,
        quantization,
        languages=tuple(language for language in known if f"<|{language}|>" in tokens),
        knows_pnc="<|nopnc|>" in tokens,
        weight_bytes=sum(_graph_bytes(folder / name) for name in graphs),
    )


def _graph_bytes(graph: Path) -> int:
    """The size of a graph with the weights beside it, in bytes."""
    beside = graph.with_name(f"{graph.name}.data")
    return graph.stat().st_size + (beside.stat().st_size if beside.is_file() else 0)


def _tokens(file: Path) -> frozenset[str]:
    """The tokens, read as onnx-asr reads them."""
    tokens: dict[str, int] = {}
    try:
        for line in read_text(file).removesuffix("\n").split("\n"):
            token, number = line.split(" ")
            tokens[token] = int(number)
    except ValueError as exc:
        raise ConfigError(
            f"{file.name} must hold a token and its number a line; line {len(tokens) + 1} does not"
        ) from exc
    return frozenset(tokens)


def _check_config(file: Path) -> None:
    """Refuse settings with which onnx-asr would take the model for another, or could not run it."""
    if not file.exists():
        return
    fields = read_json(file, dict)
    if fields.get("model_type", MODEL_TYPE) != MODEL_TYPE:
        raise ConfigError(f"{file.name}: model_type must be {MODEL_TYPE}")
    # onnx-asr takes 80 where it is not said.
    if fields.get("features_size", FEATURE_SIZES[0]) not in FEATURE_SIZES:
        raise ConfigError(f"{file.name}: features_size must be one of {', '.join(map(str, FEATURE_SIZES))}")
    longest = fields.get("max_sequence_length", 1024)
    if isinstance(longest, bool) or not isinstance(longest, int) or longest <= len(PROMPT_TOKENS):
        raise ConfigError(f"{file.name}: max_sequence_length must be an integer above {len(PROMPT_TOKENS)}")
