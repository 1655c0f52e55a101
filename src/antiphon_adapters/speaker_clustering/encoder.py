"""Resemblyzer's voice encoder as an ONNX graph, made of its published weights. Only a conversion needs this.

Source: resemblyzer/voice_encoder.py: three LSTM layers of 256, of whose last hidden state a linear layer, a ReLU and a
division by the length make the voice print. Graph: `mel` f32 [b, t, 40] to `print` f32 [b, 256].
"""

from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.vocabulary.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray
    from onnx import NodeProto, TensorProto

    Tensors = Mapping[str, NDArray[np.float32]]

BANDS = 40
HIDDEN = 256
LAYERS = 3
OPSET, IR_VERSION = 17, 8


def write_encoder(tensors: "Tensors", file: Path) -> None:
    """Write the graph; raises ConfigError for weights of other names or shapes."""
    import onnx
    from onnx import TensorProto, helper

    _require_shapes(tensors)
    nodes = [helper.make_node("Transpose", ["mel"], ["x0"], perm=[1, 0, 2])]  # an LSTM wants time first
    weights: list[TensorProto] = []
    for layer in range(LAYERS):
        nodes += _lstm_nodes(layer)
        weights += _lstm_weights(tensors, layer)
    nodes += _print_nodes()
    weights += _print_weights(tensors)
    graph = helper.make_graph(
        nodes,
        "resemblyzer",
        [helper.make_tensor_value_info("mel", TensorProto.FLOAT, ["b", "t", BANDS])],
        [helper.make_tensor_value_info("print", TensorProto.FLOAT, ["b", HIDDEN])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    onnx.save(model, str(file))


def _shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"linear.weight": (HIDDEN, HIDDEN), "linear.bias": (HIDDEN,)}
    for layer in range(LAYERS):
        shapes[f"lstm.weight_ih_l{layer}"] = (4 * HIDDEN, HIDDEN if layer else BANDS)
        shapes[f"lstm.weight_hh_l{layer}"] = (4 * HIDDEN, HIDDEN)
        shapes[f"lstm.bias_ih_l{layer}"] = shapes[f"lstm.bias_hh_l{layer}"] = (4 * HIDDEN,)
    return shapes


def _require_shapes(tensors: "Tensors") -> None:
    for name, shape in _shapes().items():
        if name not in tensors or tensors[name].shape != shape:
            raise ConfigError(f"this is not Resemblyzer's encoder: {name} is not of shape {list(shape)}")


def _lstm_nodes(layer: int) -> "list[NodeProto]":
    from onnx import helper

    fed = [f"x{layer}", f"W{layer}", f"R{layer}", f"B{layer}"]
    made = [f"y{layer}", f"h{layer}"]
    return [
        helper.make_node("LSTM", fed, made, hidden_size=HIDDEN),
        helper.make_node("Squeeze", [f"y{layer}", "directions"], [f"x{layer + 1}"]),
    ]


def _lstm_weights(tensors: "Tensors", layer: int) -> "list[TensorProto]":
    import numpy as np
    from onnx import numpy_helper

    def gates(name: str) -> "NDArray[np.float32]":
        """PyTorch's order of gates is input, forget, cell, output; that of ONNX is input, output, forget, cell."""
        entry, forget, cell, output = np.split(tensors[f"lstm.{name}_l{layer}"], 4)
        return np.concatenate([entry, output, forget, cell])

    shaped = {
        "W": gates("weight_ih")[None],
        "R": gates("weight_hh")[None],
        "B": np.concatenate([gates("bias_ih"), gates("bias_hh")])[None],
    }
    return [numpy_helper.from_array(np.ascontiguousarray(it), f"{name}{layer}") for name, it in shaped.items()]


def _print_nodes() -> "list[NodeProto]":
    from onnx import helper

    return [
        helper.make_node("Squeeze", [f"h{LAYERS - 1}", "directions_of_state"], ["last"]),
        helper.make_node("Gemm", ["last", "linear.weight", "linear.bias"], ["linear"], transB=1),
        helper.make_node("Relu", ["linear"], ["positive"]),
        helper.make_node("LpNormalization", ["positive"], ["print"], axis=1, p=2),
    ]


def _print_weights(tensors: "Tensors") -> "list[TensorProto]":
    import numpy as np
    from onnx import numpy_helper

    named = [numpy_helper.from_array(tensors[name], name) for name in ("linear.weight", "linear.bias")]
    axes = {"directions": 1, "directions_of_state": 0}
    return named + [numpy_helper.from_array(np.array([axis], np.int64), name) for name, axis in axes.items()]
