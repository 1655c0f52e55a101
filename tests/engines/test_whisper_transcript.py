"""A transcript keeps order, bounds and finite numbers, whatever the engine says."""

from dataclasses import dataclass, field

from antiphon_adapters.whisper.transcript import Transcript


@dataclass
class Heard:
    """A segment as faster-whisper gives it."""

    start: float
    end: float
    text: str
    words: list["HeardWord"] | None = None
    tokens: list[int] = field(default_factory=list)
    temperature: float | None = 0.0
    avg_logprob: float = -0.5
    compression_ratio: float = 1.0
    no_speech_prob: float = 0.1


@dataclass
class HeardWord:
    """A word as faster-whisper gives it."""

    start: float
    end: float
    word: str
    probability: float = 0.9


def test_the_joined_deltas_are_the_text() -> None:
    transcript = Transcript(16000)
    deltas = [transcript.add(Heard(0, 0.1, text), 0) for text in (" One, ", " two.", " ", "three")]
    assert deltas[0] == "One,"
    assert "".join(deltas) == transcript.result("en").text == "One,  two. three"


def test_spans_count_samples_from_the_passage() -> None:
    transcript = Transcript(64000)
    transcript.add(Heard(0.5, 1.0, " one", [HeardWord(0.5, 0.75, " one")]), 16000)
    result = transcript.result("en")
    assert (result.segments[0].start_sample, result.segments[0].end_sample) == (24000, 32000)
    assert (result.words[0].start_sample, result.words[0].end_sample) == (24000, 28000)
    assert (result.words[0].text, result.segments[0].text, result.sample_rate) == ("one", "one", 16000)


def test_spans_stay_in_the_recording() -> None:
    transcript = Transcript(16000)
    transcript.add(Heard(-1.0, 30.0, "one", [HeardWord(-1.0, 2.0, "one")]), 0)
    result = transcript.result("en")
    assert [(span.start_sample, span.end_sample) for span in (*result.segments, *result.words)] == [(0, 16000)] * 2


def test_spans_never_go_back() -> None:
    transcript = Transcript(16000)
    transcript.add(Heard(0.0, 0.5, "one", [HeardWord(0.0, 0.5, "one"), HeardWord(0.4, 0.3, "two")]), 0)
    transcript.add(Heard(0.25, 0.75, "three"), 0)
    result = transcript.result("en")
    assert [(word.start_sample, word.end_sample) for word in result.words] == [(0, 8000), (8000, 8000)]
    assert [(part.start_sample, part.end_sample) for part in result.segments] == [(0, 8000), (8000, 12000)]


def test_what_json_cannot_hold_is_left_out() -> None:
    transcript = Transcript(16000)
    transcript.add(Heard(0, 1, "one", avg_logprob=float("-inf"), no_speech_prob=float("nan"), temperature=None), 0)
    (segment,) = transcript.result("en").segments
    assert (segment.avg_logprob, segment.no_speech_prob, segment.temperature) == (None, None, None)
    assert segment.compression_ratio == 1.0


def test_a_word_without_signs_is_left_out() -> None:
    transcript = Transcript(16000)
    transcript.add(Heard(0, 1, "one", [HeardWord(0, 0.5, " "), HeardWord(0.5, 1, "one")]), 0)
    assert [word.text for word in transcript.result("en").words] == ["one"]


def test_nothing_heard_is_an_empty_text() -> None:
    result = Transcript(16000).result(None)
    assert (result.text, result.language, result.segments, result.words) == ("", None, (), ())
