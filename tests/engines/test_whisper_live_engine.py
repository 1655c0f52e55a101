"""Somebody speaks, and the installed model writes it down before the sentence is over."""

from collections.abc import Callable, Iterator, Sequence

import jiwer
import numpy as np
import pytest

from antiphon.testing.calls import Streamed, chunks_of, whole_stream
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.tasks import (
    Final,
    OptionValue,
    SpeechStarted,
    SpeechStopped,
    TaskRequest,
    TextDelta,
)
from antiphon_adapters.whisper.session import WhisperSession

pytestmark = pytest.mark.engine

RATE = 16000
Spoken = Callable[[str], Pcm]

PLAIN = jiwer.Compose([jiwer.ToLowerCase(), jiwer.RemovePunctuation(), jiwer.RemoveMultipleSpaces(), jiwer.Strip()])


def pcm(*parts: Pcm | float) -> Pcm:
    """Speech, and silences in seconds, one after another."""
    data = [bytes(4 * round(part * RATE)) if isinstance(part, float) else part.samples.tobytes() for part in parts]
    return Pcm.from_bytes(b"".join(data), RATE)


def live(session: WhisperSession, audio: Pcm, frames: int = 1600, **options: OptionValue) -> Streamed:
    return whole_stream(session, TaskRequest(live=True, options=options), chunks_of(audio, frames))


def test_the_first_words_come_before_the_speaker_stops(
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    audio = pcm(spoken(sentences[1]), 1.0)
    spoken_frames = spoken(sentences[1]).frames
    taken = 0

    def microphone() -> Iterator[AudioChunk]:
        nonlocal taken
        for chunk in chunks_of(audio, 1600):
            taken = chunk.offset + chunk.pcm.frames
            yield chunk

    request = TaskRequest(live=True)
    whisper.prepare(request)
    events = whisper.stream(request, microphone())
    first = next(event for event in events if isinstance(event, TextDelta))
    assert PLAIN(sentences[1]).startswith(PLAIN(first.text))
    assert taken < spoken_frames - RATE // 2


def test_an_utterance_is_heard_as_an_offline_call_hears_it(
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    for sentence in sentences:
        audio = pcm(0.5, spoken(sentence), 0.3)
        offline = whisper.run(TaskRequest(audio=audio))
        assert PLAIN(live(whisper, audio).final.text or "") == PLAIN(offline.text or "")


def test_sentences_are_utterances_with_their_text_inside(
    whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    audio = pcm(spoken(sentences[0]), 1.0, spoken(sentences[2]), 1.0)
    streamed = live(whisper, audio)
    said, at = [""], []
    for event in streamed.pieces:
        match event:
            case TextDelta(text):
                said[-1] += text
            case SpeechStarted(sample):
                at.append(sample)
            case SpeechStopped(sample):
                at.append(sample)
                said.append("")
    assert [PLAIN(text) for text in said] == [PLAIN(sentences[0]), PLAIN(sentences[2]), ""]
    first, second = spoken(sentences[0]).frames, spoken(sentences[0]).frames + RATE
    assert at[0] < RATE // 2
    assert abs(at[1] - first) < RATE // 2
    assert abs(at[2] - second) < RATE // 2
    assert at == sorted(at)


def test_words_lie_where_they_were_spoken(whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]) -> None:
    late = spoken(sentences[0]).frames + 3 * RATE
    final = live(whisper, pcm(spoken(sentences[0]), 3.0, spoken(sentences[1])), word_timestamps=True).final
    word = next(word for word in final.words if word.text == "We")
    assert abs(word.start_sample - late) < RATE // 2
    edges = [edge for word in final.words for edge in (word.start_sample, word.end_sample)]
    assert edges == sorted(edges)


def test_silence_and_noise_say_nothing(whisper: WhisperSession) -> None:
    assert live(whisper, pcm(5.0)).final.text == ""
    noise = np.random.Generator(np.random.PCG64(2)).standard_normal(5 * RATE) * 0.05
    streamed = live(whisper, Pcm.from_bytes(noise.astype(np.float32).tobytes(), RATE))
    assert (streamed.pieces, streamed.final.text, streamed.final.language) == ((), "", "en")


def test_a_longer_silence_joins_utterances(whisper: WhisperSession, spoken: Spoken, sentences: Sequence[str]) -> None:
    audio = pcm(spoken(sentences[0]), 1.0, spoken(sentences[2]), 0.5)
    stops = [e for e in live(whisper, audio, silence_ms=2000).pieces if isinstance(e, SpeechStopped)]
    assert len(stops) == 1


def test_the_language_is_found_in_live_audio(
    multilingual: WhisperSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    request = TaskRequest(live=True, options={"step_ms": 2000})
    multilingual.prepare(request)
    *_, final = multilingual.stream(request, chunks_of(spoken(sentences[1]), 1600))
    assert isinstance(final, Final)
    assert final.result.language == "en"
    assert jiwer.wer(PLAIN(sentences[1]), PLAIN(final.result.text or "")) <= 0.25
