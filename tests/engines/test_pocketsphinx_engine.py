"""The installed model places the words of Piper's sentences where Whisper hears them, the same on every slot."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

import numpy as np
import pytest

from antiphon.ports.adapter import Adapter, LoadedModel
from antiphon.testing.adapter_suite import AdapterTests
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import ConfigError, InvalidRequest
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Cancellation, Mode, Task, TaskRequest, TaskResult
from antiphon_adapters.pocketsphinx import PocketsphinxAdapter
from antiphon_adapters.pocketsphinx.session import MAX_WORDS, PocketsphinxSession
from antiphon_adapters.whisper.session import WhisperSession

RATE = 16_000

Spoken = Callable[[str], Pcm]


@pytest.fixture(scope="module")
def sphinx_spec(installed: Callable[[str], str]) -> ModelSpec:
    return ModelSpec("align", "pocketsphinx", installed("pocketsphinx-align"), Task.ALIGN, slots=4)


@pytest.fixture(scope="module")
def sphinx_model(sphinx_spec: ModelSpec) -> Iterator[LoadedModel]:
    model = PocketsphinxAdapter().load(sphinx_spec)
    yield model
    model.close()


@pytest.fixture
def sphinx(sphinx_model: LoadedModel) -> PocketsphinxSession:
    session = sphinx_model.open_session()
    assert isinstance(session, PocketsphinxSession)
    return session


def bare(word: str) -> str:
    return "".join(char for char in word.casefold() if char.isalpha())


@pytest.mark.engine
class TestPocketsphinxAdapter(AdapterTests):
    @pytest.fixture
    def adapter(self) -> Adapter:
        return PocketsphinxAdapter()

    @pytest.fixture
    def spec(self, sphinx_spec: ModelSpec) -> ModelSpec:
        return sphinx_spec

    @pytest.fixture
    def loaded(self, sphinx_model: LoadedModel) -> LoadedModel:
        return sphinx_model

    @pytest.fixture
    def requests(self, spoken: Spoken, sentences: Sequence[str]) -> Sequence[TaskRequest]:
        return [TaskRequest(audio=spoken(sentence), text=sentence) for sentence in sentences[:2]]

    @pytest.fixture
    def bad_request(self, spoken: Spoken, sentences: Sequence[str]) -> TaskRequest:
        return TaskRequest(audio=spoken(sentences[0]), text="zyxxy")


@pytest.mark.engine
def test_words_are_where_whisper_hears_them(
    sphinx: PocketsphinxSession, multilingual: WhisperSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    apart_ms: list[float] = []
    for sentence in sentences:
        audio = spoken(sentence)
        ours = sphinx.run(TaskRequest(audio=audio, text=sentence)).words
        theirs = multilingual.run(TaskRequest(audio=audio, language="en", options={"word_timestamps": True})).words
        if [bare(word.text) for word in ours] == [bare(word.text) for word in theirs]:
            for one, other in zip(ours, theirs, strict=True):
                apart_ms.append(abs(one.start_sample - other.start_sample) * 1000 / RATE)
                apart_ms.append(abs(one.end_sample - other.end_sample) * 1000 / RATE)
    assert len(apart_ms) >= 2 * 20, "Whisper heard other words"
    assert median(apart_ms) <= 80


@pytest.mark.engine
def test_every_word_is_placed_in_order_as_it_is_written(sphinx: PocketsphinxSession, spoken: Spoken) -> None:
    text = "In 1995, the well-known piano — it's his brother's — was sold for $42!"
    audio = spoken("In nineteen ninety-five, the well known piano, it's his brother's, was sold for forty-two dollars.")
    result = sphinx.run(TaskRequest(audio=audio, text=text))
    assert [word.text for word in result.words] == [token for token in text.split() if token != "—"]
    edges = [edge for word in result.words for edge in (word.start_sample, word.end_sample)]
    assert edges == sorted(edges)
    assert 0 <= edges[0] < edges[-1] <= audio.frames


@pytest.mark.engine
@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.1, 2.0])
def test_words_that_are_not_said_are_not_found(sphinx: PocketsphinxSession, seconds: float) -> None:
    silence = Pcm.from_bytes(bytes(4 * round(seconds * RATE)), RATE)
    with pytest.raises(InvalidRequest, match="the text was not found in the audio") as refusal:
        sphinx.run(TaskRequest(audio=silence, text="hello world"))
    assert refusal.value.param == "text"


@pytest.mark.engine
@pytest.mark.parametrize("frames", [1, 16, 160, 800, 1584])
def test_no_word_is_found_in_a_scrap(  # AUD-12
    sphinx: PocketsphinxSession, spoken: Spoken, sentences: Sequence[str], frames: int
) -> None:
    scrap = Pcm(spoken(sentences[0]).samples[RATE : RATE + frames], RATE)
    with pytest.raises(InvalidRequest, match="the text was not found in the audio"):
        sphinx.run(TaskRequest(audio=scrap, text="hello world"))
    assert sphinx.run(TaskRequest(audio=spoken(sentences[0]), text=sentences[0])).words, "the session stays fit"


@pytest.mark.engine
def test_a_text_that_goes_on_after_the_audio_is_not_found(
    sphinx: PocketsphinxSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    with pytest.raises(InvalidRequest, match="not found"):
        sphinx.run(TaskRequest(audio=spoken(sentences[0]), text=" ".join(sentences * 3)))


@pytest.mark.engine
@pytest.mark.parametrize(
    ("text", "language", "param", "message"),
    [
        (None, None, "text", "no text with words"),
        (" — ", None, "text", "no text with words"),
        ("the zyxxy and the Qwrtz", None, "text", "how these sound: 'zyxxy', 'qwrtz'$"),
        (" ".join(f"zyx{letter}x" for letter in "abcdefghijkl"), None, "text", "and 2 more$"),
        ("hello", "de", "language", "language must be en"),
        ("hello " * (MAX_WORDS + 1), None, "text", "the limit is 5000"),
        ("1/" * 200 + "a" + "\u0327\u0300" * 50_000, None, "text", "has 100401 characters; the limit is 500"),
        ("hello " * (MAX_WORDS + 1) + "n" * 501, None, "text", "the limit is 5000"),
    ],
)
def test_what_cannot_be_aligned_is_refused_before_it_is_listened_to(
    sphinx: PocketsphinxSession, text: str | None, language: str | None, param: str, message: str
) -> None:
    silence = Pcm.from_bytes(bytes(4 * RATE), RATE)
    with pytest.raises(InvalidRequest, match=message) as refusal:
        sphinx.prepare(TaskRequest(audio=silence, text=text, language=language))
    assert refusal.value.param == param


@pytest.mark.engine
def test_loud_and_broken_samples_are_heard(
    sphinx: PocketsphinxSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    samples = np.frombuffer(spoken(sentences[0]).samples.cast("B"), np.float32) * 1.5
    samples[:3] = np.nan, np.inf, -np.inf
    words = sphinx.run(TaskRequest(audio=Pcm.from_bytes(samples.tobytes(), RATE), text=sentences[0])).words
    assert len(words) == len(sentences[0].split())


@pytest.mark.engine
def test_a_cancelled_request_ends_after_the_second_at_hand(
    sphinx: PocketsphinxSession, spoken: Spoken, sentences: Sequence[str]
) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    request = TaskRequest(audio=spoken(sentences[0]), text=sentences[0], cancellation=cancellation)
    assert sphinx.run(request).words == ()


@pytest.mark.engine
def test_sixteen_sentences_on_four_slots_are_placed_as_they_are_serially(
    sphinx: PocketsphinxSession,
    sphinx_model: LoadedModel,
    spoken: Spoken,
    sixteen_sentences: Sequence[str],
    answers_of_four: Callable[[LoadedModel, Sequence[TaskRequest]], list[TaskResult]],
) -> None:
    requests = [TaskRequest(audio=spoken(sentence), text=sentence) for sentence in sixteen_sentences]
    serial = [sphinx.run(request) for request in requests]
    assert len(set(serial)) == 16
    assert answers_of_four(sphinx_model, requests) == serial
    assert [sphinx.run(request) for request in reversed(requests)] == serial[::-1], "nothing leaks between utterances"


@pytest.mark.engine
def test_a_model_says_that_it_keeps_pythons_lock(sphinx_spec: ModelSpec) -> None:
    assert PocketsphinxAdapter().inspect(sphinx_spec).holds_gil


def folder_with(tmp_path, *missing: str) -> str:
    (tmp_path / "acoustic").mkdir()
    names = ("feat.params", "mdef", "means", "noisedict", "transition_matrices", "variances")
    for name in {*(f"acoustic/{it}" for it in names), "dictionary.dict"} - set(missing):
        (tmp_path / name).write_bytes(b"x")
    return str(tmp_path)


@pytest.mark.parametrize("missing", ["acoustic/mdef", "dictionary.dict"])
def test_a_missing_file_is_named(tmp_path, missing: str) -> None:
    path = folder_with(tmp_path, missing)
    with pytest.raises(ConfigError, match=f"has no {missing}"):
        PocketsphinxAdapter().inspect(ModelSpec("a", "pocketsphinx", path, Task.ALIGN))


@pytest.mark.parametrize(
    "changes",
    [{"task": Task.ASR}, {"device": "cuda"}, {"load_options": {"x": 1}}, {"session_options": {"x": 1}}],
)
def test_a_model_that_cannot_be_is_refused(tmp_path, changes) -> None:
    spec = {"id": "a", "family": "pocketsphinx", "path": folder_with(tmp_path), "task": Task.ALIGN}
    assert PocketsphinxAdapter().inspect(ModelSpec(**spec)).modes == {Mode.OFFLINE}
    with pytest.raises(ConfigError):
        PocketsphinxAdapter().inspect(ModelSpec(**{**spec, **changes}))
