"""The installed models transcribe speech that Piper made, the same on every slot, and invent nothing."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import jiwer
import numpy as np
import pytest

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.tasks import Cancellation, Final, OptionValue, TaskRequest, TaskResult, TextDelta
from antiphon_adapters.whisper import listening
from antiphon_adapters.whisper.adapter import LoadedWhisper
from antiphon_adapters.whisper.session import WhisperSession

pytestmark = pytest.mark.engine

RATE = 16000
Spoken = Callable[[str], Pcm]
FourAnswers = Callable[[LoadedModel, Sequence[TaskRequest]], list[TaskResult]]

PLAIN = jiwer.Compose([jiwer.ToLowerCase(), jiwer.RemovePunctuation(), jiwer.RemoveMultipleSpaces(), jiwer.Strip()])


def hear(session: WhisperSession, audio: Pcm, text: str | None = None, **options: OptionValue) -> TaskResult:
    request = TaskRequest(audio=audio, text=text, options=options)
    session.prepare(request)
    return session.run(request)


def joined(*clips: Pcm, gap_s: float = 0.0) -> Pcm:
    gap = bytes(4 * round(gap_s * RATE))
    return Pcm.from_bytes(gap.join(clip.samples.tobytes() for clip in clips), RATE)


def silence(seconds: float) -> Pcm:
    return Pcm.from_bytes(bytes(4 * round(seconds * RATE)), RATE)


class EngineCalls:
    """CTranslate2's model with its calls counted, and told: a window of 30 s is generated in one."""

    def __init__(self, engine: Any, called: Callable[[], None] = lambda: None) -> None:  # CTranslate2 is not typed
        self._engine = engine
        self._called = called
        self.windows = 0

    def generate(self, *args: object, **options: object) -> object:
        self.windows += 1
        self._called()
        return self._engine.generate(*args, **options)

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


@pytest.fixture(scope="module")
def sixteen_clips(spoken: Spoken, sixteen_sentences: Sequence[str]) -> list[TaskRequest]:
    return [TaskRequest(audio=spoken(sentence), options={"word_timestamps": True}) for sentence in sixteen_sentences]


@pytest.fixture(scope="module")
def heard_serially(whisper_model: LoadedModel, sixteen_clips: Sequence[TaskRequest]) -> list[TaskResult]:
    session = whisper_model.open_session()
    assert isinstance(session, WhisperSession)
    return [session.run(request) for request in sixteen_clips]


# What is heard.


def test_sixteen_sentences_come_back_as_they_were_spoken(
    heard_serially: Sequence[TaskResult], sixteen_sentences: Sequence[str]
) -> None:
    texts = [PLAIN(result.text or "") for result in heard_serially]
    assert jiwer.wer([PLAIN(sentence) for sentence in sixteen_sentences], texts) <= 0.06


@pytest.mark.parametrize("gap_s", [10, 40])
def test_both_ends_of_a_recording_with_a_long_pause_are_heard(  # AUD-14
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str], gap_s: int
) -> None:
    clips = [spoken(sentence) for sentence in sentences[:2]]
    result = hear(whisper, joined(*clips, gap_s=gap_s), word_timestamps=True)
    assert PLAIN(result.text or "") == PLAIN(" ".join(sentences[:2]))
    late = clips[0].frames + gap_s * RATE
    second = next(word for word in result.words if word.text == "We")
    assert abs(second.start_sample - late) < RATE // 2


def test_words_lie_in_order_inside_the_recording(
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    clip = spoken(sentences[0])
    result = hear(whisper, clip, word_timestamps=True)
    assert PLAIN(" ".join(word.text for word in result.words)) == PLAIN(result.text or "")
    edges = [edge for word in result.words for edge in (word.start_sample, word.end_sample)]
    assert edges == sorted(edges)
    assert edges[-1] <= clip.frames
    assert all(word.confidence is not None and 0 <= word.confidence <= 1 for word in result.words)


def test_words_are_told_only_when_they_are_asked_for(whisper: WhisperSession, spoken: Spoken) -> None:
    result = hear(whisper, spoken("Put the letters on the table by the door."))
    assert result.words == ()
    assert len(result.segments) == 1


def test_a_result_is_plain_numbers(whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]) -> None:
    result = hear(whisper, spoken(sentences[1]), word_timestamps=True)
    text = json.dumps([asdict(part) for part in (*result.segments, *result.words)], allow_nan=False)
    assert json.loads(text)[0]["temperature"] == 0.0
    assert all(type(part.start_sample) is int for part in (*result.segments, *result.words))


