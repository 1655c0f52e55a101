"""A Canary model's files are read without an engine, and what is wrong with them is named in one line."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task
from antiphon_adapters.canary import CanaryAdapter
from antiphon_adapters.canary.adapter import LIBRARY_BYTES
from tiny_canary import CONFIG, TOKENS


def spec_of(path: Path) -> ModelSpec:
    return ModelSpec("tiny", "canary", str(path), Task.ASR)


def write_vocabulary(folder: Path, tokens: list[str]) -> None:
    lines = "".join(f"{token} {number}\n" for number, token in enumerate(tokens))
    (folder / "vocab.txt").write_text(lines, encoding="utf-8")


@pytest.fixture
def folder(tiny_canary: Callable[..., Path]) -> Path:
    return tiny_canary()


def test_a_model_tells_its_languages_options_and_size(folder: Path) -> None:
    (folder / "encoder-model.onnx.data").write_bytes(bytes(5))
    size = sum((folder / f"{name}-model.onnx").stat().st_size for name in ("encoder", "decoder"))
    capability = CanaryAdapter().inspect(spec_of(folder))
    assert capability.languages == ("en", "de", "es", "fr")
    assert (capability.sample_rate, capability.channels) == (16000, 1)
    assert capability.weight_bytes == size + 5 + LIBRARY_BYTES
    assert [(option.name, option.type) for option in capability.options] == [
        ("target_language", "string"),
        ("pnc", "boolean"),
    ]
    assert capability.options[0].choices == capability.languages


def test_a_large_vocabulary_is_that_of_a_model_with_more_languages(folder: Path) -> None:
    words = [f"word{number}" for number in range(10_000)]
    write_vocabulary(folder, [*TOKENS, "<|it|>", "<|uk|>", *words])
    assert CanaryAdapter().inspect(spec_of(folder)).languages == ("en", "fr", "de", "it", "es", "uk")


def test_a_model_that_always_punctuates_has_no_such_option(folder: Path) -> None:
    write_vocabulary(folder, [token for token in TOKENS if token != "<|nopnc|>"])
    assert [option.name for option in CanaryAdapter().inspect(spec_of(folder)).options] == ["target_language"]


def test_a_model_needs_no_config(folder: Path) -> None:
    (folder / "config.json").unlink()
    assert CanaryAdapter().inspect(spec_of(folder)).tasks == {Task.ASR}


@pytest.mark.parametrize("name", ["encoder-model.onnx", "decoder-model.onnx", "vocab.txt"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ConfigError, match=f"model 'tiny': the Canary model has no {re.escape(name)}") as refusal:
        CanaryAdapter().inspect(spec_of(folder))
    assert str(folder) not in refusal.value.message


def test_quantised_graphs_are_others(folder: Path) -> None:
    quantised = replace(spec_of(folder), load_options={"quantization": "int8"})
    with pytest.raises(ConfigError, match=r"encoder-model\.int8\.onnx"):
        CanaryAdapter().inspect(quantised)
    for part in ("encoder", "decoder"):
        (folder / f"{part}-model.onnx").rename(folder / f"{part}-model.int8.onnx")
    assert CanaryAdapter().inspect(quantised).tasks == {Task.ASR}


@pytest.mark.parametrize("missing", ["<|endoftext|>", "<|en|>", "\u2581"])
def test_a_vocabulary_without_the_prompt_is_refused(folder: Path, missing: str) -> None:
    write_vocabulary(folder, [token for token in TOKENS if token != missing])
    with pytest.raises(ConfigError, match="not that of a Canary model"):
        CanaryAdapter().inspect(spec_of(folder))


@pytest.mark.parametrize("line", ["", "token", "token one", "a token 1"])
def test_a_line_that_is_no_token_is_named(folder: Path, line: str) -> None:
    (folder / "vocab.txt").write_text(f"<unk> 0\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 2 does not"):
        CanaryAdapter().inspect(spec_of(folder))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model_type": "nemo-conformer-tdt"}, "model_type"),
        ({"features_size": 64}, "features_size"),
        ({"max_sequence_length": 10}, "max_sequence_length"),
        ({"max_sequence_length": True}, "max_sequence_length"),
    ],
)
def test_a_wrong_setting_is_named(folder: Path, change: dict[str, object], named: str) -> None:
    (folder / "config.json").write_text(json.dumps({**CONFIG, **change}), encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"config\.json: {named}"):
        CanaryAdapter().inspect(spec_of(folder))


@pytest.mark.parametrize("text", ["[", "[]"])
def test_a_config_that_is_no_object_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"config\.json"):
        CanaryAdapter().inspect(spec_of(folder))


def test_a_file_is_no_model(folder: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        CanaryAdapter().inspect(spec_of(folder / "vocab.txt"))


def test_a_wish_that_the_model_cannot_meet_is_refused(folder: Path) -> None:
    spec = spec_of(folder)
    for wish in (
        replace(spec, task=Task.TTS),
        replace(spec, device="cuda"),
        replace(spec, load_options={"quantization": "int4"}),
        replace(spec, load_options={"precision": "int8"}),
        replace(spec, session_options={"pnc": False}),
    ):
        with pytest.raises(ConfigError, match="model 'tiny'"):
            CanaryAdapter().inspect(wish)
