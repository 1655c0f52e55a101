"""Live audio is decoded at moments that the audio alone decides, over an engine that hears numbers.

A word is 0.4 s of a constant level and 0.1 s of breath, and the level is the word: 0.001 is "1". Zeros are silence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import InvalidRequest, RequestTimeout
from antiphon.vocabulary.tasks import (
    Cancellation,
    Final,
    SpeechStarted,
    SpeechStopped,
    StreamEvent,
    TaskResult,
    TextDelta,
)
from antiphon_adapters.whisper.decoding import Heard
from antiphon_adapters.whisper.listening import SAMPLE_RATE, Passage
from antiphon_adapters.whisper.live import LONGEST_SAMPLES, PAD_SAMPLES, LiveTranscription, Pace

WORD = SAMPLE_RATE // 2
BREATH = SAMPLE_RATE // 10
SILENCE = 600 * SAMPLE_RATE // 1000

Samples = NDArray[np.float32]


@dataclass(frozen=True)
class NumberWord:
    start: float
    end: float
    word: str
    probability: float = 1.0


@dataclass(frozen=True)
class NumberSegment:
    text: str
    start: float
    end: float
    words: Sequence[NumberWord]
    tokens: list[int] = field(default_factory=list)
    temperature: float | None = 0.0
    avg_logprob: float = 0.0
    compression_ratio: float = 1.0
    no_speech_prob: float = 0.0


@dataclass
class NumberDecoder:
    """Hears a number for each run of one level; one that is not over half a word is heard as another."""

    passages: list[Passage] = field(default_factory=list)
    compression_ratio: float = 1.0

    def whole(self, passage: Passage, language: str | None) -> Heard:
        self.passages.append(passage)
        words = [NumberWord(start, end, f" {number}") for number, start, end in _runs(passage.speech)]
        text = "".join(word.word for word in words)
        end = len(passage.speech) / SAMPLE_RATE
        return [NumberSegment(text, 0.0, end, words, compression_ratio=self.compression_ratio)], language or "xx"

    glimpse = whole


def _runs(speech: Samples) -> Iterator[tuple[int, float, float]]:
    numbers = np.round(speech * 1000).astype(int)
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for start, end in pairwise(edges):
        if number := int(numbers[start]):
            yield number if end - start > WORD // 2 else 999, start / SAMPLE_RATE, end / SAMPLE_RATE


def sound(*words: int, silent_s: float = 0.0) -> Samples:
    levels = np.repeat(np.array(words, np.float32) / 1000, WORD)
    levels.reshape(-1, WORD)[:, -BREATH:] = 1e-6
    return np.concatenate([levels, np.zeros(round(silent_s * SAMPLE_RATE), np.float32)])


def chunked(samples: Samples, length: int = 1600) -> Iterator[AudioChunk]:
    for offset in range(0, len(samples), length):
        yield AudioChunk(Pcm.from_bytes(samples[offset : offset + length].tobytes(), SAMPLE_RATE), offset)


def live(decoder: NumberDecoder, cancellation: Cancellation | None = None) -> LiveTranscription:
    def speech(frame: Samples) -> float:
        return float(frame.any())

    pace = Pace(step=WORD, silence=SILENCE)
    return LiveTranscription(
        decoder, speech, pace, None, cancellation.__bool__ if cancellation is not None else lambda: False
    )


def heard(samples: Samples, length: int = 1600, decoder: NumberDecoder | None = None) -> list[StreamEvent]:
    return list(live(decoder or NumberDecoder()).events(chunked(samples, length)))


def texts(events: Sequence[StreamEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


def result(events: Sequence[StreamEvent]) -> TaskResult:
    assert isinstance(events[-1], Final)
    return events[-1].result


def test_words_come_while_the_speaker_goes_on() -> None:
    samples = sound(*range(1, 9), silent_s=2)
    taken = 0

    def counted() -> Iterator[AudioChunk]:
        nonlocal taken
        for chunk in chunked(samples):
            taken = chunk.offset + chunk.pcm.frames
            yield chunk

    first = next(event for event in live(NumberDecoder()).events(counted()) if isinstance(event, TextDelta))
    assert first.text.startswith("1")
    assert taken <= 4 * WORD


def test_an_utterance_is_told_from_start_to_stop_with_its_text_between() -> None:
    silence = sound(silent_s=1)
    events = heard(np.concatenate([silence, sound(1, 2, 3, silent_s=1)]))
    started, *deltas, stopped, final = events
    assert isinstance(started, SpeechStarted)
    assert isinstance(stopped, SpeechStopped)
    assert abs(started.at_sample - SAMPLE_RATE) < 512
    assert abs(stopped.at_sample - SAMPLE_RATE - 3 * WORD) < 512
    assert "".join(texts(deltas)) == "1 2 3"
    assert isinstance(final, Final)


def test_utterances_follow_each_other() -> None:
    events = heard(np.concatenate([sound(1, 2, silent_s=1), sound(3, 4, silent_s=3), sound(5)]))
    kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
    assert kinds == [SpeechStarted, SpeechStopped] * 3 + [Final]
    assert result(events).text == "".join(texts(events)) == "1 2 3 4 5"


@pytest.mark.parametrize("length", [1, 7, 511, 512, 513, 5000, 10**6])
def test_the_edges_of_chunks_change_nothing(length: int) -> None:  # LIV-01
    samples = np.concatenate([sound(1, 2, 3, silent_s=0.9), sound(4, 5, 6, 7)])[:-123]
    assert heard(samples, length) == heard(samples)


def test_what_comes_at_last_is_decoded_whole() -> None:
    decoder = NumberDecoder()
    samples = np.concatenate([sound(silent_s=1), sound(1, 2, 3, silent_s=1)])
    heard(samples, decoder=decoder)
    whole = decoder.passages[-1]
    assert abs(whole.offset - (SAMPLE_RATE - PAD_SAMPLES)) < 512
    assert abs(len(whole.speech) - (3 * WORD + 2 * PAD_SAMPLES)) < 2 * 512


def test_words_and_segments_lie_where_they_were_spoken() -> None:
    events = heard(np.concatenate([sound(1, silent_s=2), sound(2, silent_s=1)]))
    first, second = result(events).words
    assert (first.start_sample, first.end_sample) == (0, WORD - BREATH)
    late = WORD + 2 * SAMPLE_RATE
    assert (second.start_sample, second.end_sample) == (late, late + WORD - BREATH)
    assert [segment.text for segment in result(events).segments] == ["1", "2"]


def test_a_delta_tells_how_far_the_audio_is_written_down() -> None:
    events = heard(sound(*range(1, 9), silent_s=1))
    ends = [event.until_sample for event in events if isinstance(event, TextDelta)]
    assert ends[0] == WORD * len(texts(events)[0].split()) - BREATH
    assert ends == sorted(ends, key=lambda end: end or 0)


def test_speech_without_a_pause_is_cut_before_the_window_is_full() -> None:
    decoder = NumberDecoder()
    numbers = range(1, 141)
    events = heard(sound(*numbers, silent_s=1), decoder=decoder)
    assert result(events).text == " ".join(map(str, numbers))
    assert max(len(passage.speech) for passage in decoder.passages) <= LONGEST_SAMPLES + SAMPLE_RATE
    assert [type(event) for event in events if not isinstance(event, TextDelta)] == [
        SpeechStarted,
        SpeechStopped,
        Final,
    ]


def test_long_speech_is_cut_in_a_short_pause() -> None:
    decoder = NumberDecoder()
    events = heard(np.concatenate([sound(*range(1, 36), silent_s=0.3), sound(*range(36, 50))]), decoder=decoder)
    assert result(events).text == " ".join(map(str, range(1, 50)))
    assert len(result(events).segments) == 2
    assert 0 <= result(events).segments[1].start_sample - 35 * WORD < 0.3 * SAMPLE_RATE


def test_nothing_is_decoded_where_nobody_speaks() -> None:
    decoder = NumberDecoder()
    assert heard(sound(silent_s=20), decoder=decoder) == [Final(TaskResult(text="", sample_rate=SAMPLE_RATE))]
    assert heard(sound(1)[:1600], decoder=decoder)[-1] == Final(TaskResult(text="", sample_rate=SAMPLE_RATE))
    assert decoder.passages == []


def test_no_audio_at_all_is_an_empty_text() -> None:
    assert heard(sound()) == [Final(TaskResult(text="", sample_rate=SAMPLE_RATE))]


def test_guesses_that_go_round_in_circles_are_not_believed() -> None:
    events = heard(sound(*range(1, 9), silent_s=1), decoder=NumberDecoder(compression_ratio=3.0))
    assert texts(events) == ["1 2 3 4 5 6 7 8"]


def test_the_language_of_the_first_words_is_kept() -> None:
    assert result(heard(sound(1, 2, silent_s=1))).language == "xx"


def test_a_source_that_fails_is_passed_on() -> None:
    def broken() -> Iterator[AudioChunk]:
        yield from chunked(sound(1, 2, 3))
        raise RequestTimeout("nothing came")

    events = live(NumberDecoder()).events(broken())
    with pytest.raises(RequestTimeout):
        list(events)


def test_a_client_that_left_gets_the_end_at_once() -> None:
    cancellation = Cancellation()
    events = live(NumberDecoder(), cancellation).events(chunked(sound(*range(1, 20))))
    assert isinstance(next(events), SpeechStarted)
    cancellation.cancel()
    assert [type(event) for event in events] == [Final]


@pytest.mark.parametrize(("rate", "channels"), [(8000, 1), (SAMPLE_RATE, 2)])
def test_audio_of_another_shape_is_refused(rate: int, channels: int) -> None:
    chunk = AudioChunk(Pcm.from_bytes(bytes(800), rate, channels), 0)
    with pytest.raises(InvalidRequest):
        list(live(NumberDecoder()).events(iter([chunk])))


def test_samples_that_are_no_numbers_are_silence() -> None:
    samples = sound(1, 2, silent_s=1)
    broken = samples.copy()
    broken[2 * WORD + 100 : 2 * WORD + 200] = np.nan
    assert heard(broken) == heard(samples)
