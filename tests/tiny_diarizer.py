"""Builds streaming diarizers of a few kilobytes with random weights: Sortformer's outputs, or those of Nemotron-3.

What a frame is taken for depends on all frames that the graph is given, and on their places: a wrong memory shows.
`tiny_diarizer_reference.py` computes the same in plain loops.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper, save

Kind = Literal["sortformer", "nemotron_hr", "nemotron_hires"]

MELS = 128
SIZE = 12
"""The size of an embedding; real ones have 512."""

DOUBT = 3.0
"""How much less than at even odds a frame is taken for anybody, as a logarithm."""

SPEAKERS: Mapping[Kind, int] = {"sortformer": 4, "nemotron_hr": 8, "nemotron_hires": 8}
NAMES: Mapping[Kind, tuple[str, str | None]] = {
    "sortformer": ("spkcache_fifo_chunk_preds", None),
    "nemotron_hr": ("spkcache_fifo_chunk_preds", "spkcache_fifo_chunk_preds_hr"),
    "nemotron_hires": ("preds_diar", "preds_hires"),
}
"""What the outputs are called: the predictions of 80 ms, and those of 10 ms where there are such."""

SCHEDULES: Mapping[Kind, Mapping[str, int]] = {
    "sortformer": {"chunk_len": 6, "right_context": 2, "fifo_len": 8, "spkcache_len": 28, "spkcache_update_period": 5},
    "nemotron_hr": {"chunk_len": 5, "right_context": 1, "fifo_len": 4, "spkcache_len": 40, "spkcache_update_period": 6},
    "nemotron_hires": {
        "chunk_len": 7,
        "right_context": 0,
        "fifo_len": 0,
        "spkcache_len": 32,
        "spkcache_update_period": 3,
    },
}


def weights(kind: Kind, seed: int = 0) -> Mapping[str, NDArray[np.float32]]:
    """What the graph multiplies with and adds; `steps` are added to the eight parts of 80 ms."""
    random = np.random.Generator(np.random.PCG64(seed))

    def matrix(*shape: int, scale: float) -> NDArray[np.float32]:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    return {
        "Wp": matrix(8 * MELS, SIZE, scale=0.02),
        "Wh": matrix(SIZE, SPEAKERS[kind], scale=3.0),
        "steps": matrix(8, 1, scale=0.3),
        "silence": matrix(SIZE, scale=0.5),
    }


def build_diarizer(
    file: Path, kind: Kind, metadata: Mapping[str, object] | None = None, *, seed: int = 0, fixed: bool = False
) -> Path:
    """Write the model into `file` and return it; `metadata` None is the schedule above, with the learned silence."""
    numbers = weights(kind, seed)
    if metadata is None:
        learned = {"learnable_sil_emb": ",".join(map(repr, numbers["silence"].tolist()))}
        metadata = {**SCHEDULES[kind], **({} if kind == "sortformer" else learned)}
    model = _model(kind, numbers, time=64 if fixed else None)
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=str(value))
    save(model, file)
    return file


def _model(kind: Kind, numbers: Mapping[str, NDArray[np.float32]], time: int | None) -> ModelProto:
    preds, fine = NAMES[kind]
    nodes = [
        helper.make_node("Reshape", ["chunk", "frame_shape"], ["frames"]),
        helper.make_node("MatMul", ["frames", "Wp"], ["projected"]),
        helper.make_node("Tanh", ["projected"], ["chunk_pre_encode_embs"]),
        helper.make_node("Add", ["chunk_lengths", "seven"], ["lengths_7"]),
        helper.make_node("Div", ["lengths_7", "eight"], ["chunk_pre_encode_lengths"]),
        helper.make_node("Concat", ["spkcache", "fifo", "chunk_pre_encode_embs"], ["all"], axis=1),
        helper.make_node("Add", ["spkcache_lengths", "fifo_lengths"], ["before"]),
        helper.make_node("Add", ["before", "chunk_pre_encode_lengths"], ["count"]),
        helper.make_node("Shape", ["all"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["size"]),
        helper.make_node("Range", ["zero", "size", "one"], ["places"]),
        helper.make_node("Less", ["places", "count"], ["is_there"]),
        helper.make_node("Cast", ["is_there"], ["there"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["there", "outer_axes"], ["mask"]),
        helper.make_node("Cast", ["places"], ["places_float"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["places_float", "outer_axes"], ["places_column"]),
        helper.make_node("Mul", ["places_column", "hundredth"], ["rising"]),
        helper.make_node("Mul", ["all", "rising"], ["placed"]),
        helper.make_node("Mul", ["placed", "mask"], ["heard"]),
        helper.make_node("ReduceMean", ["heard"], ["around"], axes=[1], keepdims=1),
        helper.make_node("Add", ["all", "around"], ["seen"]),
        helper.make_node("MatMul", ["seen", "Wh"], ["unbiased"]),
        helper.make_node("Sub", ["unbiased", "doubt"], ["scores"]),
        helper.make_node("Sigmoid", ["scores"], ["unmasked"]),
        helper.make_node("Mul", ["unmasked", "mask"], [preds]),
    ]
    outputs = [
        _value(preds, 1, "frames_out", SPEAKERS[kind]),
        _value("chunk_pre_encode_embs", 1, "chunk_frames", SIZE),
        helper.make_tensor_value_info("chunk_pre_encode_lengths", TensorProto.INT64, [1]),
    ]
    arrays = {
        "Wp": numbers["Wp"],
        "Wh": numbers["Wh"],
        "frame_shape": np.array([1, -1, 8 * MELS], np.int64),
        "outer_axes": np.array([0, 2], np.int64),
        "doubt": np.array(DOUBT, np.float32),
        "hundredth": np.array(0.01, np.float32),
        **{name: np.array([number], np.int64) for name, number in (("seven", 7), ("eight", 8))},
        **{name: np.array(number, np.int64) for name, number in (("zero", 0), ("one", 1))},
    }
    if fine:
        nodes += [
            helper.make_node("Unsqueeze", ["scores", "axis_2"], ["scores_column"]),
            helper.make_node("Add", ["scores_column", "steps"], ["fine_scores"]),
            helper.make_node("Sigmoid", ["fine_scores"], ["fine"]),
            helper.make_node("Reshape", ["fine", "fine_shape"], [fine]),
        ]
        outputs.append(_value(fine, 1, "fine_frames_out", SPEAKERS[kind]))
        arrays["steps"] = numbers["steps"]
        arrays["axis_2"] = np.array([2], np.int64)
        arrays["fine_shape"] = np.array([1, -1, SPEAKERS[kind]], np.int64)
    inputs = [
        _value("chunk", 1, time or "time", MELS),
        *(_value(name, 1, f"{name}_frames", SIZE) for name in ("spkcache", "fifo")),
        *(
            helper.make_tensor_value_info(f"{name}_lengths", TensorProto.INT64, [1])
            for name in ("chunk", "spkcache", "fifo")
        ),
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "diarizer", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _value(name: str, *shape: str | int):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
