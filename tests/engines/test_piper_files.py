"""A voice's files are read without an engine, and a fault in them is named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Mode, Task
from antiphon_adapters.piper import PiperAdapter
from antiphon_adapters.piper.adapter import LIBRARY_BYTES

BuildVoice = Callable[..., Path]


def spec_of(path: Path) -> ModelSpec:
    return ModelSpec("tiny", "piper", str(path), Task.TTS)


def test_a_voice_tells_its_rate_its_size_and_its_names(tiny_voice: BuildVoice) -> None:
    folder = tiny_voice(language={"family": "en"})
    capability = PiperAdapter().inspect(spec_of(folder))
    assert capability.tasks == {Task.TTS}
    assert capability.modes == set(Mode)
    assert capability.sample_rate == 16000
    assert capability.weight_bytes == LIBRARY_BYTES + (folder / "tiny.onnx").stat().st_size
    assert capability.voices == ("default", "tiny")
    assert capability.languages == ("en",)
    assert {option.name for option in capability.options} == {"speed", "noise_scale", "noise_w", "sentence_silence"}


def test_a_voice_may_be_given_by_its_graph(tiny_voice: BuildVoice) -> None:
    folder = tiny_voice()
    adapter = PiperAdapter()
    assert adapter.inspect(spec_of(folder / "tiny.onnx")) == adapter.inspect(spec_of(folder))


def test_the_speakers_of_a_voice_are_voices(tiny_voice: BuildVoice) -> None:
    folder = tiny_voice(speakers=2)
    assert PiperAdapter().inspect(spec_of(folder)).voices == ("default", "tiny", "speaker0", "speaker1")


def test_speakers_without_names_are_called_by_their_numbers(tiny_voice: BuildVoice) -> None:
    folder = tiny_voice(speakers=2, speaker_id_map={})
    assert PiperAdapter().inspect(spec_of(folder)).voices == ("default", "tiny", "0", "1")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"audio": {}}, "audio: sample_rate"),
        ({"audio": {"sample_rate": "16000"}}, "audio: sample_rate"),
        ({"audio": None}, "audio must be an object"),
        ({"phoneme_id_map": None}, "phoneme_id_map must be an object"),
        ({"espeak": None}, "espeak must be an object"),
        ({"num_symbols": True}, "num_symbols must be an integer"),
        ({"inference": {"length_scale": -1}}, "length_scale must be a number"),
        ({"phoneme_type": "pinyin"}, "phoneme_type must be one of espeak, text"),
        ({"language": {"family": 3}}, "family must be a string"),
        ({"num_speakers": 10_001}, "num_speakers must be an integer from 0 to 10000"),
        ({"num_speakers": 2, "speaker_id_map": {"a": 10**30}}, "speaker_id_map: a must be an integer from 0 to 9999"),
        ({"num_speakers": 2, "speaker_id_map": {"a" * 201: 0}}, "names of at most 200 characters"),
        ({"num_speakers": 2, "speaker_id_map": dict.fromkeys(map(str, range(10_001)), 0)}, "at most 10000 names"),
        ({"num_symbols": 10**9}, "num_symbols must be an integer from 1 to 100000"),
        ({"audio": {"sample_rate": 10**9}}, "audio: sample_rate must be an integer from 1 to 192000"),
    ],
)
def test_a_faulty_field_is_named(tiny_voice: BuildVoice, changes: dict[str, object], complaint: str) -> None:
    folder = tiny_voice(**changes)
    with pytest.raises(ConfigError, match=complaint) as refusal:
        PiperAdapter().inspect(spec_of(folder))
    assert "tiny.onnx.json" in refusal.value.message
    assert str(folder) not in refusal.value.message


def test_a_missing_configuration_is_named(tiny_voice: BuildVoice) -> None:
    folder = tiny_voice()
    (folder / "tiny.onnx.json").unlink()
    with pytest.raises(ConfigError, match=r"tiny\.onnx\.json is missing"):
        PiperAdapter().inspect(spec_of(folder))


def test_a_configuration_that_is_no_json_is_named(tiny_voice: BuildVoice) -> None:
    folder = tiny_voice()
    (folder / "tiny.onnx.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tiny\.onnx\.json is not JSON"):
        PiperAdapter().inspect(spec_of(folder))


@pytest.mark.parametrize("graphs", [0, 2])
def test_a_folder_must_hold_one_graph(tmp_path: Path, graphs: int) -> None:
    for number in range(graphs):
        (tmp_path / f"{number}.onnx").touch()
    with pytest.raises(ConfigError, match=f"holds {graphs}"):
        PiperAdapter().inspect(spec_of(tmp_path))


def test_a_wish_that_a_voice_cannot_meet_is_refused(tiny_voice: BuildVoice) -> None:
    spec = spec_of(tiny_voice())
    for wish in (
        replace(spec, task=Task.ASR),
        replace(spec, device="cuda"),
        replace(spec, load_options={"fast": True}),
        replace(spec, session_options={"fast": True}),
    ):
        with pytest.raises(ConfigError, match="model 'tiny'"):
            PiperAdapter().inspect(wish)
