"""Builds graphs that end as a Piper voice does, in convolutions over frames, with few channels and random weights."""

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

CHANNELS = 4
HOP = 4


def build_ending_graph(*, stride: int = 1, same: bool = True, speaker: bool = False, peeks: bool = False) -> ModelProto:
    """From `frames` [1, 4, n], whose order is turned twice, to `output` [1, 1, 1, 4 n].

    `stride` and `same` are of the first convolution, `speaker` adds an input [1, 4, 1] to what it gives, and with
    `peeks` a second output is made of the insides.
    """
    random = np.random.default_rng(0)
    weights = {"two": np.array([2], np.float32), "three": np.array([3], np.float32)}
    weights |= {name: np.array([at], np.int64) for name, at in (("first", 0), ("axis", 1), ("third", 2), ("fifth", 4))}
    nodes = [
        helper.make_node("Transpose", ["frames"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("Transpose", ["turned"], ["given"], perm=[0, 2, 1]),
        helper.make_node("Slice", ["given", "first", "third", "axis", "axis"], ["low"]),
        helper.make_node("Slice", ["given", "third", "fifth", "axis", "axis"], ["high"]),
        helper.make_node("Concat", ["high", "low"], ["scaled"], axis=1),
    ]

    def step(operator: str, inputs: list[str], output: str, **attributes: object) -> NodeProto:
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return nodes[-1]

    def convolve(given: str, output: str, shape: tuple[int, int, int], operator: str = "Conv", **how: object) -> None:
        weights[f"{output}.weight"] = random.standard_normal(shape, np.float32) / 4
        step(operator, [given, f"{output}.weight"], output, **how)

    pads = [3, 3] if same else [0, 0]
    convolve("scaled", "opened", (CHANNELS, CHANNELS, 7), pads=pads, strides=[stride])
    inputs, before = [("frames", ["batch", CHANNELS, "time"])], "opened"
    if speaker:
        inputs.append(("speaker", ["batch", CHANNELS, 1]))
        step("Mul", ["speaker", "two"], "voiced")
        convolve("voiced", "coloured", (CHANNELS, CHANNELS, 1))
        step("Add", ["opened", "coloured"], "told")
        before = "told"
    step("LeakyRelu", [before], "bent", alpha=0.1)
    convolve("bent", "raised", (CHANNELS, CHANNELS, 8), "ConvTranspose", strides=[HOP], pads=[2, 2])
    convolve("raised", "blurred", (CHANNELS, CHANNELS, 5), pads=[6, 6], dilations=[3])
    step("Add", ["raised", "blurred"], "summed")
    step("Div", ["summed", "three"], "levelled")
    convolve("levelled", "closed", (1, CHANNELS, 3), pads=[1, 1])
    step("Tanh", ["closed"], "sound")
    step("Unsqueeze", ["sound", "axis"], "output")
    outputs = ["output"]
    if peeks:
        step("Neg", ["summed"], "insides")
        outputs.append("insides")
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
