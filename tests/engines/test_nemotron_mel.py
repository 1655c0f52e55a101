"""A diarizer's features are NeMo's, and the same bit for bit however the audio is cut."""

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon_adapters.mel import mel_filters
from antiphon_adapters.nemotron_diar.mel import BLOCK_SAMPLES, MelStream
from mel_reference import log_mel
from mel_reference import mel_filters as slow_filters

RANDOM = np.random.Generator(np.random.PCG64(7))


def noise(samples: int) -> NDArray[np.float32]:
    return (RANDOM.standard_normal(samples) * 0.1).astype(np.float32)


def features(*pieces: NDArray[np.float32]) -> NDArray[np.float32]:
    stream = MelStream()
    blocks = [block for piece in pieces for block in stream.feed(piece)]
    return np.concatenate([*blocks, stream.finish()])


def test_features_are_those_of_the_reference() -> None:
    clip = noise(5000)
    assert features(clip) == pytest.approx(np.array(log_mel(clip.tolist())), abs=2e-6)


def test_features_of_silence_are_the_guards_logarithm() -> None:
    assert features(np.zeros(3200, np.float32)) == pytest.approx(np.full((20, 128), -24 * np.log(2)))


def test_the_filters_are_those_of_the_reference_and_of_nemo() -> None:
    from onnx_asr.preprocessors.numpy_preprocessor import NemoPreprocessorNumpy

    filters = mel_filters(16_000, 512, 128).T
    assert filters == pytest.approx(np.array(slow_filters()).T, abs=1e-12)
    assert filters == pytest.approx(NemoPreprocessorNumpy("nemo128")._melscale_fbanks, abs=1e-7)


@pytest.mark.parametrize("largest", [1, 7, 159, 1281, 16000])
def test_how_the_audio_is_cut_changes_no_bit(largest: int) -> None:
    clip = noise(3 * BLOCK_SAMPLES + 777 if largest == 1 else 40_000)
    cuts = np.cumsum(RANDOM.integers(0, largest + 1, 4 * len(clip) // largest))
    pieces = np.split(clip, cuts[cuts < len(clip)])
    assert features(*pieces).tobytes() == features(clip).tobytes()


@pytest.mark.parametrize("samples", [0, 1, 159, 160, 1279, 1280, 1319, 1320, 1321, 1440, 2599, 2600, 2601])
def test_there_is_a_frame_for_each_whole_hop(samples: int) -> None:
    assert features(noise(samples)).shape == (samples // 160, 128)


def test_a_block_is_told_as_soon_as_its_last_window_is_full() -> None:
    stream = MelStream()
    assert len(list(stream.feed(noise(1319)))) == 0
    assert len(list(stream.feed(noise(1)))) == 1
    assert len(list(stream.feed(noise(1279)))) == 0
    assert len(list(stream.feed(noise(1)))) == 1


def test_samples_that_are_no_numbers_are_silence() -> None:
    clip = noise(3200)
    broken, mended = clip.copy(), clip.copy()
    broken[5], broken[6], mended[5:7] = np.nan, np.inf, 0.0
    assert features(broken).tobytes() == features(mended).tobytes()
