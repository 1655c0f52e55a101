"""Cuts the end off a voice's graph: all that looks at a bounded stretch of frames alone. It runs nothing.

A Piper graph (VITS) ends in a flow and a decoder, which take most of a synthesis and are made of convolutions and steps
on single frames. The end is cut into stages: where nothing but one value leads on, and the overlap of windows would
otherwise add up.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon_adapters.piper.ending import Windows

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

_ON_VALUES = frozenset({"Add", "Constant", "Div", "Exp", "LeakyRelu", "Mul", "Neg", "Relu", "Sigmoid", "Sub", "Tanh"})
_ON_CHANNELS = frozenset({"Concat", "Split"})
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_SHAPING = frozenset({"Identity", "Squeeze", "Unsqueeze"})
_STAGE_FRAMES = 4
"""How far a stage looks before another one begins, where that is possible. More stages cost a little each."""


@dataclass(frozen=True, slots=True)
class CutStage:
    """A stage, serialised."""

    data: bytes
    windows: Windows


@dataclass(frozen=True, slots=True)
class Cut:
    """A graph in two, serialised: the answers of `front`, in their order, are the `inputs` of the stages."""

    front: bytes
    inputs: tuple[str, ...]
    stages: tuple[CutStage, ...]


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far before and after itself a value looks, in frames; there are `rate` values a frame."""

    rate: int = 1
    before: float = 0.0
    after: float = 0.0

    @property
    def margin(self) -> int:
        return math.ceil(max(self.before, self.after))


def cut_ending(model: "ModelProto") -> Cut | None:
    """Cut a voice's graph in two; None where its end cannot be run in windows."""
    graph = _Graph.of(model)
    sound, shaped = graph.unshaped(model.graph.output[0].name)
    made, inputs = graph.local_end(sound)
    nodes = [node for node in model.graph.node if node.op_type != "Constant" and node.output[0] in made]
    stages = graph.stages(nodes, inputs)
    gone = {value for node in nodes for value in node.output}.union(shaped)
    left = [node for node in model.graph.node if node.output[0] not in gone]
    if stages is None or gone.intersection(value for node in left for value in node.input):
        return None
    front = graph.part(left, [it.name for it in model.graph.input], inputs)
    return Cut(front, tuple(inputs), tuple(stages))


