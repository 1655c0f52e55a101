"""The installed voice speaks what it should, the same on every slot, and refuses what cannot be spoken."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import InvalidRequest, TooLarge
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import AudioDelta, Cancellation, Final, OptionValue, TaskRequest, TaskResult
from antiphon_adapters.piper import PiperAdapter, session
from antiphon_adapters.piper.session import PiperSession

pytestmark = pytest.mark.engine

FourAnswers = Callable[[LoadedModel, Sequence[TaskRequest]], list[TaskResult]]


def speak(session: PiperSession, text: str, seed: int = 0, **options: OptionValue) -> Pcm:
    request = TaskRequest(text=text, seed=seed, options=options)
    session.prepare(request)
    audio = session.run(request).audio
    assert audio is not None
    return audio


def sound(audio: Pcm | None) -> bytes:
    assert audio is not None
    return audio.samples.tobytes()


def sounds_of(session: PiperSession, text: str) -> list[bytes]:
    """What each piece of a stream sounds like, at four times the speed."""
    request = TaskRequest(text=text, options={"speed": 4})
    session.prepare(request)
    return [sound(event.pcm) for event in session.stream(request, None) if isinstance(event, AudioDelta)]


def samples(audio: Pcm) -> NDArray[np.float32]:
    return np.frombuffer(sound(audio), np.float32)


# Sameness.


def test_sixteen_sentences_on_four_slots_sound_as_they_do_serially(
    piper: PiperSession, piper_model: LoadedModel, sixteen_sentences: Sequence[str], answers_of_four: FourAnswers
) -> None:
    requests = [TaskRequest(text=text, seed=seed) for seed, text in enumerate(sixteen_sentences)]
    serial = [sound(piper.run(request).audio) for request in requests]
    assert len(set(serial)) == 16
    assert [sound(result.audio) for result in answers_of_four(piper_model, requests)] == serial


def test_a_seed_repeats_and_another_differs(piper: PiperSession) -> None:
    first, again, other = (sound(speak(piper, "Say it once more.", seed)) for seed in (7, 7, 8))
    assert first == again != other


def test_an_answer_does_not_depend_on_those_before_it(piper: PiperSession) -> None:
    alone = sound(speak(piper, "Say it once more."))
    speak(piper, "Something else comes between.")
    assert sound(speak(piper, "Say it once more.")) == alone


def test_without_noise_the_voice_sounds_as_in_piper_itself(piper: PiperSession, piper_spec: ModelSpec) -> None:
    from piper import PiperVoice
    from piper.config import SynthesisConfig

    text = "The first sentence. And the second one!"
    quiet = SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0)
    itself = PiperVoice.load(f"{piper_spec.path}/en_US-joe-medium.onnx").synthesize(text, quiet)
    expected = np.concatenate([chunk.audio_float_array for chunk in itself])
    ours = samples(speak(piper, text, noise_scale=0, noise_w=0))
    assert ours.shape == expected.shape
    assert np.allclose(ours, expected, atol=1e-4)  # piper lets ONNX Runtime choose its threads, which round otherwise


# What is spoken.


def test_two_sentences_are_both_heard(piper: PiperSession) -> None:  # TTS-05
    one = speak(piper, "First sentence.")
    assert speak(piper, "First sentence. Second sentence.").frames > 1.5 * one.frames


@pytest.mark.parametrize("text", ["One.\r\nTwo.\r\n", "One.\nTwo."])
def test_every_line_is_heard(piper: PiperSession, text: str) -> None:  # TTS-05
    assert speak(piper, text).frames > 1.5 * speak(piper, "One.").frames


def test_every_item_of_a_list_is_heard(piper: PiperSession) -> None:  # TTS-05
    items = ["There are four fruits:", "Apple", "Banana", "Orange", "Blueberry"]
    lengths = [speak(piper, "\n".join(items[: count + 1])).frames for count in range(len(items))]
    assert lengths == sorted(set(lengths))


def test_years_are_spoken(piper: PiperSession) -> None:  # TTS-06
    assert speak(piper, "3 4 5 1835 1865").frames > 1.5 * speak(piper, "3 4 5").frames


def test_a_number_of_forty_digits_is_spelled(piper: PiperSession) -> None:  # TTS-06
    assert speak(piper, "1234567890" * 4).duration_s > 40 * 0.15


def test_other_scripts_are_no_fault(piper: PiperSession) -> None:  # TTS-06
    text = (
        "Hello, \u043f\u0440\u0438\u0432\u0435\u0442, \u3053\u3093\u306b\u3061\u306f, \u0645\u0631\u062d\u0628\u0627."
    )
    assert speak(piper, text).frames > speak(piper, "Hello.").frames


def test_a_sign_between_words_keeps_the_words(piper: PiperSession) -> None:  # TTS-02
    assert speak(piper, "Good \U0001f600 morning.").frames >= speak(piper, "Good morning.").frames


def test_markup_is_plain_text(piper: PiperSession) -> None:  # TTS-02
    assert speak(piper, '<speak>Hello <break time="500ms"/> world</speak>').frames > speak(piper, "Hello world").frames


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "   ",
        "\n\n\t\n",
        "\u200b\u200d\ufeff",
        "...!?,;:-\u2014",
        "\"'\u201c\u201d()",
        "a\0b",
        "a\ud800b",
        "." * 5000,
    ],
)
def test_what_cannot_be_spoken_is_refused(piper: PiperSession, text: str | None) -> None:  # TTS-01, TTS-02
    with pytest.raises(InvalidRequest) as refusal:
        piper.prepare(TaskRequest(text=text))
    assert refusal.value.param == "input"


# Length.


@pytest.mark.parametrize(("unit", "count"), [("and the quick brown fox ", 3), ("a", 80), ("\u4f60\u597d", 5)])
def test_unbroken_text_sounds_as_long_as_it_is(piper: PiperSession, unit: str, count: int) -> None:  # TTS-03
    short, long = (speak(piper, unit * times, speed=4).frames for times in (count, 4 * count))
    assert 2.5 * short < long < 5.5 * short


def test_no_run_of_the_graph_is_long_whatever_the_text(piper: PiperSession) -> None:  # TTS-03, TTS-04
    request = TaskRequest(text="and the quick brown fox " * 20, options={"speed": 4})
    pieces = [event.pcm.frames for event in piper.stream(request, None) if isinstance(event, AudioDelta)]
    assert len(pieces) > 1
    assert max(pieces) < 20 * piper.sample_rate


def test_letters_with_full_stops_do_not_crash_the_speller(piper: PiperSession) -> None:
    request = TaskRequest(text="a." * 5000)
    gone = next(iter(piper.stream(request, None)))
    assert isinstance(gone, AudioDelta)
    piper.prepare(TaskRequest(text=" ".join(["b."] * 5000)))


def test_a_cancelled_book_ends_at_the_next_sentence(piper: PiperSession) -> None:  # TTS-04
    cancellation = Cancellation()
    request = TaskRequest(text="This is one sentence of a long book. " * 2800, cancellation=cancellation)
    piper.prepare(request)
    events = piper.stream(request, None)
    first = next(events)
    cancellation.cancel()
    assert isinstance(first, AudioDelta)
    assert [type(event) for event in events] == [Final]


def test_a_whole_answer_has_a_longest_length_and_a_stream_has_none(
    piper: PiperSession, monkeypatch: pytest.MonkeyPatch
) -> None:  # TTS-04
    monkeypatch.setattr(session, "LONGEST_S", 2)
    request = TaskRequest(text="This is one sentence of a long book. " * 3)
    with pytest.raises(TooLarge, match="limit of 2 seconds") as refusal:
        piper.run(request)
    assert refusal.value.param == "input"
    assert sum(len(samples(event.pcm)) for event in piper.stream(request, None) if isinstance(event, AudioDelta)) > (
        2 * piper.sample_rate
    )


# Options and other fields.


def test_speed_shortens_and_lengthens_monotonely(piper: PiperSession) -> None:  # TTS-07
    lengths = [speak(piper, "Speed test.", speed=speed).frames for speed in (0.25, 0.5, 1, 1.5, 3.0, 4)]
    assert lengths == sorted(set(lengths), reverse=True)


@pytest.mark.parametrize("speed", [0, -1, 0.24, 4.01, 1e9, float("nan"), "1.5", True])
def test_a_speed_out_of_range_is_refused(piper: PiperSession, speed: OptionValue) -> None:  # TTS-07
    with pytest.raises(InvalidRequest) as refusal:
        piper.prepare(TaskRequest(text="Speed test.", options={"speed": speed}))
    assert refusal.value.param == "speed"


def test_silence_follows_each_sentence(piper: PiperSession) -> None:
    text = "First sentence. Second sentence."
    added = speak(piper, text, sentence_silence=0.5).frames - speak(piper, text).frames
    assert added == piper.sample_rate


def test_a_voice_goes_by_its_own_name(piper: PiperSession) -> None:
    piper.prepare(TaskRequest(text="Hello.", voice="en_US-joe-medium", language="en"))


@pytest.mark.parametrize(("field", "value"), [("voice", "alloy"), ("language", "de")])
def test_another_voice_or_language_is_refused(piper: PiperSession, field: str, value: str) -> None:
    request = TaskRequest(text="Hello.", **{field: value})  # type: ignore[arg-type]  # both fields are strings
    with pytest.raises(InvalidRequest) as refusal:
        piper.prepare(request)
    assert refusal.value.param == field


def test_samples_are_numbers_in_range(piper: PiperSession) -> None:
    spoken = samples(speak(piper, "The quick brown fox."))
    assert np.isfinite(spoken).all()
    assert np.abs(spoken).max() == 1.0


# Streams.


def test_a_stream_has_a_piece_for_each_sentence(piper: PiperSession) -> None:
    request = TaskRequest(text="One. Two. Three.")
    *deltas, final = piper.stream(request, None)
    assert isinstance(final, Final)
    assert final.result.audio is None
    sounds = [sound(delta.pcm) for delta in deltas if isinstance(delta, AudioDelta)]
    assert len(sounds) == len(deltas) == 3
    assert b"".join(sounds) == sound(piper.run(request).audio)


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith met J. R. Miller at No. 5.",
        "Wait... what?",
        "The U.S. Army paid $3.50 at 10:30 a.m. exactly.",
        "1. First item.",
        "(It was late.)",
    ],
)
def test_a_sentence_with_stops_in_it_is_one_piece(piper: PiperSession, text: str) -> None:
    assert len(sounds_of(piper, text)) == 1


def test_a_long_sentence_is_heard_before_all_of_it_is_made(piper: PiperSession) -> None:
    text = "we went along the river, and over the hill, " * 20
    first, *others = sounds_of(piper, text)
    assert others
    assert len(first) < 0.5 * sum(map(len, others))


def test_where_a_long_sentence_is_cut_there_is_no_click(piper: PiperSession) -> None:
    parts = [np.frombuffer(part, np.float32) for part in sounds_of(piper, "and so it goes on and on " * 30)]
    assert len(parts) > 2
    assert max(abs(float(after[0] - before[-1])) for before, after in pairwise(parts)) < 0.005


def test_silence_follows_no_part_of_a_sentence(piper: PiperSession) -> None:
    text = "we went along the river, and over the hill, " * 6 + "and home."
    added = speak(piper, text, sentence_silence=0.5, speed=4).frames - speak(piper, text, speed=4).frames
    assert added == 0.5 * piper.sample_rate


def test_a_voice_takes_no_live_audio(piper: PiperSession) -> None:
    with pytest.raises(InvalidRequest):
        next(piper.stream(TaskRequest(text="Hello."), iter(())))


def test_a_closed_model_opens_nothing(tiny_voice: Callable[..., object]) -> None:
    model = PiperAdapter().load(ModelSpec("tiny", "piper", str(tiny_voice()), PiperSession.task))
    model.close()
    assert model.open_session() is None


def test_a_text_without_end_is_spoken_as_it_is_asked_for(piper: PiperSession) -> None:
    """The first sentence of a long text comes without the rest having been spelled."""
    events = piper.stream(TaskRequest(text="A short one.\n" + "And a long book follows. " * 4000), None)
    first = next(events)
    assert isinstance(first, AudioDelta)
    assert sound(first.pcm) == sound(speak(piper, "A short one."))
