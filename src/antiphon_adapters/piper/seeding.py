"""Noise by seed: turns the random nodes of a voice's graph into inputs. It knows nothing of text or requests.

A Piper graph (VITS) draws its noise inside, from `RandomNormalLike` nodes, so an ONNX Runtime session that is shared by
several threads answers differently each time. Each such node becomes a lookup into a flat vector that the caller fills:
`vector[arange(size(x)) mod len(vector)]`, in the shape of x. The lookup wraps, so a vector that turns out too short
repeats itself instead of failing: how many frames a sentence takes is known only inside the graph.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.vocabulary.errors import LoadFailed
from antiphon_adapters.piper.cutting import Cut, cut_ending

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto

RANDOM_OPS = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
)
"""The ONNX operators that draw random numbers when a model is run."""

NOISE_PER_ID = 768
"""Normal numbers drawn per phoneme id at speed 1: 192 channels of 4 frames, about twice what English takes."""


@dataclass(frozen=True, slots=True)
class SeededGraph:
    """A graph, serialised whole or in parts, and the names of its noise inputs; none when it draws no noise."""

    graph: bytes | Cut
    noise_inputs: tuple[str, ...]


def read_seeded(path: str, *, cut: bool = False) -> SeededGraph:
    """Read a voice's graph and move its noise to inputs; `cut`: with its end apart, where that is possible.

    A graph without random nodes comes back as it is. Raises LoadFailed for a graph that draws in another way than
    standard `RandomNormalLike` nodes at its top level: its answers could not be repeated.
    """
    import onnx

    model = onnx.load(path)
    noise_inputs = move_noise_to_inputs(model)
    parts = cut_ending(model) if cut else None
    return SeededGraph(parts or model.SerializeToString(), noise_inputs)


def move_noise_to_inputs(model: "ModelProto") -> tuple[str, ...]:
    """Replace every random node of `model`, in place, and return the names of the new inputs."""
    nodes = list(model.graph.node)
    drawing = [node for node in nodes if node.op_type in RANDOM_OPS]
    if any(not _is_standard_normal(node) for node in drawing) or _draws_in_subgraph(nodes):
        raise LoadFailed("the voice draws random numbers in a way that no seed can repeat")
    names: list[str] = []
    rebuilt: list[NodeProto] = []
    for node in nodes:
        if node.op_type == "RandomNormalLike":
            names.append(f"antiphon_noise_{len(names)}")
            rebuilt.extend(_lookup(model, node, names[-1]))
        else:
            rebuilt.append(node)
    del model.graph.node[:]
    model.graph.node.extend(rebuilt)
    return tuple(names)


def noise_feed(names: tuple[str, ...], seed: int, index: int, size: int) -> Mapping[str, "NDArray[np.float32]"]:
    """Draw the noise of one synthesis.

    `index` counts the syntheses of one request, so that they do not share noise; `size` is the length of each vector.
    Equal arguments give equal vectors (PCG64 is specified bit by bit), on every thread and machine.
    """
    import numpy as np

    source = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed % 2**64, index])))
    return {name: source.standard_normal(size, dtype=np.float32) for name in names}


def _is_standard_normal(node: "NodeProto") -> bool:
    attributes = {attribute.name: attribute for attribute in node.attribute}
    return (
        node.op_type == "RandomNormalLike"
        and ("mean" not in attributes or attributes["mean"].f == 0.0)
        and ("scale" not in attributes or attributes["scale"].f == 1.0)
        and ("dtype" not in attributes or attributes["dtype"].i == 1)  # float32
    )


def _draws_in_subgraph(nodes: "list[NodeProto]") -> bool:
    """Whether a random node hides in the body of an If or a Loop, where a top-level rewrite does not reach it."""
    bodies = [attribute.g for node in nodes for attribute in node.attribute if attribute.HasField("g")]
    return any(node.op_type in RANDOM_OPS for body in bodies for node in body.node) or any(
        _draws_in_subgraph(list(body.node)) for body in bodies
    )


def _lookup(model: "ModelProto", node: "NodeProto", noise: str) -> "list[NodeProto]":
    """The nodes that put `noise`, repeated as needed, where `node` drew its own."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    model.graph.input.append(helper.make_tensor_value_info(noise, TensorProto.FLOAT, [f"{noise}_length"]))
    zero, one = f"{noise}_zero", f"{noise}_one"
    model.graph.initializer.extend(
        [numpy_helper.from_array(np.array(0, np.int64), zero), numpy_helper.from_array(np.array(1, np.int64), one)]
    )
    (like,) = node.input

    def step(operator: str, inputs: list[str], output: str) -> "NodeProto":
        return helper.make_node(operator, inputs, [output], name=f"{noise}/{output}")

    return [
        step("Shape", [like], f"{noise}_shape"),
        step("Size", [like], f"{noise}_size"),
        step("Size", [noise], f"{noise}_period"),
        step("Range", [zero, f"{noise}_size", one], f"{noise}_counter"),
        step("Mod", [f"{noise}_counter", f"{noise}_period"], f"{noise}_place"),
        step("Gather", [noise, f"{noise}_place"], f"{noise}_flat"),
        step("Reshape", [f"{noise}_flat", f"{noise}_shape"], node.output[0]),
    ]
