"""The installed model tells Piper's voices apart: the right number, few errors, the same on every slot."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
import soxr
from numpy.typing import NDArray
from onnxruntime import InferenceSession

from antiphon.ports.adapter import Adapter, LoadedModel
from antiphon.testing.adapter_suite import AdapterTests
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import ConfigError, InvalidRequest
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import (
    Cancellation,
    Final,
    OptionValue,
    SpeakerTurn,
    Task,
    TaskRequest,
    TaskResult,
    TurnsDelta,
)
from antiphon_adapters.speaker_clustering import SpeakerClusteringAdapter
from antiphon_adapters.speaker_clustering.session import SpeakerClusteringSession
from diarization_score import score

RATE = 16_000

VOICES = {"A": 1.0, "B": 0.8, "C": 1.25}
"""Speakers, made of one voice: played slower it is larger, faster smaller. The prints of any two are 0.44 apart."""

TWO = "ABABBA"
THREE = "ABCACB"

Spoken = Callable[[str], Pcm]
Join = Callable[[str], tuple[Pcm, list[SpeakerTurn]]]


@pytest.fixture(scope="module")
def clustering_spec(installed: Callable[[str], str]) -> ModelSpec:
    return ModelSpec("turns", "speaker_clustering", installed("speaker-turns"), Task.DIAR, slots=4)


@pytest.fixture(scope="module")
def clustering_model(clustering_spec: ModelSpec) -> Iterator[LoadedModel]:
    model = SpeakerClusteringAdapter().load(clustering_spec)
    yield model
    model.close()


@pytest.fixture
def clustering(clustering_model: LoadedModel) -> SpeakerClusteringSession:
    session = clustering_model.open_session()
    assert isinstance(session, SpeakerClusteringSession)
    return session


@pytest.fixture(scope="module")
def join(spoken: Spoken, sixteen_sentences: Sequence[str]) -> Join:
    """Sentences one after another with 0.3 s between them, a letter for each one's speaker, and who speaks when."""

    def build(speakers: str) -> tuple[Pcm, list[SpeakerTurn]]:
        pieces: list[NDArray[np.float32]] = []
        turns: list[SpeakerTurn] = []
        at = 0
        for place, speaker in enumerate(speakers):
            speech = voiced(f"{sixteen_sentences[2 * place]} {sixteen_sentences[2 * place + 1]}", VOICES[speaker])
            turns.append(SpeakerTurn(at, at + len(speech), speaker))
            pieces += [speech, np.zeros(3 * RATE // 10, np.float32)]
            at += len(speech) + 3 * RATE // 10
        return Pcm.from_bytes(np.concatenate(pieces).tobytes(), RATE), turns

    def voiced(text: str, speed: float) -> NDArray[np.float32]:
        """The text from the first sound to the last."""
        samples = np.frombuffer(spoken(text).samples.cast("B"), np.float32)
        turned = soxr.resample(samples, RATE * speed, RATE).astype(np.float32)
        loud = np.flatnonzero(np.abs(turned) > 0.02)
        return turned[loud[0] : loud[-1] + 1]

    return build


@pytest.mark.engine
class TestSpeakerClusteringAdapter(AdapterTests):
    @pytest.fixture
    def adapter(self) -> Adapter:
        return SpeakerClusteringAdapter()

    @pytest.fixture
    def spec(self, clustering_spec: ModelSpec) -> ModelSpec:
        return clustering_spec

    @pytest.fixture
    def loaded(self, clustering_model: LoadedModel) -> LoadedModel:
        return clustering_model

    @pytest.fixture
    def requests(self, spoken: Spoken, sentences: Sequence[str]) -> Sequence[TaskRequest]:
        return [TaskRequest(audio=spoken(sentences[0]), options={"num_speakers": number}) for number in (2, 1)]

    @pytest.fixture
    def bad_request(self) -> TaskRequest:
        return TaskRequest(text="no audio")


@pytest.mark.engine
@pytest.mark.parametrize(("speakers", "number"), [(TWO, 2), (THREE, 3), ("AAA", 1)])
def test_who_speaks_when_is_found_with_few_errors(
    clustering: SpeakerClusteringSession, join: Join, speakers: str, number: int
) -> None:
    audio, truth = join(speakers)
    found = score(truth, clustering.run(TaskRequest(audio=audio)).speaker_turns)
    assert found.speakers == number
    assert found.confusion <= 0.02
    assert found.error <= 0.10


@pytest.mark.engine
@pytest.mark.parametrize(
    ("options", "number"),
    [({"num_speakers": 3}, 3), ({"max_speakers": 1}, 1), ({"min_speakers": 3}, 3), ({"threshold": 1.0}, 1)],
)
def test_what_is_said_of_the_speakers_is_heeded(
    clustering: SpeakerClusteringSession, join: Join, options: dict[str, OptionValue], number: int
) -> None:
    turns = clustering.run(TaskRequest(audio=join(TWO)[0], options=options)).speaker_turns
    assert {turn.speaker_id for turn in turns} == {f"SPEAKER_{index:02}" for index in range(number)}


@pytest.mark.engine
def test_turns_are_in_order_apart_and_inside_the_recording(clustering: SpeakerClusteringSession, join: Join) -> None:
    audio, _ = join(THREE)
    edges = [
        edge
        for turn in clustering.run(TaskRequest(audio=audio)).speaker_turns
        for edge in (turn.start_sample, turn.end_sample)
    ]
    assert edges == sorted(edges)
    assert 0 <= edges[0] < edges[-1] <= audio.frames


@pytest.mark.engine
@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.5, 5.0])
def test_silence_has_no_speakers(clustering: SpeakerClusteringSession, seconds: float) -> None:
    silence = Pcm.from_bytes(bytes(4 * round(seconds * RATE)), RATE)
    assert clustering.run(TaskRequest(audio=silence)) == TaskResult(sample_rate=RATE)


