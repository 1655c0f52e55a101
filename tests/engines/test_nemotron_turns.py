"""Probabilities that come bit by bit become the turns that all of them at once become, each told once it is certain."""

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.vocabulary.tasks import SpeakerTurn
from antiphon_adapters.nemotron_diar.profile import NEMOTRON_3, SORTFORMER, TurnRules
from antiphon_adapters.nemotron_diar.turns import TurnFinder
from tiny_diarizer_reference import NEMOTRON_RULES, SORTFORMER_RULES, Rules, turns

RATE = 16000
BOTH = pytest.mark.parametrize(
    ("rules", "slow"), [(SORTFORMER.rules, SORTFORMER_RULES), (NEMOTRON_3.rules, NEMOTRON_RULES)], ids=["v2", "n3"]
)


def finder(rules: TurnRules, frame: int, speakers: int = 1) -> TurnFinder:
    return TurnFinder(rules, speakers, frame, RATE)


def walk(frames: int, speakers: int, seed: int) -> NDArray[np.float32]:
    """Probabilities that wander between sure and not at all, with flickers."""
    random = np.random.Generator(np.random.PCG64(seed))
    steps = np.cumsum(random.standard_normal((frames, speakers)) * 0.6, axis=0)
    return (1 / (1 + np.exp(-2 * np.sin(steps) * 2 - random.standard_normal((frames, speakers))))).astype(np.float32)


def plain(found: list[SpeakerTurn]) -> list[tuple[int, int, int]]:
    return sorted(
        ((turn.start_sample, turn.end_sample, int(turn.speaker_id.removeprefix("SPEAKER_"))) for turn in found),
        key=lambda turn: (turn[0], turn[2]),
    )


@BOTH
@pytest.mark.parametrize("seed", range(12))
def test_turns_are_those_of_the_reference_however_the_probabilities_come(
    rules: TurnRules, slow: Rules, seed: int
) -> None:
    odds = walk(int(np.random.Generator(np.random.PCG64(seed)).integers(1, 400)), 3, seed)
    end = len(odds) * slow.frame - slow.frame // 3
    random = np.random.Generator(np.random.PCG64(seed + 100))
    cuts = np.sort(random.integers(0, len(odds), 9))

    turns_found = finder(rules, slow.frame, 3)
    found = [turn for piece in np.split(odds, cuts) for turn in turns_found.feed(piece)]
    found += turns_found.finish(end)

    assert plain(found) == turns(odds.tolist(), slow, end)


@BOTH
def test_what_is_told_early_is_what_is_told_in_the_end(rules: TurnRules, slow: Rules) -> None:
    odds = walk(600, 4, 42)
    whole = turns(odds.tolist(), slow, len(odds) * slow.frame)
    by_frame = finder(rules, slow.frame, 4)
    early: list[tuple[int, int, int]] = []
    for number, row in enumerate(odds):
        told = plain(by_frame.feed(row[None]))
        assert all(end <= (number + 1) * slow.frame for _, end, _ in told)
        early += told
    assert set(early) <= set(whole)
    assert len(whole) - len(early) <= 8


def frames(*parts: tuple[int, float]) -> NDArray[np.float32]:
    """One speaker's probabilities: so many frames at so much."""
    return np.concatenate([np.full((count, 1), odds, np.float32) for count, odds in parts])


def test_a_flicker_is_no_turn_and_a_short_pause_is_none() -> None:
    unsmoothed = TurnRules(0.641, 0.561, 0.229, 0.079, 0.511, 0.296)
    odds = frames((10, 0.0), (2, 0.9), (10, 0.0), (10, 0.9), (7, 0.0), (10, 0.9), (20, 0.0))
    found = finder(unsmoothed, 1280)
    told = plain(found.feed(odds))
    # 2 frames and the padding are 0.468 s; the pause of 7 frames without the padding is 0.252 s.
    assert told == [(22 * 1280 - 3664, 49 * 1280 + 1264, 0)]
    assert found.finish(len(odds) * 1280) == []


def test_a_turn_begins_above_one_threshold_and_ends_below_another() -> None:
    unsmoothed = TurnRules(0.641, 0.561)
    odds = frames((4, 0.6), (4, 0.7), (4, 0.6), (4, 0.5), (4, 0.6))
    assert plain(finder(unsmoothed, 1280).feed(odds)) == [(4 * 1280, 12 * 1280, 0)]


def test_the_median_mends_what_is_shorter_than_half_of_it() -> None:
    smoothed = TurnRules(0.641, 0.561, median=11)
    odds = frames((20, 0.0), (20, 0.9), (4, 0.0), (20, 0.9), (20, 0.0), (4, 0.9), (20, 0.0))
    found = finder(smoothed, 1280)
    assert plain(found.feed(odds) + found.finish(len(odds) * 1280)) == [(20 * 1280, 64 * 1280, 0)]


def test_a_turn_ends_with_the_audio() -> None:
    found = finder(SORTFORMER.rules, 1280)
    assert found.feed(frames((20, 0.9))) == []
    assert plain(found.finish(20 * 1280 - 500)) == [(0, 20 * 1280 - 500, 0)]


def test_two_speakers_at_once_have_a_turn_each() -> None:
    odds = np.concatenate([frames((5, 0.0), (20, 0.9), (5, 0.0)), frames((10, 0.0), (5, 0.9), (15, 0.0))], axis=1)
    found = finder(NEMOTRON_3.rules, 160, 2).feed(odds)
    assert [(turn.start_sample, turn.end_sample, turn.speaker_id) for turn in found] == [
        (5 * 160, 25 * 160, "SPEAKER_00"),
        (10 * 160, 15 * 160, "SPEAKER_01"),
    ]
