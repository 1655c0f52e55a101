"""Builds a Canary model of a few kilobytes with random weights, which onnx-asr loads as it does a real one.

Like a real encoder, this one has positions for 40 s and fails on longer audio. `tiny_canary_reference.py` computes the
same in plain loops.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper, save

TOKENS = (
    *("<unk>", "<|nospeech|>", "<pad>", "<|endoftext|>", "<|startoftranscript|>", "<|pnc|>", "<|nopnc|>"),
    *("<|startofcontext|>", "<|itn|>", "<|noitn|>", "<|timestamp|>", "<|notimestamp|>", "<|diarize|>"),
    *("<|nodiarize|>", "<|emo:undefined|>", "<|en|>", "<|de|>", "<|fr|>", "<|es|>", "<|ja|>"),
    *("\u2581", "\u2581the", "\u2581cat", "s", "\u2581sat", "."),
)
CONFIG = {"model_type": "nemo-conformer-aed", "features_size": 128, "subsampling_factor": 8, "max_sequence_length": 32}

WIDTH = 16
LAYERS = 2
LONGEST_FRAMES = 500
"""How many positions the encoder has, each of 80 ms."""


def weights(seed: int = 4) -> Mapping[str, NDArray[np.float32]]:
    """What both graphs multiply with."""
    random = np.random.Generator(np.random.PCG64(seed))

    def matrix(rows: int, columns: int, scale: float) -> NDArray[np.float32]:
        return (random.standard_normal((rows, columns)) * scale).astype(np.float32)

    return {
        "W": matrix(128, WIDTH, 0.3),
        "positions": matrix(LONGEST_FRAMES, WIDTH, 0.1),
        "embeddings": matrix(len(TOKENS), WIDTH, 0.3),
        "Wo": matrix(WIDTH, len(TOKENS), 2.0),
    }


def build_canary(
    folder: Path, *, tokens: Sequence[str] = TOKENS, config: Mapping[str, object] | None = CONFIG, seed: int = 4
) -> Path:
    """Write the model into `folder` and return it."""
    folder.mkdir()
    numbers = weights(seed)
    save(_encoder(numbers), folder / "encoder-model.onnx")
    save(_decoder(numbers), folder / "decoder-model.onnx")
    lines = "".join(f"{token} {number}\n" for number, token in enumerate(tokens))
    (folder / "vocab.txt").write_text(lines, encoding="utf-8")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def _encoder(numbers: Mapping[str, NDArray[np.float32]]) -> ModelProto:
    """The mean of every 8 feature frames, made `WIDTH` wide, with its position added."""
    nodes = [
        helper.make_node("AveragePool", ["audio_signal"], ["pooled"], kernel_shape=[8], strides=[8], ceil_mode=1),
        helper.make_node("Transpose", ["pooled"], ["frames"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["frames", "W"], ["projected"]),
        helper.make_node("Shape", ["frames"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["count"]),
        helper.make_node("Unsqueeze", ["count", "axis_0"], ["counts"]),
        helper.make_node("Slice", ["positions", "axis_0", "counts", "axis_0"], ["some_positions"]),
        helper.make_node("Add", ["projected", "some_positions"], ["placed"]),
        helper.make_node("Tanh", ["placed"], ["encoder_embeddings"]),
        helper.make_node("Range", ["zero", "count", "one"], ["order"]),
        helper.make_node("Add", ["length", "seven"], ["length_7"]),
        helper.make_node("Div", ["length_7", "eight"], ["heard"]),
        helper.make_node("Unsqueeze", ["heard", "axis_1"], ["heard_column"]),
        helper.make_node("Less", ["order", "heard_column"], ["is_heard"]),
        helper.make_node("Cast", ["is_heard"], ["encoder_mask"], to=TensorProto.INT64),
    ]
    graph = helper.make_graph(
        nodes,
        "encoder",
        [_value("audio_signal", "batch", 128, "time"), _whole("length", "batch")],
        [_value("encoder_embeddings", "batch", "frames", WIDTH), _whole("encoder_mask", "batch", "frames")],
        [
            _array("W", numbers["W"]),
            _array("positions", numbers["positions"]),
            *_constants("one", "zero", "seven", "eight", "axis_0", "axis_1"),
        ],
    )
    return _model(graph)


def _decoder(numbers: Mapping[str, NDArray[np.float32]]) -> ModelProto:
    """A token's embedding, the mean of the encoder's, and the mean of all hidden states so far."""
    nodes = [
        helper.make_node("Gather", ["embeddings", "input_ids"], ["asked"]),
        helper.make_node("Cast", ["encoder_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "axis_2"], ["mask_column"]),
        helper.make_node("Mul", ["encoder_embeddings", "mask_column"], ["masked"]),
        helper.make_node("ReduceMean", ["masked"], ["context"], axes=[1], keepdims=1),
        helper.make_node("Add", ["asked", "context"], ["state"]),
        helper.make_node("Unsqueeze", ["state", "axis_0"], ["layer"]),
        helper.make_node("Concat", ["layer"] * LAYERS, ["layers"], axis=0),
        helper.make_node("Concat", ["decoder_mems", "layers"], ["decoder_hidden_states"], axis=2),
        helper.make_node("ReduceMean", ["decoder_hidden_states"], ["past"], axes=[0, 2], keepdims=0),
        helper.make_node("Unsqueeze", ["past", "axis_1"], ["past_row"]),
        helper.make_node("Add", ["state", "past_row"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["bounded"]),
        helper.make_node("MatMul", ["bounded", "Wo"], ["scores"]),
        helper.make_node("LogSoftmax", ["scores"], ["logits"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "decoder",
        [
            _whole("input_ids", "batch", "L"),
            _value("encoder_embeddings", "batch", "frames", WIDTH),
            _whole("encoder_mask", "batch", "frames"),
            _value("decoder_mems", LAYERS, "batch", "M", WIDTH),
        ],
        [
            _value("logits", "batch", "L", len(TOKENS)),
            _value("decoder_hidden_states", LAYERS, "batch", "ML", WIDTH),
        ],
        [
            _array("embeddings", numbers["embeddings"]),
            _array("Wo", numbers["Wo"]),
            *_constants("axis_0", "axis_1", "axis_2"),
        ],
    )
    return _model(graph)


def _constants(*names: str) -> list[TensorProto]:
    values = {"zero": 0, "one": 1, "seven": 7, "eight": 8, "axis_0": [0], "axis_1": [1], "axis_2": [2]}
    return [_array(name, np.array(values[name], np.int64)) for name in names]


def _array(name: str, numbers: NDArray[np.generic]) -> TensorProto:
    return numpy_helper.from_array(numbers, name)


def _value(name: str, *shape: str | int):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _whole(name: str, *shape: str | int):
    return helper.make_tensor_value_info(name, TensorProto.INT64, shape)


def _model(graph: object) -> ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
