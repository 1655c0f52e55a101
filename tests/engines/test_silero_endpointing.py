"""Utterances are cut by Silero's rules, frame by frame, and padded without overlapping."""

from collections.abc import Sequence

import pytest

from antiphon.vocabulary.tasks import SpeechStarted, SpeechStopped
from antiphon_adapters.silero.endpointing import FRAME_SAMPLES as FRAME
from antiphon_adapters.silero.endpointing import Endpointer, Pauses


def edges(probabilities: Sequence[float], **rules: float) -> list[int]:
    """Where speech starts and stops, in frames; a negative number is a stop."""
    pauses = {"shortest_speech": 0, "silence": 2 * FRAME, **rules}
    endpointer = Endpointer(Pauses(**pauses))  # type: ignore[arg-type]  # a threshold among the lengths
    found = [endpointer.hear(it) for it in probabilities]
    found += endpointer.finish(len(probabilities) * FRAME)
    return [it.at_sample // FRAME * (1 if isinstance(it, SpeechStarted) else -1) for it in found if it is not None]


def test_speech_stops_where_the_pause_began() -> None:
    assert edges([0, 0.9, 0.9, 0.1, 0, 0, 0]) == [1, -3]


def test_a_short_pause_is_part_of_the_utterance() -> None:
    assert edges([0.9, 0, 0.9, 0, 0, 0]) == [0, -3]


def test_a_frame_between_release_and_threshold_neither_begins_nor_ends_speech() -> None:
    assert edges([0.4, 0.9, 0.4, 0.4, 0.4, 0.4]) == [1, -6]


def test_a_sound_up_to_the_shortest_speech_is_none() -> None:
    assert edges([0.9, 0.9, 0, 0, 0], shortest_speech=2 * FRAME) == []
    assert edges([0.9, 0.9, 0.9, 0, 0, 0], shortest_speech=2 * FRAME) == [0, -3]


def test_a_short_sound_before_the_end_is_none_however_long_the_pause_after_it() -> None:
    assert edges([0.9, 0.9, 0], shortest_speech=2 * FRAME, silence=9 * FRAME) == []


def test_speech_goes_on_to_the_end_of_the_audio() -> None:
    assert edges([0, 0.9, 0.9]) == [1, -3]


def test_padding_widens_an_utterance_inside_the_audio() -> None:
    quiet = [0.0] * 4
    assert edges([*quiet, 0.9, *quiet], padding=2 * FRAME) == [2, -7]
    assert edges([0.9], padding=2 * FRAME) == [0, -1]


def test_padded_utterances_do_not_overlap() -> None:
    assert edges([0.9, 0, 0, 0, 0.9, 0, 0, 0], padding=3 * FRAME) == [0, -3, 3, -7]


def test_a_higher_threshold_asks_for_surer_speech() -> None:
    assert edges([0.6, 0.6, 0.95, 0, 0, 0], threshold=0.9) == [2, -3]


def test_a_start_is_told_as_soon_as_the_sound_is_long_enough() -> None:
    endpointer = Endpointer(Pauses(shortest_speech=FRAME, silence=FRAME))
    assert [endpointer.hear(0.9), endpointer.hear(0.9), endpointer.hear(0.9)] == [None, SpeechStarted(0), None]
    assert endpointer.speaking
    assert [endpointer.hear(0), endpointer.hear(0)] == [None, SpeechStopped(3 * FRAME)]
    assert (endpointer.speaking, endpointer.started, endpointer.pause) == (False, None, 0)


@pytest.mark.parametrize(("threshold", "release"), [(0.5, 0.35), (0.05, 0.01)])
def test_the_release_lies_below_the_threshold(threshold: float, release: float) -> None:
    assert Pauses(0, 0, threshold=threshold).release == pytest.approx(release)
