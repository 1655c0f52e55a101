"""A checkpoint is read without running anything of it, and becomes a graph that says what its weights say."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from faster_whisper.feature_extractor import FeatureExtractor
from numpy.typing import NDArray

from antiphon.ports.adapter import ConvertingAdapter
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task
from antiphon_adapters.mel import mel_filters
from antiphon_adapters.speaker_clustering import SpeakerClusteringAdapter
from antiphon_adapters.speaker_clustering.checkpoint import read_tensors
from tiny_checkpoint import checkpoint

Tensors = dict[str, NDArray[np.float32]]


def weights() -> Tensors:
    """Random weights of the encoder's shapes."""
    draw = np.random.default_rng(5)
    shapes = {"linear.weight": (256, 256), "linear.bias": (256,)}
    for layer, width in enumerate((40, 256, 256)):
        shapes |= {f"lstm.weight_ih_l{layer}": (1024, width), f"lstm.weight_hh_l{layer}": (1024, 256)}
        shapes |= {f"lstm.bias_ih_l{layer}": (1024,), f"lstm.bias_hh_l{layer}": (1024,)}
    return {name: draw.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}


def slow_print(tensors: Tensors, mel: NDArray[np.float32]) -> NDArray[np.float64]:
    """The voice print of features [t, 40], step by step, in PyTorch's order of gates."""

    def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1 / (1 + np.exp(-x))

    steps: list[NDArray[np.float64]] = list(mel.astype(np.float64))
    for layer in range(3):
        w_in, w_rec, b_in, b_rec = (
            tensors[f"lstm.{name}_l{layer}"].astype(np.float64)
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        hidden = cell = np.zeros(256)
        for place, step in enumerate(steps):
            entry, forget, fresh, output = np.split(w_in @ step + b_in + w_rec @ hidden + b_rec, 4)
            cell = sigmoid(forget) * cell + sigmoid(entry) * np.tanh(fresh)
            steps[place] = hidden = sigmoid(output) * np.tanh(cell)
    found = np.maximum(tensors["linear.weight"].astype(np.float64) @ steps[-1] + tensors["linear.bias"], 0)
    return found / np.linalg.norm(found)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[bytes], Path]:
    """A package's folder with this checkpoint."""

    def build(content: bytes) -> Path:
        (tmp_path / "pretrained.pt").write_bytes(content)
        return tmp_path

    return build


def test_tensors_are_read_as_they_were_written(folder: Callable[[bytes], Path]) -> None:
    given = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1.5], np.float32)}
    read = read_tensors(folder(checkpoint(given)) / "pretrained.pt", "model_state")
    assert sorted(read) == ["a", "b"]
    assert all(np.array_equal(read[name], given[name]) for name in given)


class _Harmful:
    def __init__(self, trace: Path) -> None:
        self.trace = str(trace)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.trace,)


def test_a_checkpoint_that_asks_for_a_function_is_refused_and_not_obeyed(
    folder: Callable[[bytes], Path], tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    content = checkpoint({"a": np.zeros(1, np.float32)}, extra=_Harmful(trace))
    with pytest.raises(ConfigError, match=r"it asks for posix\.mkdir"):
        read_tensors(folder(content) / "pretrained.pt", "model_state")
    assert not trace.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 a zip",
        b"\x80\x02.",
        checkpoint({"a": np.zeros(4, np.float32)}, magic=7),
        checkpoint({"a": np.zeros(4, np.float32)})[:-1],
        checkpoint({"a": np.zeros(4, np.float32)}, offset=1),
        checkpoint({"a": np.zeros(4, np.float32)}, offset=-1),
        checkpoint({"a": np.zeros(4, np.float32)}, stride=(2,)),
        checkpoint({"a": np.zeros(4, np.float32)}, shape=(-1,)),
        checkpoint({"a": np.zeros(4, np.float32)}, shape=(2**40,)),
    ],
)
def test_what_is_no_such_checkpoint_is_refused(folder: Callable[[bytes], Path], content: bytes) -> None:
    with pytest.raises(ConfigError, match=r"pretrained\.pt is no checkpoint"):
        read_tensors(folder(content) / "pretrained.pt", "model_state")


def test_the_converted_encoder_says_what_its_weights_say_step_by_step(folder: Callable[[bytes], Path]) -> None:
    tensors = weights()
    adapter = SpeakerClusteringAdapter()
    assert isinstance(adapter, ConvertingAdapter)
    made = folder(checkpoint(tensors))
    adapter.convert(made)
    graph = onnxruntime.InferenceSession(str(made / "speaker_encoder.onnx"), providers=["CPUExecutionProvider"])
    mel = np.random.default_rng(6).gamma(1.0, 2.0, (2, 30, 40)).astype(np.float32)
    (prints,) = graph.run(None, {"mel": mel})
    for found, features in zip(prints, mel, strict=True):
        assert np.allclose(found, slow_print(tensors, features), atol=1e-5)


def test_the_same_checkpoint_is_converted_to_the_same_bytes(folder: Callable[[bytes], Path]) -> None:
    made = folder(checkpoint(weights()))
    SpeakerClusteringAdapter().convert(made)
    first = (made / "speaker_encoder.onnx").read_bytes()
    SpeakerClusteringAdapter().convert(made)
    assert (made / "speaker_encoder.onnx").read_bytes() == first


@pytest.mark.parametrize("change", [{"linear.bias": np.zeros(3, np.float32)}, {"linear.bias": None}])
def test_weights_of_another_network_are_refused(folder: Callable[[bytes], Path], change: Tensors) -> None:
    tensors = {name: it for name, it in {**weights(), **change}.items() if it is not None}
    with pytest.raises(ConfigError, match=r"not Resemblyzer's encoder: linear\.bias"):
        SpeakerClusteringAdapter().convert(folder(checkpoint(tensors)))


@pytest.mark.parametrize(("n_fft", "bands"), [(400, 40), (512, 128)])
def test_the_mel_filters_are_those_of_another_implementation(n_fft: int, bands: int) -> None:
    other = FeatureExtractor.get_mel_filters(16_000, n_fft, bands)
    assert np.allclose(mel_filters(16_000, n_fft, bands), other, atol=1e-6)


@pytest.mark.parametrize("missing", ["speaker_encoder.onnx", "silero_vad_v6.onnx"])
def test_a_missing_network_is_named(tmp_path: Path, missing: str) -> None:
    for name in {"speaker_encoder.onnx", "silero_vad_v6.onnx"} - {missing}:
        (tmp_path / name).write_bytes(b"network")
    with pytest.raises(ConfigError, match=missing):
        SpeakerClusteringAdapter().inspect(ModelSpec("d", "speaker_clustering", str(tmp_path), Task.DIAR))
