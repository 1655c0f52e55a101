"""Voices are told apart as average linkage over all prints does it, within bounds; turns are cut between windows."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from antiphon.vocabulary.tasks import SpeakerTurn
from antiphon_adapters.speaker_clustering.clusters import BLOCK_PRINTS, SpeakerCount, cluster
from antiphon_adapters.speaker_clustering.prints import Window, windows_of
from antiphon_adapters.speaker_clustering.speech import Stretch, stretches_of
from antiphon_adapters.speaker_clustering.turns import Voiced, speaker_turns, voiced_parts

ANY = SpeakerCount(1, 32, 0.5)


def voices(sizes: list[int], spread: float = 0.5) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Prints of as many speakers as there are sizes, shuffled, and whose each is."""
    draw = np.random.default_rng(1)
    who = draw.permutation(np.repeat(np.arange(len(sizes)), sizes))
    prints = draw.standard_normal((len(sizes), 256))[who] + spread * draw.standard_normal((len(who), 256))
    return (prints / np.linalg.norm(prints, axis=1, keepdims=True)).astype(np.float32), who


def same(one: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    """Whether two labellings are the same but for the names."""
    return (
        len(set(zip(one.tolist(), other.tolist(), strict=True))) == len(set(one.tolist())) == len(set(other.tolist()))
    )


def all_sure(prints: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.ones(len(prints), bool)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_few_prints_are_clustered_as_average_linkage_does(threshold: float) -> None:
    prints, _ = voices([9, 1, 13, 5], spread=0.8)
    tree = linkage(prints.astype(np.float64), "average", "cosine")
    expected = fcluster(tree, threshold, "distance")
    assert same(cluster(prints, all_sure(prints), SpeakerCount(1, 32, threshold)), expected)


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_a_number_of_speakers_is_kept(number: int) -> None:
    prints, _ = voices([40, 30, 20])
    tree = linkage(prints.astype(np.float64), "average", "cosine")
    expected = fcluster(tree, number, "maxclust")
    assert same(cluster(prints, all_sure(prints), SpeakerCount(number, number, 0.5)), expected)


def test_voices_in_several_blocks_are_joined_over_all_of_them() -> None:
    prints, who = voices([BLOCK_PRINTS, 300, 50])
    assert same(cluster(prints, all_sure(prints), ANY), who)


def test_memory_does_not_grow_with_the_square_of_the_prints() -> None:
    prints, _ = voices([3 * BLOCK_PRINTS])
    tracemalloc.start()
    try:
        cluster(prints, all_sure(prints), ANY)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(prints) ** 2 * 4


def test_there_are_never_more_clusters_than_may_speak_nor_fewer_than_must() -> None:
    prints, _ = voices([20, 20, 20, 20])
    assert len(set(cluster(prints, all_sure(prints), SpeakerCount(1, 3, 0.01)).tolist())) == 3
    assert len(set(cluster(prints, all_sure(prints), SpeakerCount(5, 32, 1.0)).tolist())) == 5


def test_more_speakers_than_prints_are_as_many_as_there_are_prints() -> None:
    prints, _ = voices([1, 1])
    assert sorted(cluster(prints, all_sure(prints), SpeakerCount(5, 5, 0.5)).tolist()) == [0, 1]


def test_a_print_that_is_not_sure_founds_no_cluster() -> None:
    prints, who = voices([20, 20, 1])
    found = cluster(prints, who != 2, ANY)
    assert same(found[who != 2], who[who != 2])
    assert set(found[who == 2].tolist()) <= set(found[who != 2].tolist())


def test_prints_that_are_all_unsure_are_clustered_nevertheless() -> None:
    prints, who = voices([5, 5])
    assert same(cluster(prints, np.zeros(10, bool), ANY), who)


# Windows and turns.


@pytest.mark.parametrize("seconds", [0.05, 0.3, 1.6, 1.605, 1.7, 1.85, 10.0, 61.3])
def test_windows_cover_a_stretch_to_the_frame(seconds: float) -> None:
    start, end = 1_000, 1_000 + round(seconds * 16_000)
    windows = windows_of(start, end)
    assert windows[0].start == start
    assert end - 160 < windows[-1].end <= end
    assert all(later.start <= earlier.end for earlier, later in pairwise(windows))
    assert all((window.start - start) % 160 == 0 for window in windows)
    assert len({window.end - window.start for window in windows}) == 1


def test_a_stretch_is_cut_halfway_between_windows_of_two_speakers() -> None:
    windows = [Window(0, 100), Window(50, 150), Window(100, 200), Window(150, 250)]
    parts = list(voiced_parts(Stretch(10, 240), windows, [3, 3, 0, 0]))
    assert parts == [Voiced(10, 125, 3), Voiced(125, 240, 0)]


def test_a_stretch_is_cut_in_the_longest_pause_that_is_near() -> None:
    second = 16_000
    windows = [Window(place * second, (place + 2) * second) for place in range(8)]
    pauses = ((second, 2 * second), (3 * second, 3 * second + 900), (4 * second, 4 * second + 1_000))
    parts = list(voiced_parts(Stretch(0, 9 * second, pauses), windows, [0, 0, 0, 1, 1, 1, 1, 1]))
    assert parts == [Voiced(0, 4 * second, 0), Voiced(4 * second + 1_000, 9 * second, 1)]


def test_two_changes_are_not_cut_in_one_pause() -> None:
    windows = [Window(0, 25_600), Window(4_000, 29_600), Window(8_000, 33_600)]
    parts = list(voiced_parts(Stretch(0, 33_600, ((16_000, 17_000),)), windows, [0, 1, 0]))
    assert parts == [Voiced(0, 16_000, 0), Voiced(17_000, 18_800, 1), Voiced(18_800, 33_600, 0)]


# Stretches.


def test_speech_is_grouped_over_short_pauses_and_begins_before_it_was_detected() -> None:
    spans = [(10_000, 20_000), (24_000, 30_000), (40_000, 44_000)]
    assert list(stretches_of(spans, 44_100)) == [
        Stretch(8_400, 30_000, ((20_000, 22_400),)),
        Stretch(38_400, 44_000),
    ]


def test_padded_stretches_do_not_overlap() -> None:
    first, second = stretches_of([(0, 10_000), (14_800, 20_000)], 20_000)
    assert first.end <= second.start
    (only,) = stretches_of([(0, 10_000), (12_000, 20_000)], 20_000)
    assert only.pauses == ((10_000, 11_000),)


def test_a_short_sound_is_no_speech() -> None:
    assert list(stretches_of([(1_000, 4_200)], 9_000)) == []
    assert [(it.start, it.end) for it in stretches_of([(1_000, 4_201)], 9_000)] == [(0, 4_201)]


def test_speakers_are_numbered_as_they_come_and_their_short_pauses_joined() -> None:
    parts = [Voiced(0, 4_000, 5), Voiced(19_900, 24_000, 5), Voiced(24_100, 28_000, 2), Voiced(44_000, 48_000, 2)]
    assert speaker_turns(parts) == (
        SpeakerTurn(0, 24_000, "SPEAKER_00"),
        SpeakerTurn(24_100, 28_000, "SPEAKER_01"),
        SpeakerTurn(44_000, 48_000, "SPEAKER_01"),
    )


def test_a_pause_with_another_speaker_in_it_is_not_joined() -> None:
    parts = [Voiced(0, 4_000, 5), Voiced(4_000, 8_000, 2), Voiced(8_000, 12_000, 5)]
    assert [turn.speaker_id for turn in speaker_turns(parts)] == ["SPEAKER_00", "SPEAKER_01", "SPEAKER_00"]


def test_what_is_too_short_for_speech_is_no_speaker() -> None:
    parts = [Voiced(0, 4_000, 5), Voiced(4_000, 7_200, 2), Voiced(7_200, 12_000, 7)]
    assert speaker_turns(parts) == (SpeakerTurn(0, 4_000, "SPEAKER_00"), SpeakerTurn(7_200, 12_000, "SPEAKER_01"))