def test_a_prompt_reaches_the_model_as_plain_text(
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    clip = spoken(sentences[1])
    plain, guided = hear(whisper, clip), hear(whisper, clip, "We walked <|endoftext|> along the river.")
    assert guided.text == plain.text
    assert guided.segments != plain.segments


# Silence and scraps.


@pytest.mark.parametrize("options", [{}, {"word_timestamps": True}])
def test_silence_says_nothing_in_no_language(multilingual: WhisperSession, options: dict[str, OptionValue]) -> None:
    result = hear(multilingual, silence(6), **options)  # AUD-13
    assert (result.text, result.language, result.segments, result.words) == ("", None, (), ())


def test_noise_says_nothing(whisper: WhisperSession) -> None:  # AUD-13
    noise = np.random.Generator(np.random.PCG64(2)).standard_normal(6 * RATE) * 0.05
    result = hear(whisper, Pcm.from_bytes(noise.astype(np.float32).tobytes(), RATE))
    assert (result.text, result.language, result.segments) == ("", "en", ())


@pytest.mark.parametrize("vad_filter", [True, False])
@pytest.mark.parametrize("frames", [1, 16, 160, 800, 1584])
def test_a_scrap_says_nothing(
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str], frames: int, vad_filter: bool
) -> None:
    scrap = Pcm(spoken(sentences[0]).samples[RATE : RATE + frames], RATE)  # AUD-12
    result = hear(whisper, scrap, word_timestamps=True, vad_filter=vad_filter)
    assert (result.text, result.segments, result.words) == ("", (), ())


@pytest.mark.parametrize("frames", [1600, 1601, 1760, 1920])
def test_the_shortest_clips_that_are_listened_to_raise_nothing(
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str], frames: int
) -> None:
    scrap = Pcm(spoken(sentences[0]).samples[RATE : RATE + frames], RATE)
    result = hear(whisper, scrap, word_timestamps=True, vad_filter=False)
    assert all(segment.end_sample <= frames for segment in result.segments)


# Sameness.


def test_sixteen_clips_on_four_slots_are_heard_as_they_are_serially(
    heard_serially: Sequence[TaskResult],
    whisper_model: LoadedModel,
    sixteen_clips: Sequence[TaskRequest],
    answers_of_four: FourAnswers,
) -> None:
    assert len({result.text for result in heard_serially}) == 16
    assert answers_of_four(whisper_model, sixteen_clips) == heard_serially


# Language.


def test_the_language_is_found(multilingual: WhisperSession, spoken: Spoken, sentences: Sequence[str]) -> None:
    result = hear(multilingual, spoken(sentences[1]))
    assert result.language == "en"
    assert jiwer.wer(PLAIN(sentences[1]), PLAIN(result.text or "")) <= 0.25


def test_a_named_language_is_kept(multilingual: WhisperSession, spoken: Spoken, sentences: Sequence[str]) -> None:
    result = multilingual.run(TaskRequest(audio=spoken(sentences[1]), language="de"))
    assert result.language == "de"