@dataclass(frozen=True, slots=True)
class _Graph:
    """A model, with what makes each of its values."""

    model: "ModelProto"
    weights: "Mapping[str, TensorProto]"
    maker: "Mapping[str, NodeProto]"

    @classmethod
    def of(cls, model: "ModelProto") -> "_Graph":
        maker = {output: node for node in model.graph.node for output in node.output}
        return cls(model, {it.name: it for it in model.graph.initializer}, maker)

    def unshaped(self, output: str) -> tuple[str, list[str]]:
        """The value that an output is but for its shape, and what becomes of it on the way."""
        shaped = []
        while (node := self.maker.get(output)) is not None and node.op_type in _SHAPING:
            shaped.append(output)
            output = node.input[0]
        return output, shaped

    def local_end(self, sound: str) -> tuple[set[str], list[str]]:
        """The values that `sound` is made of by local nodes, itself included, and those that come from elsewhere."""
        made: set[str] = set()
        inputs: dict[str, None] = {}
        todo = [sound]
        while todo:
            value = todo.pop()
            if not value or value in self.weights or value in made:
                continue
            node = self.maker.get(value)
            if node is None or not self._is_local(node):
                inputs[value] = None
                continue
            made.update(node.output)
            if node.op_type == "ConstantOfShape":
                made.add(node.input[0])
                node = self.maker[node.input[0]]
            todo.extend(node.input)
        return made, list(inputs)

    def stages(self, nodes: "Sequence[NodeProto]", inputs: Sequence[str]) -> list[CutStage] | None:
        """Cut nodes, which stand in their order, into stages; None where one does not keep step with its input."""
        last_use = {value: number for number, node in enumerate(nodes) for value in node.input}
        at = dict.fromkeys(inputs, _Reach())
        stages: list[CutStage] = []
        begun, open_values = 0, set[str]()
        for number, node in enumerate(nodes):
            reach = self._reach(node, at)
            if reach is None:
                return None
            at.update(dict.fromkeys(node.output, reach))
            open_values = {it for it in open_values.union(node.output) if last_use.get(it, -1) > number}
            is_last = number == len(nodes) - 1
            if is_last or (open_values == {node.output[0]} and reach.margin >= _STAGE_FRAMES):
                stages.append(self._stage(nodes[begun : number + 1], node.output[0], reach))
                at[node.output[0]] = _Reach(reach.rate)
                begun = number + 1
        return stages if stages and stages[-1].windows.rate > 1 else None

    def part(self, nodes: "Sequence[NodeProto]", inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
        """Some nodes as a model of their own, with the weights that they use."""
        from onnx import TensorProto, helper

        used = {value for node in nodes for value in node.input}
        described = {it.name: it for it in self.model.graph.input}
        part = helper.make_graph(
            nodes,
            "part",
            [described.get(name) or helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in inputs],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            [it for name, it in self.weights.items() if name in used],
        )
        whole = helper.make_model(part, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        serialised: bytes = whole.SerializeToString()
        return serialised

    def _stage(self, nodes: "Sequence[NodeProto]", output: str, reach: _Reach) -> CutStage:
        made = {value for node in nodes for value in node.output}
        taken = dict.fromkeys(value for node in nodes for value in node.input if value and value not in made)
        constants = {
            value: self.maker[value]
            for value in taken
            if value in self.maker and self.maker[value].op_type == "Constant"
        }
        inputs = tuple(value for value in taken if value not in self.weights and value not in constants)
        data = self.part([*constants.values(), *nodes], inputs, [output])
        return CutStage(data, Windows(inputs, output, reach.rate, reach.margin))

    def _is_local(self, node: "NodeProto") -> bool:
        """Whether each output depends on a bounded stretch of the inputs, as far as its kind tells."""
        match node.op_type:
            case "Slice":
                return len(node.input) > 3 and self._constant(node.input[3]) == [1] and self._is_fixed(node.input[1:])
            case "ConstantOfShape":  # zeros as long as something else
                maker = self.maker.get(node.input[0])
                return maker is not None and maker.op_type == "Shape"
            case operator if operator in _ON_CHANNELS:
                return any(it.name == "axis" and it.i == 1 for it in node.attribute)
            case operator:
                return operator in _ON_VALUES or operator in _CONVOLUTIONS

    def _is_fixed(self, values: Sequence[str]) -> bool:
        return all(self._constant(value) is not None for value in values if value)

    def _constant(self, value: str) -> list[int] | None:
        """The integers of a value that is written in the graph; None for another."""
        from onnx import numpy_helper

        if value in self.weights:
            return [int(it) for it in numpy_helper.to_array(self.weights[value]).reshape(-1)]
        node = self.maker.get(value)
        if node is None or node.op_type != "Constant":
            return None
        tensors = [it.t for it in node.attribute if it.name == "value"]
        return [int(it) for it in numpy_helper.to_array(tensors[0]).reshape(-1)] if tensors else None

    def _reach(self, node: "NodeProto", at: Mapping[str, _Reach]) -> _Reach | None:
        known = [at[name] for name in node.input if name in at]
        if len({it.rate for it in known}) != 1:
            return None
        reach = _Reach(known[0].rate, max(it.before for it in known), max(it.after for it in known))
        if node.op_type not in _CONVOLUTIONS:
            return reach
        kernel = self.weights.get(node.input[1])
        return None if kernel is None else _convolved(node, list(kernel.dims), reach)


def _convolved(node: "NodeProto", kernel: Sequence[int], at: _Reach) -> _Reach | None:
    """The reach behind a convolution in one dimension whose output has `stride` values for each input, else None."""
    found = {it.name: list(it.ints) for it in node.attribute}
    if len(kernel) != 3 or found.keys() & {"auto_pad", "output_shape"}:
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
