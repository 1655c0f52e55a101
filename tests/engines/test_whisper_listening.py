"""A long recording is taken in stretches that join without a gap, cut where it is quiet."""

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.vocabulary.audio import Pcm
from antiphon_adapters.whisper.listening import SAMPLE_RATE, STRETCH_SAMPLES, passages

RANDOM = np.random.Generator(np.random.PCG64(1))


def pcm_of(samples: NDArray[np.floating]) -> Pcm:
    return Pcm.from_bytes(samples.astype(np.float32).tobytes(), SAMPLE_RATE)


def test_a_short_recording_is_one_passage() -> None:
    noise = RANDOM.uniform(-1, 1, SAMPLE_RATE)
    (passage,) = passages(pcm_of(noise), only_speech=False)
    assert passage.offset == 0
    assert passage.parts == [{"start": 0, "end": SAMPLE_RATE}]
    assert np.array_equal(passage.speech, noise.astype(np.float32))


def test_a_recording_beyond_full_scale_is_turned_down_as_a_whole() -> None:  # AUD-04
    noise = RANDOM.uniform(-1, 1, SAMPLE_RATE)
    (passage,) = passages(pcm_of(noise * 500), only_speech=False)
    assert np.abs(passage.speech).max() == 1
    assert np.allclose(passage.speech, noise / np.abs(noise).max(), atol=1e-6)


def test_a_long_recording_is_cut_where_it_is_quiet() -> None:
    noise = RANDOM.standard_normal(STRETCH_SAMPLES + 20 * SAMPLE_RATE)
    quiet = STRETCH_SAMPLES - 10 * SAMPLE_RATE
    noise[quiet : quiet + SAMPLE_RATE // 2] = 0
    first, second = passages(pcm_of(noise), only_speech=False)
    assert quiet <= second.offset <= quiet + SAMPLE_RATE // 2
    assert second.offset == len(first.speech)
    assert len(first.speech) + len(second.speech) == len(noise)


@pytest.mark.parametrize("frames", [1, 16, 160, 800, 1584])
def test_what_is_too_short_for_a_word_is_not_listened_to(frames: int) -> None:  # AUD-12
    clip = pcm_of(RANDOM.standard_normal(frames))
    for only_speech in (False, True):
        (passage,) = passages(clip, only_speech=only_speech)
        assert (passage.parts, len(passage.speech), passage.end) == ([], 0, frames)


@pytest.mark.parametrize("loudness", [0.0, 0.0004, 0.01, 0.1, 0.9])
def test_silence_and_noise_are_not_listened_to(loudness: float) -> None:  # AUD-13
    noise = np.clip(RANDOM.standard_normal(6 * SAMPLE_RATE) / 4, -1, 1) * loudness
    assert [passage.parts for passage in passages(pcm_of(noise), only_speech=True)] == [[]]


def test_silence_is_told_stretch_by_stretch() -> None:
    silence = np.zeros(600 * SAMPLE_RATE)
    told = [(passage.offset, passage.end) for passage in passages(pcm_of(silence), only_speech=False)]
    assert [start for start, _ in told] == [0, *(end for _, end in told[:-1])]
    assert told[-1][1] == len(silence)
    assert max(end - start for start, end in told) <= STRETCH_SAMPLES


def test_a_pause_is_a_better_place_for_a_cut_than_a_stop_inside_a_word() -> None:
    noise = RANDOM.standard_normal(STRETCH_SAMPLES + SAMPLE_RATE)
    stop, pause = STRETCH_SAMPLES - 20 * SAMPLE_RATE, STRETCH_SAMPLES - 10 * SAMPLE_RATE
    noise[stop : stop + SAMPLE_RATE // 5] = 0
    noise[pause : pause + SAMPLE_RATE // 2] *= 0.01
    _, second = passages(pcm_of(noise), only_speech=False)
    assert pause <= second.offset <= pause + SAMPLE_RATE // 2


def test_samples_that_are_no_numbers_are_silence() -> None:
    samples = np.full(SAMPLE_RATE, np.nan)
    samples[0] = np.inf
    (passage,) = passages(pcm_of(samples), only_speech=False)
    assert not passage.speech.any()
