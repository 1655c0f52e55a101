"""The installed detector finds the speech that Piper made, live as in a recording, the same on every slot."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.ports.adapter import Adapter, LoadedModel
from antiphon.testing.adapter_suite import AdapterTests
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import ConfigError, InvalidRequest
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import (
    Cancellation,
    Final,
    OptionValue,
    SpeechStarted,
    SpeechStopped,
    Task,
    TaskRequest,
    TaskResult,
)
from antiphon_adapters.silero import SileroVadAdapter
from antiphon_adapters.silero.session import SileroVadSession

RATE = 16_000
GAP = 2 * RATE


@pytest.fixture(scope="module")
def silero_spec(installed: Callable[[str], str]) -> ModelSpec:
    return ModelSpec("vad", "silero_vad", installed("silero-vad"), Task.VAD, slots=4)


@pytest.fixture(scope="module")
def silero_model(silero_spec: ModelSpec) -> Iterator[LoadedModel]:
    model = SileroVadAdapter().load(silero_spec)
    yield model
    model.close()


@pytest.fixture
def silero(silero_model: LoadedModel) -> SileroVadSession:
    session = silero_model.open_session()
    assert isinstance(session, SileroVadSession)
    return session


@pytest.fixture(scope="module")
def two_sentences(spoken: Callable[[str], Pcm]) -> Pcm:
    """Silence, a sentence, silence, another, silence: two seconds each time nobody speaks."""
    quiet = bytes(4 * GAP)
    words = [spoken(text).samples.tobytes() for text in ("There is a small garden.", "Can you tell me the way?")]
    return Pcm.from_bytes(quiet + words[0] + quiet + words[1] + quiet, RATE)


def spans(result: TaskResult) -> list[tuple[int, int]]:
    return [(segment.start_sample, segment.end_sample) for segment in result.segments]


def live(audio: Pcm, step: int) -> Iterator[AudioChunk]:
    for start in range(0, audio.frames, step):
        yield AudioChunk(Pcm(audio.samples[start : start + step], RATE), start)


@pytest.mark.engine
class TestSileroVadAdapter(AdapterTests):
    @pytest.fixture
    def adapter(self) -> Adapter:
        return SileroVadAdapter()

    @pytest.fixture
    def spec(self, silero_spec: ModelSpec) -> ModelSpec:
        return silero_spec

    @pytest.fixture
    def loaded(self, silero_model: LoadedModel) -> LoadedModel:
        return silero_model

    @pytest.fixture
    def requests(self, two_sentences: Pcm) -> Sequence[TaskRequest]:
        return [TaskRequest(audio=two_sentences), TaskRequest(audio=two_sentences, options={"padding_ms": 0})]

    @pytest.fixture
    def bad_request(self) -> TaskRequest:
        return TaskRequest(text="no audio")


@pytest.mark.engine
def test_each_sentence_between_silences_is_one_stretch(silero: SileroVadSession, two_sentences: Pcm) -> None:
    (first, last), (second, end) = spans(silero.run(TaskRequest(audio=two_sentences, options={"min_silence_ms": 500})))
    assert abs(first - GAP) < RATE // 5
    assert abs(second - last - GAP) < RATE // 2
    assert abs(two_sentences.frames - end - GAP) < RATE // 2


@pytest.mark.engine
@pytest.mark.parametrize("step", [1, 511, 512, 16_000, 200_000])
def test_live_audio_is_heard_as_a_recording_is_however_it_is_cut(
    silero: SileroVadSession, two_sentences: Pcm, step: int
) -> None:
    audio = Pcm(two_sentences.samples[: 4 * RATE], RATE) if step == 1 else two_sentences
    recorded = list(silero.stream(TaskRequest(audio=audio), None))
    request = TaskRequest(live=True)
    silero.prepare(request)
    assert list(silero.stream(request, live(audio, step))) == recorded


@pytest.mark.engine
def test_a_start_is_told_before_the_rest_is_heard(silero: SileroVadSession, two_sentences: Pcm) -> None:
    taken = 0

    def chunks() -> Iterator[AudioChunk]:
        nonlocal taken
        for chunk in live(two_sentences, RATE // 10):
            taken += chunk.pcm.frames
            yield chunk

    started = next(silero.stream(TaskRequest(live=True), chunks()))
    assert isinstance(started, SpeechStarted)
    assert taken - started.at_sample < RATE


@pytest.mark.engine
def test_a_stream_tells_the_edges_of_its_segments(silero: SileroVadSession, two_sentences: Pcm) -> None:
    *edges, final = silero.stream(TaskRequest(audio=two_sentences), None)
    assert isinstance(final, Final)
    told = [edge.at_sample for edge in edges if isinstance(edge, SpeechStarted | SpeechStopped)]
    assert told == [edge for span in spans(final.result) for edge in span]


@pytest.mark.engine
@pytest.mark.parametrize("level", [0.0, 0.05])
def test_silence_and_noise_are_no_speech(silero: SileroVadSession, level: float) -> None:
    noise = np.random.Generator(np.random.PCG64(2)).standard_normal(6 * RATE) * level
    assert silero.run(TaskRequest(audio=Pcm.from_bytes(noise.astype(np.float32).tobytes(), RATE))).segments == ()


@pytest.mark.engine
def test_a_sample_that_is_no_number_silences_nothing_else(silero: SileroVadSession, two_sentences: Pcm) -> None:
    samples: NDArray[np.float32] = np.frombuffer(two_sentences.samples.tobytes(), np.float32).copy()
    samples[[0, 10]] = np.nan, np.inf
    broken = silero.run(TaskRequest(audio=Pcm.from_bytes(samples.tobytes(), RATE)))
    assert broken == silero.run(TaskRequest(audio=two_sentences))


@pytest.mark.engine
@pytest.mark.parametrize("frames", [0, 1, 16, 160, 511, 513, 800, 1584])
def test_a_scrap_is_heard_without_a_fault(  # AUD-12
    silero: SileroVadSession, two_sentences: Pcm, frames: int
) -> None:
    scrap = Pcm(two_sentences.samples[GAP : GAP + frames], RATE)
    assert all(end <= frames for _, end in spans(silero.run(TaskRequest(audio=scrap, options={"min_speech_ms": 0}))))


@pytest.mark.engine
@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"threshold": 0.96}, "threshold"),
        ({"min_speech_ms": -1}, "min_speech_ms"),
        ({"min_silence_ms": 1.5}, "min_silence_ms"),
        ({"padding_ms": 2001}, "padding_ms"),
    ],
)
def test_an_option_out_of_its_range_is_refused(
    silero: SileroVadSession, two_sentences: Pcm, options: dict[str, OptionValue], param: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        silero.prepare(TaskRequest(audio=two_sentences, options=options))
    assert refusal.value.param == param


@pytest.mark.engine
def test_a_cancelled_request_ends_after_the_block_at_hand(silero: SileroVadSession, two_sentences: Pcm) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    taken = []
    chunks = (taken.append(chunk) or chunk for chunk in live(two_sentences, RATE))
    list(silero.stream(TaskRequest(live=True, cancellation=cancellation), chunks))
    assert len(taken) == 1


@pytest.mark.engine
def test_sixteen_recordings_on_four_slots_are_heard_as_they_are_serially(
    silero: SileroVadSession,
    silero_model: LoadedModel,
    spoken: Callable[[str], Pcm],
    sixteen_sentences: Sequence[str],
    answers_of_four: Callable[[LoadedModel, Sequence[TaskRequest]], list[TaskResult]],
) -> None:
    requests = [TaskRequest(audio=spoken(text), options={"min_silence_ms": 0}) for text in sixteen_sentences]
    serial = [silero.run(request) for request in requests]
    assert len(set(serial)) == 16
    assert answers_of_four(silero_model, requests) == serial


@pytest.mark.parametrize(
    "changes",
    [
        {"task": Task.ASR},
        {"device": "cuda"},
        {"load_options": {"x": 1}},
        {"session_options": {"x": 1}},
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(tmp_path, changes) -> None:
    (tmp_path / "silero_vad_v6.onnx").write_bytes(b"network")
    spec = {"id": "vad", "family": "silero_vad", "path": str(tmp_path), "task": Task.VAD}
    assert SileroVadAdapter().inspect(ModelSpec(**spec)).weight_bytes > 0
    with pytest.raises(ConfigError):
        SileroVadAdapter().inspect(ModelSpec(**{**spec, **changes}))


def test_a_folder_without_the_network_is_refused_by_its_name(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"has no silero_vad_v6\.onnx"):
        SileroVadAdapter().inspect(ModelSpec("vad", "silero_vad", str(tmp_path), Task.VAD))
