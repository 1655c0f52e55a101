"""A Whisper model's files are read without an engine, and a missing one is named."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task
from antiphon_adapters.whisper import WhisperAdapter
from antiphon_adapters.whisper.adapter import LIBRARY_BYTES

LANGUAGES = ["<|en|>", "<|zh|>", "<|yue|>"]


def tokens(size: int) -> list[str]:
    """A vocabulary of `size` tokens, three of them languages."""
    named = ["<|startoftranscript|>", *LANGUAGES, "<|translate|>", "<|transcribe|>"]
    return [f"word{number}" for number in range(size - len(named))] + named


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of a multilingual model, without weights."""
    (tmp_path / "model.bin").write_bytes(b"12345")
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    (tmp_path / "vocabulary.json").write_text(json.dumps(tokens(51865)), encoding="utf-8")
    return tmp_path


def spec_of(path: Path) -> ModelSpec:
    return ModelSpec("tiny", "whisper", str(path), Task.ASR)


def test_a_model_tells_its_languages_and_its_size(folder: Path) -> None:
    capability = WhisperAdapter().inspect(spec_of(folder))
    assert capability.tasks == {Task.ASR}
    assert capability.languages == ("en", "zh", "yue")
    assert (capability.sample_rate, capability.channels, capability.weight_bytes) == (16000, 1, 5 + LIBRARY_BYTES)
    assert {option.name for option in capability.options} == {
        "temperature",
        "beam_size",
        "word_timestamps",
        "vad_filter",
        "silence_ms",
        "step_ms",
        "target_language",
    }


def test_a_model_of_many_languages_translates_into_english_alone(folder: Path) -> None:
    options = {option.name: option.choices for option in WhisperAdapter().inspect(spec_of(folder)).options}
    assert options["target_language"] == ("en",)


def test_a_smaller_vocabulary_is_english_alone(folder: Path) -> None:
    (folder / "vocabulary.json").unlink()
    (folder / "vocabulary.txt").write_text("\n".join(tokens(51864)) + "\n", encoding="utf-8")
    capability = WhisperAdapter().inspect(spec_of(folder))
    assert capability.languages == ("en",)
    assert "target_language" not in {option.name for option in capability.options}


@pytest.mark.parametrize("name", ["model.bin", "config.json", "tokenizer.json", "vocabulary.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")) as refusal:
        WhisperAdapter().inspect(spec_of(folder))
    assert str(folder) not in refusal.value.message


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "vocabulary.json"])
def test_a_file_that_is_no_json_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text("[", encoding="utf-8")
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        WhisperAdapter().inspect(spec_of(folder))


def test_another_vocabulary_is_refused(folder: Path) -> None:
    (folder / "vocabulary.json").write_text('["a", "b"]', encoding="utf-8")
    with pytest.raises(ConfigError, match="not that of a Whisper model"):
        WhisperAdapter().inspect(spec_of(folder))


def test_a_vocabulary_whose_languages_have_no_end_is_refused(folder: Path) -> None:
    for named in (["<|xx|>"] * 501, ["x" * 21]):
        listed = ["<|startoftranscript|>", *named, "<|translate|>", *["a"] * 51865]
        (folder / "vocabulary.json").write_text(json.dumps(listed), encoding="utf-8")
        with pytest.raises(ConfigError, match="no sensible languages"):
            WhisperAdapter().inspect(spec_of(folder))


def test_a_file_is_no_model(folder: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        WhisperAdapter().inspect(spec_of(folder / "model.bin"))


def test_a_wish_that_the_model_cannot_meet_is_refused(folder: Path) -> None:
    spec = spec_of(folder)
    for wish in (
        replace(spec, task=Task.TTS),
        replace(spec, device="cuda"),
        replace(spec, load_options={"compute_type": "int4"}),
        replace(spec, load_options={"compute": "int8"}),
        replace(spec, session_options={"beam_size": 5}),
    ):
        with pytest.raises(ConfigError, match="model 'tiny'"):
            WhisperAdapter().inspect(wish)
