"""What a diarizer remembers is what the slow reference remembers, step by step, and no more than its schedule says."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon_adapters.nemotron_diar.compression import compress
from antiphon_adapters.nemotron_diar.memory import SpeakerMemory
from antiphon_adapters.nemotron_diar.model_files import ModelFiles, read_model
from antiphon_adapters.nemotron_diar.network import Network
from tiny_diarizer import SPEAKERS, Kind, weights
from tiny_diarizer_reference import Memory, Model, probabilities
from tiny_diarizer_reference import compress as slow_compress

KINDS = tuple(SPEAKERS)


def random_features(frames: int, seed: int) -> NDArray[np.float32]:
    """Log mels of voices that come and go, each for 0.4 s."""
    random = np.random.Generator(np.random.PCG64(seed))
    voices = np.repeat(random.standard_normal((frames // 40 + 1, 128)) * 6 - 6, 40, axis=0)[:frames]
    return (voices + random.standard_normal((frames, 128))).astype(np.float32)


def reference_of(kind: Kind, files: ModelFiles) -> Model:
    numbers = {name: matrix.tolist() for name, matrix in weights(kind).items()}
    schedule = {name: getattr(files.schedule, name) for name in files.schedule.__dataclass_fields__}
    learned = None if kind == "sortformer" else numbers["silence"]
    return Model(numbers, schedule, 3 if kind == "sortformer" else 1, learned, fine=kind != "sortformer")


def heard(network: Network, memory: SpeakerMemory, features: NDArray[np.float32]) -> NDArray[np.float32]:
    """The probabilities of all frames, as the product computes them step by step."""
    schedule = network.files.schedule
    stride = 8 * schedule.chunk_len
    reach = stride + 8 * schedule.right_context
    return np.concatenate([network.step(memory, features[at : at + reach]) for at in range(0, len(features), stride)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("frames", "seed"), [(5, 0), (48, 1), (483, 2), (800, 6)])
def test_steps_and_what_they_leave_behind_are_those_of_the_reference(
    tiny_diarizer: Callable[..., Path], kind: Kind, frames: int, seed: int
) -> None:
    network = Network.load(read_model(str(tiny_diarizer(kind)), {}), threads=1)
    features = random_features(frames, seed)
    slow, memory = Memory(), SpeakerMemory(network.files)
    expected = np.array(probabilities(reference_of(kind, network.files), features.tolist(), slow))

    actual = heard(network, memory, features)

    assert actual[: len(expected)] == pytest.approx(expected, abs=2e-5)
    assert len(actual) - len(expected) < 8
    for rows, slow_rows in ((memory.cache, slow.cache), (memory.fifo, slow.fifo)):
        assert rows.shape[0] == len(slow_rows)
        assert rows == pytest.approx(np.array(slow_rows).reshape(rows.shape), abs=2e-5)


def test_the_reference_saw_silence_and_full_caches(tiny_diarizer: Callable[..., Path]) -> None:
    files = read_model(str(tiny_diarizer("sortformer")), {})
    slow = Memory()
    odds = probabilities(reference_of("sortformer", files), random_features(800, 6).tolist(), slow)
    assert len(slow.silent) > 5
    assert len(slow.cache) == files.schedule.spkcache_len
    assert all(0.02 < sum(p > 0.5 for p in column) / len(odds) < 0.98 for column in zip(*odds, strict=True))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(("speakers", "size", "sil"), [(4, 28, 3), (4, 188, 3), (8, 264, 1), (8, 16, 1), (2, 5, 0)])
def test_an_overfull_cache_keeps_what_the_reference_keeps(speakers: int, size: int, sil: int, seed: int) -> None:
    random = np.random.Generator(np.random.PCG64(seed))
    rows = size + int(random.integers(1, size + 1))
    embeddings = random.standard_normal((rows, 6)).astype(np.float32)
    # Mostly sure of somebody or nobody; in some runs hardly any speech, in others everybody at once.
    odds = 1 / (1 + np.exp(-4 * (random.standard_normal((rows, speakers)) + random.integers(-2, 2))))
    predictions = odds.astype(np.float32)
    silence = random.standard_normal(6).astype(np.float32)

    kept, kept_predictions = compress(embeddings, predictions, silence, size, sil)

    slow, slow_predictions = slow_compress(embeddings.tolist(), predictions.tolist(), silence.tolist(), size, sil)
    assert np.array_equal(kept, np.array(slow, np.float32))
    assert np.array_equal(kept_predictions, np.array(slow_predictions, np.float32))


def test_silence_alone_compresses_to_rows_of_silence() -> None:
    kept, predictions = compress(np.ones((30, 2), np.float32), np.zeros((30, 4), np.float32), np.zeros(2), 20, 3)
    assert kept.shape == (20, 2)
    assert not kept.any()
    assert not predictions.any()


@pytest.mark.parametrize("kind", KINDS)
def test_memory_stays_within_the_schedule(tiny_diarizer: Callable[..., Path], kind: Kind) -> None:
    network = Network.load(read_model(str(tiny_diarizer(kind)), {}), threads=1)
    schedule, memory = network.files.schedule, SpeakerMemory(network.files)
    chunk = random_features(8 * (schedule.chunk_len + schedule.right_context), 9)
    for _ in range(60):
        network.step(memory, chunk)
        assert len(memory.cache) <= schedule.spkcache_len
        assert len(memory.fifo) <= schedule.fifo_len
    assert len(memory.cache) == schedule.spkcache_len
