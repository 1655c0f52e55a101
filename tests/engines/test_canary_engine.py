"""A tiny Canary model hears what the slow reference hears, the same on every slot, and long audio in windows."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Cancellation, Final, OptionValue, Task, TaskRequest, TaskResult, TextDelta
from antiphon_adapters.canary import CanaryAdapter
from antiphon_adapters.canary.engine import Abandoned, CanaryEngine
from antiphon_adapters.canary.model_files import read_model
from antiphon_adapters.canary.session import WINDOW_SAMPLES, CanarySession
from tiny_canary import CONFIG, LONGEST_FRAMES, build_canary, weights
from tiny_canary_reference import hear

RATE = 16000
FourAnswers = Callable[[LoadedModel, Sequence[TaskRequest]], list[TaskResult]]


def noise(seconds: float, seed: int = 1) -> Pcm:
    samples = np.random.Generator(np.random.PCG64(seed)).standard_normal(round(seconds * RATE)) * 0.1
    return Pcm.from_bytes(samples.astype(np.float32).tobytes(), RATE)


@pytest.fixture
def model(tiny_canary: Callable[..., Path]) -> Iterator[LoadedModel]:
    loaded = CanaryAdapter().load(ModelSpec("tiny", "canary", str(tiny_canary()), Task.ASR, slots=4))
    yield loaded
    loaded.close()


@pytest.fixture
def canary(model: LoadedModel) -> Iterator[CanarySession]:
    session = model.open_session()
    assert isinstance(session, CanarySession)
    yield session
    session.close()


# What is heard.


@pytest.mark.parametrize(
    ("language", "options", "prompt"),
    [
        (None, {}, ("en", "en", "pnc")),
        ("de", {}, ("de", "de", "pnc")),
        ("fr", {"target_language": "en"}, ("fr", "en", "pnc")),
        ("en", {"target_language": "es", "pnc": False}, ("en", "es", "nopnc")),
    ],
)
@pytest.mark.parametrize(("seconds", "seed"), [(0.1, 1), (0.357, 3), (0.8, 11)])
def test_the_likeliest_tokens_are_those_of_the_reference(
    canary: CanarySession,
    language: str | None,
    options: dict[str, OptionValue],
    prompt: tuple[str, str, str],
    seconds: float,
    seed: int,
) -> None:
    clip = noise(seconds, seed)
    numbers = {name: matrix.tolist() for name, matrix in weights().items()}
    expected = hear(clip.samples.tolist(), numbers, *prompt)

    result = canary.run(TaskRequest(audio=clip, language=language, options=options))

    assert result.text == expected.text != ""
    assert result.language == prompt[0]
    (segment,) = result.segments
    assert (segment.start_sample, segment.end_sample) == (0, clip.frames)
    assert segment.avg_logprob == pytest.approx(expected.avg_logprob, abs=1e-5)


def test_equal_samples_in_another_shape_of_memory_are_heard_alike(canary: CanarySession) -> None:
    clip = noise(3.0)
    padded = Pcm.from_bytes(bytes(4) + clip.samples.tobytes(), RATE)
    shifted = Pcm(padded.samples[1:], RATE)
    assert canary.run(TaskRequest(audio=shifted)) == canary.run(TaskRequest(audio=clip))


def test_a_model_that_does_not_tell_its_features_is_heard_alike(canary: CanarySession, tmp_path: Path) -> None:
    silent = build_canary(tmp_path / "silent", config={"max_sequence_length": CONFIG["max_sequence_length"]})
    session = CanaryAdapter().load(ModelSpec("silent", "canary", str(silent), Task.ASR)).open_session()
    assert isinstance(session, CanarySession)
    request = TaskRequest(audio=noise(2.0))
    assert session.run(request) == canary.run(request)


# Long recordings, silence and scraps.


def test_a_long_recording_is_heard_in_windows_to_both_ends(canary: CanarySession) -> None:  # AUD-14
    samples = np.array(noise(75.0).samples)
    quiet = (22 * RATE, 45 * RATE)
    for at in quiet:
        samples[at : at + RATE // 2] *= 0.001
    result = canary.run(TaskRequest(audio=Pcm.from_bytes(samples.tobytes(), RATE)))
    edges = [(segment.start_sample, segment.end_sample) for segment in result.segments]
    assert len(edges) == 3
    assert (edges[0][0], edges[-1][1]) == (0, 75 * RATE)
    for (_, end), (start, _), at in zip(edges, edges[1:], quiet, strict=False):
        assert end == start
        assert at <= start <= at + RATE // 2
    assert result.text == " ".join(segment.text for segment in result.segments)


def test_the_tiny_encoder_cannot_hear_that_much_at_once(canary: CanarySession) -> None:
    too_long = np.array(noise(0.08 * (LONGEST_FRAMES + 2)).samples)
    assert len(too_long) > WINDOW_SAMPLES
    with pytest.raises(Exception, match="Add"):
        canary._open.engine.transcribe(too_long, bool)


@pytest.mark.parametrize("frames", [1, 16, 160, 800, 1584])
def test_a_scrap_says_nothing(canary: CanarySession, frames: int) -> None:  # AUD-12
    scrap = Pcm(noise(1.0).samples[:frames], RATE)
    result = canary.run(TaskRequest(audio=scrap))
    assert (result.text, result.segments, result.language) == ("", (), "en")


def test_silence_says_nothing(canary: CanarySession) -> None:  # AUD-13
    result = canary.run(TaskRequest(audio=Pcm.from_bytes(bytes(6 * 4 * RATE), RATE)))
    assert (result.text, result.segments) == ("", ())


def test_samples_that_are_no_numbers_are_silence(canary: CanarySession) -> None:  # AUD-04
    samples = np.array(noise(1.0).samples)
    silenced = samples.copy()
    samples[100], samples[200], silenced[100], silenced[200] = np.nan, np.inf, 0.0, 0.0
    heard, expected = (canary.run(TaskRequest(audio=Pcm.from_bytes(it.tobytes(), RATE))) for it in (samples, silenced))
    assert heard == expected


# Streams, and clients that leave.


def test_a_stream_tells_every_window_as_it_is_heard(canary: CanarySession) -> None:
    request = TaskRequest(audio=noise(40.0))
    *deltas, final = canary.stream(request, None)
    assert isinstance(final, Final)
    assert final.result == canary.run(request)
    assert [delta.until_sample for delta in deltas if isinstance(delta, TextDelta)] == [
        segment.end_sample for segment in final.result.segments
    ]
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == final.result.text


def test_a_cancelled_request_ends_before_the_next_window(canary: CanarySession) -> None:
    gone = Cancellation()
    events = canary.stream(TaskRequest(audio=noise(75.0), cancellation=gone), None)
    first = next(events)
    gone.cancel()
    (final,) = events
    assert isinstance(first, TextDelta)
    assert isinstance(final, Final)
    assert [segment.text for segment in final.result.segments] == [first.text]


def test_a_call_ends_before_the_next_token_once_it_is_abandoned(tiny_canary: Callable[..., Path]) -> None:
    engine = CanaryEngine(read_model(str(tiny_canary()), None), threads=1)
    samples = np.array(noise(1.0).samples)
    asked = count()
    with pytest.raises(Abandoned):
        engine.transcribe(samples, lambda: next(asked) == 3)
    assert next(asked) == 4
    assert engine.transcribe(samples, bool) == engine.transcribe(samples, bool)


def test_live_audio_is_refused(canary: CanarySession) -> None:
    with pytest.raises(InvalidRequest, match="not live audio"):
        canary.prepare(TaskRequest(live=True))


# Sameness.


def test_sixteen_clips_on_four_slots_are_heard_as_they_are_serially(
    model: LoadedModel, canary: CanarySession, answers_of_four: FourAnswers
) -> None:
    requests = [TaskRequest(audio=noise(1 + seed / 8, seed), language="de") for seed in range(16)]
    serial = [canary.run(request) for request in requests]
    assert len({result.segments[0].avg_logprob for result in serial if result.segments}) > 8
    assert answers_of_four(model, requests) == serial


def test_all_slots_share_one_set_of_weights(canary: CanarySession) -> None:
    assert canary.clone()._open.engine is canary._open.engine


# What is refused.


@pytest.mark.parametrize("language", ["ja", "English", "en-US", ""])
def test_an_unknown_language_is_refused(canary: CanarySession, language: str) -> None:
    with pytest.raises(InvalidRequest, match="language must be one of en, de, es, fr") as refusal:
        canary.prepare(TaskRequest(audio=noise(1.0), language=language))
    assert refusal.value.param == "language"


@pytest.mark.parametrize(("name", "value"), [("target_language", "ja"), ("target_language", 1), ("pnc", "no")])
def test_an_option_of_another_kind_is_refused(canary: CanarySession, name: str, value: OptionValue) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        canary.prepare(TaskRequest(audio=noise(1.0), options={name: value}))
    assert refusal.value.param == name


def test_a_request_without_audio_is_refused(canary: CanarySession) -> None:
    with pytest.raises(InvalidRequest, match="no audio"):
        canary.prepare(TaskRequest())


def test_audio_at_another_rate_is_refused(canary: CanarySession) -> None:
    with pytest.raises(InvalidRequest, match="16000 Hz mono"):
        canary.prepare(TaskRequest(audio=Pcm.from_bytes(bytes(4000), 8000)))
