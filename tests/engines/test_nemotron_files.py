"""A diarizer's header is read without an engine: which generation it is, its schedule, and what is wrong with it."""

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import OptionValue, Task
from antiphon_adapters.nemotron_diar import NemotronDiarAdapter
from antiphon_adapters.nemotron_diar.adapter import LIBRARY_BYTES
from antiphon_adapters.nemotron_diar.model_files import read_model
from antiphon_adapters.nemotron_diar.onnx_header import read_header
from antiphon_adapters.nemotron_diar.profile import NEMOTRON_3, SORTFORMER, Schedule
from tiny_diarizer import SIZE, SPEAKERS, Kind

Build = Callable[..., Path]


def spec_of(path: Path, **session_options: OptionValue) -> ModelSpec:
    return ModelSpec("tiny", "nemotron_diar", str(path), Task.DIAR, session_options=session_options)


@pytest.mark.parametrize("kind", SPEAKERS)
def test_the_outputs_tell_the_generation(tiny_diarizer: Build, kind: Kind) -> None:
    files = read_model(str(tiny_diarizer(kind)), {})
    assert files.generation is (SORTFORMER if kind == "sortformer" else NEMOTRON_3)
    assert (files.speakers, files.embedding_size) == (SPEAKERS[kind], SIZE)
    assert files.outputs.told_frames == (1 if kind == "sortformer" else 8)


def test_the_metadata_holds_the_schedule(tiny_diarizer: Build) -> None:
    assert read_model(str(tiny_diarizer("nemotron_hr")), {}).schedule == Schedule(5, 1, 4, 40, 6, sil_frames=1)


def test_what_the_metadata_leaves_out_is_the_generations(tiny_diarizer: Build) -> None:
    partly = tiny_diarizer("nemotron_hr", {"chunk_len": 20, "fifo_len": 40, "spkcache_len": 264})
    assert read_model(str(partly), {}).schedule == Schedule(20, 40, 40, 264, 300, sil_frames=1)
    bare = tiny_diarizer("sortformer", {})
    assert read_model(str(bare), {}).schedule == Schedule(124, 1, 124, 188, 124, sil_frames=3)


def test_metadata_with_a_prefix_is_read(tiny_diarizer: Build) -> None:
    silence = np.arange(SIZE, dtype="<f4")
    values = {
        "chunk_len": 9,
        "chunk_right_context": 2,
        "spkcache_sil_frames_per_spk": 2,
        "learnable_sil_emb_f32le_b64": base64.b64encode(silence.tobytes()).decode(),
    }
    model = tiny_diarizer("nemotron_hr", {f"vernacula.diar.{name}": value for name, value in values.items()})
    files = read_model(str(model), {})
    assert files.schedule == Schedule(9, 2, 40, 264, 300, sil_frames=2)
    assert files.silence == tuple(range(SIZE))


def test_session_options_change_the_schedule(tiny_diarizer: Build) -> None:
    model = str(tiny_diarizer("sortformer"))
    assert read_model(model, {"chunk_len": 3, "right_context": 4}).schedule == Schedule(3, 4, 8, 28, 5, sil_frames=3)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"chunk": 3}, "chunk_len, right_context"),
        ({"chunk_len": 0}, "chunk_len must be from 1"),
        ({"chunk_len": True}, "chunk_len must be an integer"),
        ({"fifo_len": 10_001}, "fifo_len must be from 0 to 10000"),
        ({"spkcache_len": 15}, "spkcache_len must be from 16"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(
    tiny_diarizer: Build, options: dict[str, OptionValue], named: str
) -> None:
    with pytest.raises(ConfigError, match=f"model 'tiny': .*{named}"):
        NemotronDiarAdapter().inspect(spec_of(tiny_diarizer("sortformer"), **options))


@pytest.mark.parametrize(
    ("key", "value"),
    [("chunk_len", "many"), ("learnable_sil_emb", "1,2"), ("learnable_sil_emb", "a"), ("fifo_len", -1)],
)
def test_metadata_that_cannot_be_is_refused(tiny_diarizer: Build, key: str, value: object) -> None:
    with pytest.raises(ConfigError, match="fifo_len" if key == "fifo_len" else "metadata"):
        read_model(str(tiny_diarizer("nemotron_hr", {key: value})), {})


def test_a_folder_with_one_graph_is_as_good_as_the_graph(tiny_diarizer: Build, tmp_path: Path) -> None:
    model = tiny_diarizer("sortformer")
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(ConfigError, match="found none"):
        read_model(str(folder), {})
    model.rename(folder / "model.onnx")
    (folder / "model.onnx.data").write_bytes(bytes(7))
    capability = NemotronDiarAdapter().inspect(spec_of(folder))
    assert capability == NemotronDiarAdapter().inspect(spec_of(folder / "model.onnx"))
    assert capability.weight_bytes == (folder / "model.onnx").stat().st_size + 7 + LIBRARY_BYTES
    (folder / "another.onnx").touch()
    with pytest.raises(ConfigError, match="found 2"):
        read_model(str(folder), {})


def test_a_graph_of_a_fixed_size_is_refused(tiny_diarizer: Build) -> None:
    with pytest.raises(ConfigError, match="fixed size of chunk"):
        read_model(str(tiny_diarizer("sortformer", fixed=True)), {})


def test_another_graph_is_refused(tiny_canary: Build) -> None:
    with pytest.raises(ConfigError, match="no streaming diarizer"):
        read_model(str(tiny_canary() / "encoder-model.onnx"), {})


def test_the_header_is_what_the_onnx_library_reads(tiny_canary: Build) -> None:
    import onnx

    file = tiny_canary() / "decoder-model.onnx"
    header, graph = read_header(file), onnx.load(file).graph
    for tensors, values in ((header.inputs, graph.input), (header.outputs, graph.output)):
        assert tensors == {
            value.name: tuple(
                size.dim_value if size.HasField("dim_value") else None for size in value.type.tensor_type.shape.dim
            )
            for value in values
        }


@pytest.mark.parametrize("content", [b"\x0f", b"not an ONNX file at all", b"\xff" * 20, b"\x3a\xff\xff\x03"])
def test_another_file_is_no_onnx(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"model\.onnx is not an ONNX file"):
        read_model(str(file), {})


def test_a_cut_file_is_refused(tiny_diarizer: Build) -> None:
    model = tiny_diarizer("sortformer")
    whole = model.read_bytes()
    for size in range(0, len(whole), 997):
        model.write_bytes(whole[:size])
        with pytest.raises(ConfigError):
            read_model(str(model), {})


def test_a_wish_that_the_model_cannot_meet_is_refused(tiny_diarizer: Build) -> None:
    spec = spec_of(tiny_diarizer("sortformer"))
    for wish in (
        replace(spec, task=Task.ASR),
        replace(spec, device="cuda"),
        replace(spec, load_options={"threads": 2}),
        replace(spec, session_options={"onset": 1}),
        replace(spec, path="missing"),
    ):
        with pytest.raises(ConfigError, match="model 'tiny'"):
            NemotronDiarAdapter().inspect(wish)


def test_a_cache_that_is_too_wide_is_refused(tiny_diarizer: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon_adapters.nemotron_diar.model_files.MAX_EMBEDDING_SIZE", SIZE - 1)
    with pytest.raises(ConfigError, match=f"the size of spkcache must be at most {SIZE - 1}"):
        read_model(str(tiny_diarizer("nemotron_hr")), {})
