"""A graph's noise comes from outside once its random nodes are moved to inputs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper

from antiphon.vocabulary.errors import LoadFailed
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task, TaskRequest
from antiphon_adapters.piper import PiperAdapter
from antiphon_adapters.piper.seeding import move_noise_to_inputs, noise_feed, read_seeded
from tiny_piper import build_graph

CPU = ["CPUExecutionProvider"]


def feed_of(ids: list[int], noise_scale: float, noise_w: float) -> dict[str, np.ndarray]:
    return {
        "input": np.array([ids], np.int64),
        "input_lengths": np.array([len(ids)], np.int64),
        "scales": np.array([noise_scale, 1.0, noise_w], np.float32),
    }


def test_equal_seeds_draw_equal_noise_and_others_do_not() -> None:
    drawn = [noise_feed(("z",), *at, 100)["z"].tobytes() for at in ((1, 0), (1, 0), (1, 1), (2, 0), (-1, 0))]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 4


def test_both_random_nodes_become_inputs() -> None:
    graph = build_graph()
    assert move_noise_to_inputs(graph) == ("antiphon_noise_0", "antiphon_noise_1")
    assert not [node for node in graph.graph.node if node.op_type.startswith("Random")]


def test_noise_that_is_too_short_repeats_itself() -> None:
    graph = build_graph()
    names = move_noise_to_inputs(graph)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=CPU)
    noise = {names[0]: np.array([1, 2, 3], np.float32), names[1]: np.zeros(1, np.float32)}
    (sound,) = session.run(None, {**feed_of([0] * 7, 0.0, 1.0), **noise})
    assert sound.reshape(-1).tolist() == [1, 2, 3, 1, 2, 3, 1]


def test_a_graph_without_noise_stays_as_it_is() -> None:
    graph = build_graph(random_operator="Identity")
    before = graph.SerializeToString(deterministic=True)
    assert move_noise_to_inputs(graph) == ()
    assert graph.SerializeToString(deterministic=True) == before


def test_a_graph_that_draws_otherwise_does_not_load(tiny_voice: Callable[..., Path]) -> None:
    folder = tiny_voice(random_operator="RandomUniformLike")
    with pytest.raises(LoadFailed, match="no seed can repeat"):
        PiperAdapter().load(ModelSpec("tiny", "piper", str(folder), Task.TTS))


def test_a_graph_that_draws_inside_a_branch_does_not_load() -> None:
    graph = build_graph(random_operator="Identity")
    body: ModelProto = build_graph()
    condition = helper.make_node("If", ["cond"], ["x"], then_branch=body.graph, else_branch=body.graph)
    graph.graph.node.append(condition)
    with pytest.raises(LoadFailed):
        move_noise_to_inputs(graph)


@pytest.mark.engine
def test_with_no_noise_a_seeded_voice_is_the_voice_itself(piper_spec: ModelSpec) -> None:
    (path,) = Path(piper_spec.path).glob("*.onnx")
    seeded = read_seeded(str(path))
    ids = [1, 0, 20, 0, 59, 0, 24, 0, 27, 0, 100, 0, 10, 0, 2]
    size = 768 * len(ids)
    ours = onnxruntime.InferenceSession(seeded.graph, providers=CPU)
    theirs = onnxruntime.InferenceSession(str(path), providers=CPU)
    (seeded_sound,) = ours.run(None, {**feed_of(ids, 0.0, 0.0), **noise_feed(seeded.noise_inputs, 5, 0, size)})
    (plain_sound,) = theirs.run(None, feed_of(ids, 0.0, 0.0))
    assert seeded_sound.tobytes() == plain_sound.tobytes()


def test_a_loaded_voice_repeats_itself_by_its_seed(tiny_voice: Callable[..., Path]) -> None:
    session = PiperAdapter().load(ModelSpec("tiny", "piper", str(tiny_voice()), Task.TTS)).open_session()
    assert session is not None
    sounds = []
    for seed in (0, 0, 1):
        audio = session.run(TaskRequest(text="hello", seed=seed)).audio
        assert audio is not None
        sounds.append(audio.samples.tobytes())
    assert sounds[0] == sounds[1] != sounds[2]
