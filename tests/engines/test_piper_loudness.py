"""A sentence is as loud as it can be, and the parts of a cut one are as loud as each other."""

import numpy as np
from numpy.typing import NDArray

from antiphon_adapters.piper.loudness import HEADROOM, Loudness


def run(*samples: float) -> NDArray[np.float32]:
    return np.array(samples, np.float32)


def test_a_whole_sentence_is_as_loud_as_it_can_be() -> None:
    loudness = Loudness()
    assert loudness.scale(run(0.1, -0.5), ends=True).tolist() == run(0.2, -1.0).tolist()
    assert loudness.scale(run(0.25, 0.0), ends=True).tolist() == run(1.0, 0.0).tolist()


def test_the_parts_of_a_sentence_are_scaled_alike() -> None:
    loudness = Loudness()
    first, second, last = (loudness.scale(run(peak), ends=ends) for peak, ends in ((0.4, 0), (0.5, 0), (0.2, 1)))
    assert np.allclose([*first, *second, *last], HEADROOM / 0.4 * np.array([0.4, 0.5, 0.2]))


def test_a_part_that_needs_more_room_does_not_clip() -> None:
    loudness = Loudness()
    loudness.scale(run(0.4), ends=False)
    assert loudness.scale(run(0.9), ends=False).tolist() == [1.0]
    assert np.allclose(loudness.scale(run(0.4), ends=True), HEADROOM)


def test_the_sentence_after_a_cut_one_starts_anew() -> None:
    loudness = Loudness()
    loudness.scale(run(0.4), ends=False)
    loudness.scale(run(0.4), ends=True)
    assert loudness.scale(run(0.1), ends=True).tolist() == [1.0]


def test_silence_stays_silent() -> None:
    assert Loudness().scale(run(0.0, 1e-9), ends=True).tolist() == [0.0, 0.0]
