"""Utterances begin and end as Silero's own rules have it, frame by frame, and are padded without overlapping."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from faster_whisper.vad import VadOptions, get_speech_timestamps, get_vad_model

from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.tasks import SpeechStarted, SpeechStopped
from antiphon_adapters.silero.endpointing import FRAME_SAMPLES, Endpointer, Pauses
from antiphon_adapters.silero.network import SpeechDetector

Edges = list[SpeechStarted | SpeechStopped]

PAUSES = Pauses(shortest_speech=3 * FRAME_SAMPLES, silence=5 * FRAME_SAMPLES)
SPEECH, BETWEEN, NOTHING = 0.9, 0.4, 0.1


def edges(*stretches: tuple[float, int], end: int | None = None, pauses: Pauses = PAUSES) -> Edges:
    """What is told over stretches of so many frames of one probability each, and at the end if there is one."""
    endpointer = Endpointer(pauses)
    probabilities = [probability for probability, frames in stretches for _ in range(frames)]
    told = [edge for probability in probabilities if (edge := endpointer.hear(probability))]
    return told if end is None else [*told, *endpointer.finish(end)]


def at(*frames: int) -> Edges:
    """Starts and stops in turn, in frames."""
    kinds = (SpeechStarted, SpeechStopped)
    return [kinds[place % 2](frame * FRAME_SAMPLES) for place, frame in enumerate(frames)]


def test_silence_has_no_edges() -> None:
    assert edges((NOTHING, 50), (BETWEEN, 50), end=51200) == []


def test_an_utterance_is_from_its_first_frame_to_its_first_silent_one() -> None:
    assert edges((NOTHING, 4), (SPEECH, 10), (NOTHING, 6)) == at(4, 14)


def test_a_start_is_told_when_it_is_longer_than_a_blip() -> None:
    assert edges((SPEECH, 3)) == []
    assert edges((SPEECH, 4)) == at(0)


def test_a_blip_is_not_told() -> None:
    assert edges((SPEECH, 3), (NOTHING, 20), end=23 * FRAME_SAMPLES) == []


def test_a_stop_is_told_after_the_silence() -> None:
    assert edges((SPEECH, 10), (NOTHING, 5)) == at(0)
    assert edges((SPEECH, 10), (NOTHING, 6)) == at(0, 10)


def test_a_short_pause_is_part_of_the_utterance() -> None:
    assert edges((SPEECH, 10), (NOTHING, 4), (SPEECH, 5), (NOTHING, 6)) == at(0, 19)


def test_a_frame_in_doubt_goes_on_with_what_was_before() -> None:
    assert edges((SPEECH, 4), (BETWEEN, 20)) == at(0)
    assert edges((SPEECH, 4), (NOTHING, 1), (BETWEEN, 5)) == at(0, 4)


def test_the_end_of_the_audio_ends_the_utterance() -> None:
    assert edges((SPEECH, 10), end=5000) == [SpeechStarted(0), SpeechStopped(5000)]
    assert edges((SPEECH, 8), (NOTHING, 2), end=5120) == at(0, 8)


def test_an_utterance_may_begin_and_end_at_the_end_of_the_audio() -> None:
    assert edges((NOTHING, 2), (SPEECH, 3), end=2500) == []
    assert edges((NOTHING, 2), (SPEECH, 4), (NOTHING, 1), end=7 * FRAME_SAMPLES) == at(2, 6)


def test_it_tells_of_a_pause_and_of_a_beginning() -> None:
    endpointer = Endpointer(PAUSES)
    endpointer.hear(SPEECH)
    assert (endpointer.started, endpointer.pause) == (0, 0)
    for probability in (SPEECH, SPEECH, SPEECH, NOTHING, NOTHING):
        endpointer.hear(probability)
    assert (endpointer.speaking, endpointer.pause) == (True, 2 * FRAME_SAMPLES)


def test_it_tells_nothing_of_an_utterance_that_is_over() -> None:
    endpointer = Endpointer(PAUSES)
    for probability in (*[SPEECH] * 4, *[NOTHING] * 6):
        endpointer.hear(probability)
    assert (endpointer.speaking, endpointer.started, endpointer.pause) == (False, None, 0)


def test_a_short_sound_before_the_end_is_none_however_long_the_pause_after_it() -> None:
    assert edges((SPEECH, 3), (NOTHING, 4), end=7 * FRAME_SAMPLES) == []


def test_padding_widens_an_utterance_inside_the_audio() -> None:
    padded = replace(PAUSES, padding=2 * FRAME_SAMPLES)
    assert edges((NOTHING, 4), (SPEECH, 4), (NOTHING, 6), pauses=padded) == at(2, 10)
    assert edges((SPEECH, 4), end=4 * FRAME_SAMPLES, pauses=padded) == at(0, 4)


def test_padded_utterances_do_not_overlap() -> None:
    padded = replace(PAUSES, padding=4 * FRAME_SAMPLES)
    told = edges((SPEECH, 4), (NOTHING, 6), (SPEECH, 4), (NOTHING, 6), end=20 * FRAME_SAMPLES, pauses=padded)
    assert told == at(0, 8, 8, 18)


def test_a_higher_threshold_asks_for_surer_speech() -> None:
    pauses = replace(PAUSES, threshold=0.95)
    assert edges((SPEECH, 4), (0.96, 4), (NOTHING, 6), pauses=pauses) == at(4, 8)


@pytest.mark.parametrize(("threshold", "release"), [(0.5, 0.35), (0.05, 0.01)])
def test_the_release_lies_below_the_threshold(threshold: float, release: float) -> None:
    assert Pauses(0, 0, threshold=threshold).release == pytest.approx(release)


@pytest.mark.engine
def test_speech_is_found_where_the_whole_recording_s_detector_finds_it(
    spoken: Callable[[str], Pcm], sixteen_sentences: Sequence[str]
) -> None:
    gaps = (0.3, 0.55, 0.7, 2.5)
    parts = [
        part
        for number, sentence in enumerate(sixteen_sentences[:6])
        for part in (np.asarray(spoken(sentence).samples), np.zeros(round(gaps[number % 4] * 16000), np.float32))
    ]
    audio = np.concatenate(parts)
    rules = VadOptions(min_speech_duration_ms=100, min_silence_duration_ms=600, speech_pad_ms=0)
    expected = [(part["start"], part["end"]) for part in get_speech_timestamps(audio, rules)]
    assert len(expected) > 2
    assert _spans(audio, Endpointer(Pauses(shortest_speech=1600, silence=9600))) == expected


def _spans(audio: np.ndarray[tuple[int], np.dtype[np.float32]], endpointer: Endpointer) -> list[tuple[int, int]]:
    detector = SpeechDetector(get_vad_model().session)
    padded = np.pad(audio, (0, -len(audio) % FRAME_SAMPLES)).reshape(-1, FRAME_SAMPLES)
    told: Iterable[SpeechStarted | SpeechStopped | None] = [endpointer.hear(detector.probability(f)) for f in padded]
    found = [edge.at_sample for edge in (*told, *endpointer.finish(len(audio))) if edge]
    return list(zip(found[::2], found[1::2], strict=True))
