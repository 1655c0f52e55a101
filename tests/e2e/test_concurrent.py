"""Requests at the same time answer exactly as they do one after another (QUE-10)."""

import pytest

pytestmark = pytest.mark.engine

COUNT = 16
THINGS = ("apple", "bread", "candle", "door", "engine", "flower", "garden", "hammer", "island", "jacket", "kitchen",
          "ladder", "mountain", "needle", "orange", "pencil")  # fmt: skip
SENTENCES = [f"Number {n + 1} is the {thing} on the table." for n, thing in enumerate(THINGS)]


def spoken(engines, sentence):
    answer = engines.speak(sentence)
    assert answer.status_code == 200, answer.text
    return answer.content


def heard(engines, clip, prompt):
    """A transcript with all its times, without how long the server took."""
    answer = engines.transcribe(
        clip, response_format="verbose_json", prompt=prompt, **{"timestamp_granularities[]": ["word", "segment"]}
    )
    assert answer.status_code == 200, answer.text
    return {name: value for name, value in answer.json().items() if name != "timing"}


@pytest.fixture(scope="module")
def clips(engines):
    """The sentences, spoken one after another."""
    return [spoken(engines, sentence) for sentence in SENTENCES]


def test_sixteen_sentences_at_once_sound_as_they_do_alone(engines, clips):
    assert len(set(clips)) == COUNT

    assert list(engines.threads.map(lambda sentence: spoken(engines, sentence), SENTENCES)) == clips


def test_sixteen_clips_at_once_read_as_they_do_alone(engines, clips):
    prompts = [f"It is about {thing}." for thing in THINGS]
    alone = [heard(engines, clip, prompt) for clip, prompt in zip(clips, prompts, strict=True)]
    assert len({answer["text"] for answer in alone}) == COUNT

    together = list(engines.threads.map(lambda clip, prompt: heard(engines, clip, prompt), clips, prompts))

    assert together == alone


def test_streams_at_once_are_no_others(engines, clips):
    def streamed(sentence):
        return engines.speak(sentence, stream_format="audio", response_format="pcm").content

    assert list(engines.threads.map(streamed, SENTENCES)) == [clip[44:] for clip in clips]
