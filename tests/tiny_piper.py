"""Builds a voice of a few kilobytes with Piper's inputs and output, for tests of what real voices rarely have.

Its sound is the id sequence plus the speaker's number, and both noises at their scales.
"""

import json
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper, save

LETTERS = "abcdefghijklmnopqrstuvwxyz .,"


def build_graph(*, speakers: int = 1, random_operator: str = "RandomNormalLike") -> ModelProto:
    """A graph with two random nodes, one of them of 192 channels, as in VITS."""
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.INT64, ["batch", "phonemes"]),
        helper.make_tensor_value_info("input_lengths", TensorProto.INT64, ["batch"]),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
    ]
    nodes = [
        helper.make_node("Cast", ["input"], ["ids"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["ids", "axis_one"], ["row"]),
        helper.make_node("Tile", ["row", "many"], ["rows"]),
        helper.make_node(random_operator, ["row"], ["rhythm"], name="/dp/RandomNormalLike"),
        helper.make_node(random_operator, ["rows"], ["colours"], name="/RandomNormalLike"),
        helper.make_node("ReduceMean", ["colours"], ["colour"], axes=[1]),
        helper.make_node("Split", ["scales"], ["noise_scale", "length_scale", "noise_w"], axis=0),
        helper.make_node("Mul", ["rhythm", "noise_w"], ["scaled_rhythm"]),
        helper.make_node("Mul", ["colour", "noise_scale"], ["scaled_colour"]),
        helper.make_node("Mul", ["row", "length_scale"], ["stretched"]),
        helper.make_node("Sum", ["stretched", "scaled_rhythm", "scaled_colour"], ["voice"]),
    ]
    if speakers > 1:
        inputs.append(helper.make_tensor_value_info("sid", TensorProto.INT64, ["batch"]))
        nodes.append(helper.make_node("Cast", ["sid"], ["speaker"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Add", ["voice", "speaker"], ["output"]))
    else:
        nodes.append(helper.make_node("Identity", ["voice"], ["output"]))
    graph = helper.make_graph(
        nodes,
        "tiny",
        inputs,
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", 1, "time"])],
        [
            numpy_helper.from_array(np.array([1], np.int64), "axis_one"),
            numpy_helper.from_array(np.array([1, 192, 1], np.int64), "many"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def build_config(*, speakers: int = 1, **changes: object) -> dict[str, object]:
    """The voice's JSON file; `changes` replace whole fields, None removes one."""
    names = {f"speaker{number}": number for number in range(speakers)} if speakers > 1 else {}
    config: dict[str, object] = {
        "audio": {"sample_rate": 16000},
        "espeak": {"voice": "en-us"},
        "inference": {"noise_scale": 0.5, "length_scale": 1.0, "noise_w": 0.5},
        "phoneme_type": "text",
        "phoneme_id_map": {sign: [number] for number, sign in enumerate("_^$" + LETTERS)},
        "num_symbols": 64,
        "num_speakers": speakers,
        "speaker_id_map": names,
        **changes,
    }
    return {name: value for name, value in config.items() if value is not None}


def build_voice(
    folder: Path, *, speakers: int = 1, random_operator: str = "RandomNormalLike", **changes: object
) -> Path:
    """Write the voice into `folder` and return it."""
    folder.mkdir()
    save(build_graph(speakers=speakers, random_operator=random_operator), folder / "tiny.onnx")
    config = build_config(speakers=speakers, **changes)
    (folder / "tiny.onnx.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