@pytest.mark.parametrize("language", ["xx", "English", "en-US", ""])
def test_an_unknown_language_is_refused(multilingual: WhisperSession, language: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        multilingual.prepare(TaskRequest(audio=silence(1), language=language))
    assert refusal.value.param == "language"


def test_an_english_model_refuses_other_languages(whisper: WhisperSession) -> None:
    with pytest.raises(InvalidRequest, match=r"language must be one of en$"):
        whisper.prepare(TaskRequest(audio=silence(1), language="de"))


# Refusals.


@pytest.mark.parametrize(
    "request_",
    [
        TaskRequest(),
        TaskRequest(audio=Pcm.from_bytes(bytes(400), 8000)),
        TaskRequest(audio=Pcm.from_bytes(bytes(400), RATE, 2)),
        TaskRequest(audio=silence(1), text="a\ud800b"),
        TaskRequest(audio=silence(1), options={"temperature": 1.5}),
        TaskRequest(audio=silence(1), options={"beam_size": 0}),
    ],
)
def test_a_bad_request_is_refused(whisper: WhisperSession, request_: TaskRequest) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        whisper.prepare(request_)
    assert refusal.value.param is not None


# Streams.


def test_a_stream_joins_to_what_an_offline_call_answers(
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    clips = [spoken(sentence) for sentence in sentences]
    request = TaskRequest(audio=joined(*clips, gap_s=1.0))
    *deltas, final = whisper.stream(request, None)
    assert len(deltas) > 1
    assert isinstance(final, Final)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == final.result.text
    assert final.result == whisper.run(request)


def test_the_first_words_of_a_long_recording_come_before_the_rest_is_decoded(
    whisper: WhisperSession,
    whisper_model: LoadedModel,
    spoken: Spoken,
    sixteen_sentences: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(whisper_model, LoadedWhisper)
    assert whisper_model.weights is not None
    engine = EngineCalls(whisper_model.weights.model.model)
    monkeypatch.setattr(whisper_model.weights.model, "model", engine)
    audio = joined(*map(spoken, [*sixteen_sentences, *sixteen_sentences[:8]]), gap_s=0.8)
    assert audio.frames > 70 * RATE
    events = whisper.stream(TaskRequest(audio=audio), None)
    first = next(events)
    assert isinstance(first, TextDelta)
    assert first.text
    assert engine.windows == 1
    *_, final = events
    assert engine.windows >= 3
    assert isinstance(final, Final)


def test_a_cancelled_transcription_ends_at_the_next_segment(
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    cancellation = Cancellation()
    clips = [spoken(sentence) for sentence in sentences]
    events = whisper.stream(TaskRequest(audio=joined(*clips, gap_s=1.0), cancellation=cancellation), None)
    next(events)
    cancellation.cancel()
    assert [type(event) for event in events] == [Final]


# Long recordings.


def test_words_at_cuts_are_neither_lost_nor_doubled(
    whisper: WhisperSession, spoken: Spoken, sixteen_sentences: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # AUD-14
    monkeypatch.setattr(listening, "STRETCH_SAMPLES", 25 * RATE)
    monkeypatch.setattr(listening, "SEARCH_SAMPLES", 10 * RATE)
    audio = joined(*map(spoken, texts := [*sixteen_sentences] * 2))
    assert audio.frames > 70 * RATE
    result = hear(whisper, audio, word_timestamps=True)
    assert jiwer.wer(PLAIN(" ".join(texts)), PLAIN(result.text or "")) <= 0.05
    for parts in (result.segments, result.words):
        edges = [edge for part in parts for edge in (part.start_sample, part.end_sample)]
        assert edges == sorted(edges)
        assert edges[-1] <= audio.frames


def test_silence_is_told_as_progress_without_text(
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    audio = joined(silence(300), spoken(sentences[0]))
    *deltas, final = whisper.stream(TaskRequest(audio=audio), None)
    assert isinstance(final, Final)
    told = [(delta.text, delta.until_sample or 0) for delta in deltas if isinstance(delta, TextDelta)]
    assert len(told) >= 3
    assert [text for text, _ in told[:-1]] == [""] * (len(told) - 1)
    assert told[-1][0] == final.result.text
    assert [until for _, until in told] == sorted(until for _, until in told)


def test_a_client_that_leaves_during_silence_ends_it_at_the_next_stretch(whisper: WhisperSession) -> None:
    cancellation = Cancellation()
    events = whisper.stream(TaskRequest(audio=silence(600), cancellation=cancellation), None)
    assert isinstance(next(events), TextDelta)
    cancellation.cancel()
    assert [type(event) for event in events] == [Final]


def test_a_client_that_leaves_an_offline_call_ends_it_with_the_window_at_hand(
    whisper: WhisperSession,
    whisper_model: LoadedModel,
    spoken: Spoken,
    sentences: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cancellation = Cancellation()
    assert isinstance(whisper_model, LoadedWhisper)
    assert whisper_model.weights is not None
    engine = EngineCalls(whisper_model.weights.model.model, cancellation.cancel)
    monkeypatch.setattr(whisper_model.weights.model, "model", engine)
    audio = joined(*([*map(spoken, sentences), silence(30)] * 10))
    whisper.run(TaskRequest(audio=audio, cancellation=cancellation))
    assert engine.windows == 1
