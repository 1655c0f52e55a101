"""The end of a voice's graph, cut off: it makes sound of frames, also in windows on several threads. No text here.

A Piper graph ends in a decoder of nothing but convolutions and steps on single values, so each piece of its sound
depends on a bounded stretch of frames. It takes most of a synthesis. ONNX Runtime's own threads would speed up the rest
as well, but they cut matrices, and so round, differently for each number of threads; windows do not
(docs/engines/piper.md). What comes before the decoder is never cut.
"""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto
    from onnxruntime import InferenceSession

    Sound = NDArray[np.float32]

MIN_WINDOW = 65
"""The fewest frames of a window: matrices of fewer columns are multiplied in another order, and round otherwise."""

_LOCAL = frozenset({"Add", "Conv", "ConvTranspose", "Constant", "Div", "LeakyRelu", "Relu", "Tanh"})
_SHAPING = frozenset({"Identity", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True, slots=True)
class Windows:
    """What a decoder takes, by name, and how it can be given in parts: a frame gives `hop` samples.

    A sample depends on no frame that is more than `margin` away from its own.
    """

    inputs: tuple[str, ...]
    hop: int
    margin: int


@dataclass(frozen=True, slots=True)
class Ending:
    """A decoder that was cut off, serialised."""

    data: bytes
    windows: Windows


@dataclass(frozen=True, slots=True)
class Decoder:
    """A loaded decoder; several threads may call it at once."""

    session: "InferenceSession"
    windows: Windows

    def sound(self, inputs: "Sequence[Sound]", hands: int) -> "Sound":
        """Make the sound of `inputs`, each [1, channels, frames] or [1, channels, 1], on `hands` threads at most.

        Returns mono samples, shape [n], the same bits for any number of `hands`.
        """
        import numpy as np

        frames = max(it.shape[-1] for it in inputs)
        count = min(hands, frames // MIN_WINDOW)
        if count < 2 or any(it.ndim != 3 or it.shape[-1] not in (1, frames) for it in inputs):
            return self._run(inputs)
        edges = [frames * number // count for number in range(count + 1)]
        with ThreadPoolExecutor(count, "antiphon-piper-window") as crew:
            return np.concatenate(list(crew.map(partial(self._window, inputs, frames), edges, edges[1:])))

    def _window(self, inputs: "Sequence[Sound]", frames: int, start: int, end: int) -> "Sound":
        """The samples of some frames: spoken with their surroundings, which are dropped again."""
        import numpy as np

        margin, hop = self.windows.margin, self.windows.hop
        first, last = max(0, start - margin), min(frames, end + margin)
        parts = [it if it.shape[-1] == 1 else np.ascontiguousarray(it[:, :, first:last]) for it in inputs]
        return self._run(parts)[(start - first) * hop : (end - first) * hop]

    def _run(self, inputs: "Sequence[Sound]") -> "Sound":
        import numpy as np

        (samples,) = self.session.run(None, dict(zip(self.windows.inputs, inputs, strict=True)))
        return np.asarray(samples, np.float32).reshape(-1)


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far before and after itself a value looks, in frames; there are `rate` values a frame."""

    rate: int = 1
    before: float = 0.0
    after: float = 0.0


def cut_decoder(model: "ModelProto") -> tuple[bytes, Ending] | None:
    """Cut a voice's graph where its decoder begins; None where its end cannot be spoken in windows.

    Returns what comes before the decoder, serialised, whose answers the decoder takes, and the decoder.
    """
    maker = {output: node for node in model.graph.node for output in node.output}
    sound, shaping = _unshaped(model.graph.output[0].name, maker)
    made, inputs = _local_end(model, sound, maker)
    nodes = [node for node in model.graph.node if node.output[0] in made]
    reach = _reach_of_sound(model, nodes, inputs, sound)
    if reach is None or reach.rate == 1:
        return None
    gone = made.union(shaping) - {node.output[0] for node in nodes if node.op_type == "Constant"}
    left = [node for node in model.graph.node if node.output[0] not in gone]
    if gone.intersection(name for node in left for name in node.input):
        return None  # something else is made of it
    windows = Windows(tuple(inputs), reach.rate, math.ceil(max(reach.before, reach.after)))
    front = _part(model, left, [it.name for it in model.graph.input], inputs)
    return front, Ending(_part(model, nodes, inputs, [sound]), windows)


def _unshaped(output: str, maker: "Mapping[str, NodeProto]") -> tuple[str, list[str]]:
    """The value that an output is but for its shape, and what becomes of it on the way."""
    shaped = []
    while (node := maker.get(output)) is not None and node.op_type in _SHAPING:
        shaped.append(output)
        output = node.input[0]
    return output, shaped


def _local_end(model: "ModelProto", sound: str, maker: "Mapping[str, NodeProto]") -> tuple[set[str], list[str]]:
    """The values that `sound` is made of by local nodes, itself included, and those that they take from elsewhere."""
    weights = {it.name for it in model.graph.initializer}
    made: set[str] = set()
    inputs: dict[str, None] = {}
    todo = [sound]
    while todo:
        value = todo.pop()
        if not value or value in weights or value in made:
            continue
        node = maker.get(value)
        if node is None or node.op_type not in _LOCAL:
            inputs[value] = None
            continue
        made.add(value)
        todo.extend(node.input)
    return made, list(inputs)


def _reach_of_sound(
    model: "ModelProto", nodes: "Sequence[NodeProto]", inputs: Sequence[str], sound: str
) -> _Reach | None:
    """How far a sample looks; None where a node does not keep step with its input."""
    weights = {it.name: it.dims for it in model.graph.initializer}
    at = dict.fromkeys(inputs, _Reach())
    for node in nodes:
        known = [at[name] for name in node.input if name in at]
        if not known:
            continue  # it is the same everywhere
        if len({it.rate for it in known}) > 1:
            return None
        reach = _Reach(known[0].rate, max(it.before for it in known), max(it.after for it in known))
        if node.op_type in ("Conv", "ConvTranspose"):
            wider = _convolved(node, list(weights.get(node.input[1], ())), reach)
            if wider is None:
                return None
            reach = wider
        at[node.output[0]] = reach
    return at.get(sound)


def _convolved(node: "NodeProto", kernel: Sequence[int], at: _Reach) -> _Reach | None:
    """The reach behind a convolution in one dimension whose output has `stride` values for each input, else None."""
    found = {it.name: list(it.ints) for it in node.attribute}
    names = {it.name for it in node.attribute}
    if len(kernel) != 3 or names.intersection(("auto_pad", "output_shape")):
        return None
    (stride,), (dilation,) = found.get("strides", [1]), found.get("dilations", [1])
    left, right = found.get("pads", [0, 0])
    (more,) = found.get("output_padding", [0])
    span = (kernel[2] - 1) * dilation
    if node.op_type == "Conv":
        kept = stride == 1 and left + right == span
        return _Reach(at.rate, at.before + left / at.rate, at.after + right / at.rate) if kept else None
    rate = at.rate * stride
    kept = span + 1 - left - right + more == stride
    return _Reach(rate, at.before + (span - left) / rate, at.after + left / rate) if kept else None


def _part(model: "ModelProto", nodes: "Sequence[NodeProto]", inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """A part of a graph as a model of its own, with the weights that it uses."""
    from onnx import TensorProto, helper

    used = {name for node in nodes for name in node.input}
    described = {it.name: it for it in model.graph.input}
    part = helper.make_graph(
        nodes,
        "part",
        [described.get(name) or helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [it for it in model.graph.initializer if it.name in used],
    )
    whole = helper.make_model(part, opset_imports=model.opset_import, ir_version=model.ir_version)
    serialised: bytes = whole.SerializeToString()
    return serialised