@pytest.mark.engine
@pytest.mark.parametrize("frames", [1, 16, 160, 800, 1584])
def test_a_scrap_has_no_speaker(  # AUD-12
    clustering: SpeakerClusteringSession, spoken: Spoken, sentences: Sequence[str], frames: int
) -> None:
    scrap = Pcm(spoken(sentences[0]).samples[RATE : RATE + frames], RATE)
    assert clustering.run(TaskRequest(audio=scrap)) == TaskResult(sample_rate=RATE)


@pytest.mark.engine
def test_a_quiet_recording_and_one_with_a_broken_sample_are_heard(
    clustering: SpeakerClusteringSession, join: Join
) -> None:
    audio, truth = join("AB")
    samples = np.frombuffer(audio.samples.cast("B"), np.float32) / 30
    samples[0] = np.nan
    turns = clustering.run(TaskRequest(audio=Pcm.from_bytes(samples.astype(np.float32).tobytes(), RATE))).speaker_turns
    assert score(truth, turns).confusion <= 0.02


@pytest.mark.engine
def test_a_stream_tells_all_turns_at_once_and_then_the_whole(clustering: SpeakerClusteringSession, join: Join) -> None:
    request = TaskRequest(audio=join("AB")[0])
    delta, final = clustering.stream(request, None)
    assert isinstance(delta, TurnsDelta)
    assert isinstance(final, Final)
    assert delta.turns == final.result.speaker_turns == clustering.run(request).speaker_turns


@pytest.mark.engine
def test_a_cancelled_request_tells_nothing(clustering: SpeakerClusteringSession, join: Join) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    result = clustering.run(TaskRequest(audio=join("AB")[0], cancellation=cancellation))
    assert result.speaker_turns == ()


class Counted:
    """A network whose runs are counted, and told."""

    def __init__(self, network: InferenceSession, called: Callable[[], None]) -> None:
        self._network = network
        self._called = called
        self.runs = 0

    def run(self, *args: object) -> object:
        self.runs += 1
        self._called()
        return self._network.run(*args)


def test_a_client_that_leaves_while_speech_is_looked_for_ends_it_with_the_block_at_hand(
    clustering: SpeakerClusteringSession,
) -> None:
    cancellation = Cancellation()
    weights = clustering._open
    detector = Counted(weights.detector, cancellation.cancel)
    session = SpeakerClusteringSession(replace(weights, detector=detector), clustering.mode)
    minute = Pcm.from_bytes(bytes(4 * 60 * RATE), RATE)
    assert session.run(TaskRequest(audio=minute, cancellation=cancellation)) == TaskResult(sample_rate=RATE)
    assert detector.runs == 1


@pytest.mark.engine
def test_recordings_on_four_slots_have_the_turns_that_they_have_serially(
    clustering: SpeakerClusteringSession,
    clustering_model: LoadedModel,
    join: Join,
    answers_of_four: Callable[[LoadedModel, Sequence[TaskRequest]], list[TaskResult]],
) -> None:
    joins = [join(speakers)[0] for speakers in ("AB", "BA", "CA", "AC", "BC", "CB", "ABC", "CBA")]
    requests = [TaskRequest(audio=audio) for audio in joins]
    serial = [clustering.run(request) for request in requests]
    assert len(set(serial)) == len(joins)
    assert answers_of_four(clustering_model, requests) == serial


@pytest.mark.engine
@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"num_speakers": 0}, "num_speakers"),
        ({"max_speakers": 33}, "max_speakers"),
        ({"min_speakers": 3, "max_speakers": 2}, "min_speakers"),
        ({"min_speakers": 9, "max_speakers": 8}, "min_speakers"),
        ({"num_speakers": 2, "max_speakers": 3}, "num_speakers"),
        ({"threshold": 1.1}, "threshold"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(
    clustering: SpeakerClusteringSession, options: dict[str, OptionValue], param: str
) -> None:
    silence = Pcm.from_bytes(bytes(4 * RATE), RATE)
    with pytest.raises(InvalidRequest) as refusal:
        clustering.prepare(TaskRequest(audio=silence, options=options))
    assert refusal.value.param == param


@pytest.mark.engine
def test_live_audio_is_refused(clustering: SpeakerClusteringSession) -> None:
    with pytest.raises(InvalidRequest, match="no live audio"):
        clustering.prepare(TaskRequest(live=True))


@pytest.mark.parametrize(
    "changes",
    [{"task": Task.ASR}, {"device": "cuda"}, {"load_options": {"x": 1}}, {"session_options": {"x": 1}}],
)
def test_a_model_that_cannot_be_is_refused(tmp_path, changes) -> None:
    for name in ("speaker_encoder.onnx", "silero_vad_v6.onnx"):
        (tmp_path / name).write_bytes(b"network")
    spec = {"id": "d", "family": "speaker_clustering", "path": str(tmp_path), "task": Task.DIAR}
    assert SpeakerClusteringAdapter().inspect(ModelSpec(**spec)).weight_bytes > 0
    with pytest.raises(ConfigError):
        SpeakerClusteringAdapter().inspect(ModelSpec(**{**spec, **changes}))
