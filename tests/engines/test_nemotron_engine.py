"""Tiny diarizers tell who speaks when: live as offline, however the audio is cut, the same on every slot."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.ports.adapter import LoadedModel
from antiphon.vocabulary.audio import AudioChunk, Pcm
from antiphon.vocabulary.errors import ClientLeft, InvalidRequest
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import (
    Cancellation,
    Final,
    SpeakerTurn,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
    TurnsDelta,
)
from antiphon_adapters.nemotron_diar import NemotronDiarAdapter
from antiphon_adapters.nemotron_diar.hearing import Hearing
from antiphon_adapters.nemotron_diar.mel import MelStream
from antiphon_adapters.nemotron_diar.session import NemotronDiarSession
from tiny_diarizer import SPEAKERS, Kind, weights
from tiny_diarizer_reference import NEMOTRON_RULES, SORTFORMER_RULES, Memory, Model, probabilities, turns

RATE = 16000
FourAnswers = Callable[[LoadedModel, Sequence[TaskRequest]], list[TaskResult]]


def voices(seconds: float, seed: int = 1) -> NDArray[np.float32]:
    """Noise whose colour and loudness change every now and then."""
    random = np.random.Generator(np.random.PCG64(seed))
    parts: list[NDArray[np.floating]] = []
    while sum(map(len, parts)) < seconds * RATE:
        length = int(random.uniform(0.4, 2.5) * RATE)
        colour = random.standard_normal(9)
        parts.append(np.convolve(random.standard_normal(length), colour, "same") * 10 ** random.uniform(-3, -1))
    return np.concatenate(parts)[: round(seconds * RATE)].astype(np.float32)


def pcm_of(samples: NDArray[np.float32]) -> Pcm:
    return Pcm.from_bytes(samples.tobytes(), RATE)


def chunks(samples: NDArray[np.float32], largest: int, seed: int = 0) -> Iterator[AudioChunk]:
    """The samples in pieces of any size up to the largest, none among them."""
    random = np.random.Generator(np.random.PCG64(seed))
    at = 0
    while at < len(samples):
        size = int(random.integers(0, largest + 1))
        piece = samples[at : at + size]
        yield AudioChunk(pcm_of(piece), at)
        at += len(piece)


def live(session: NemotronDiarSession, audio: Iterator[AudioChunk]) -> list[StreamEvent]:
    request = TaskRequest(live=True)
    session.prepare(request)
    events = list(session.stream(request, audio))
    session.reset()
    return events


def final(events: Sequence[StreamEvent]) -> TaskResult:
    assert isinstance(events[-1], Final)
    return events[-1].result


def in_order(found: Sequence[SpeakerTurn]) -> list[SpeakerTurn]:
    return sorted(found, key=lambda turn: (turn.start_sample, turn.speaker_id))


@pytest.fixture(params=SPEAKERS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def model(tiny_diarizer: Callable[..., Path], kind: Kind) -> Iterator[LoadedModel]:
    loaded = NemotronDiarAdapter().load(
        ModelSpec("tiny", "nemotron_diar", str(tiny_diarizer(kind)), Task.DIAR, slots=4)
    )
    yield loaded
    loaded.close()


@pytest.fixture
def diarizer(model: LoadedModel) -> Iterator[NemotronDiarSession]:
    session = model.open_session()
    assert isinstance(session, NemotronDiarSession)
    yield session
    session.close()


# What is told.


@pytest.mark.parametrize("seconds", [0.05, 1.0, 7.613])
def test_turns_are_those_of_the_reference(diarizer: NemotronDiarSession, kind: Kind, seconds: float) -> None:
    samples = voices(seconds)
    stream, files = MelStream(), diarizer._open.files
    features = np.concatenate([*stream.feed(samples), stream.finish()])
    numbers = {name: matrix.tolist() for name, matrix in weights(kind).items()}
    schedule = {name: getattr(files.schedule, name) for name in files.schedule.__dataclass_fields__}
    learned, fine = (None, False) if kind == "sortformer" else (numbers["silence"], True)
    slow = Model(numbers, schedule, files.schedule.sil_frames, learned, fine)
    odds = probabilities(slow, features.tolist(), Memory())
    expected = turns(odds, NEMOTRON_RULES if fine else SORTFORMER_RULES, len(samples))

    result = diarizer.run(TaskRequest(audio=pcm_of(samples)))

    assert seconds < 5 or len(expected) > 2
    assert result.sample_rate == RATE
    assert [
        (turn.start_sample, turn.end_sample, int(turn.speaker_id.removeprefix("SPEAKER_")))
        for turn in result.speaker_turns
    ] == expected


@pytest.mark.parametrize("frames", [0, 1, 16, 159, 160, 800, 1584])
def test_a_scrap_has_no_turn_beyond_its_end(diarizer: NemotronDiarSession, frames: int) -> None:  # AUD-12
    result = diarizer.run(TaskRequest(audio=pcm_of(voices(1.0)[:frames])))
    assert all(turn.end_sample <= frames for turn in result.speaker_turns)
    assert frames >= 160 or result.speaker_turns == ()


# Live.


@pytest.mark.parametrize("largest", [1, 333, 5000, 100_000])
def test_live_turns_are_those_of_the_recording_however_it_is_cut(diarizer: NemotronDiarSession, largest: int) -> None:
    samples = voices(0.7 if largest == 1 else 9.371)
    whole = diarizer.run(TaskRequest(audio=pcm_of(samples)))
    uploaded = list(diarizer.stream(TaskRequest(audio=pcm_of(samples)), None))

    events = live(diarizer, chunks(samples, largest))

    assert events == uploaded
    assert tuple(in_order(final(events).speaker_turns)) == whole.speaker_turns
    told = [turn for event in events if isinstance(event, TurnsDelta) for turn in event.turns]
    assert tuple(told) == final(events).speaker_turns


def test_turns_are_told_while_somebody_still_speaks(diarizer: NemotronDiarSession) -> None:
    samples = voices(12.0)
    taken: list[int] = []

    def speaking() -> Iterator[AudioChunk]:
        for chunk in chunks(samples, 1600):
            taken.append(chunk.offset)
            yield chunk

    events = diarizer.stream(TaskRequest(live=True), speaking())
    first = next(events)
    assert isinstance(first, TurnsDelta)
    assert taken[-1] < len(samples) // 2
    assert all(turn.end_sample <= taken[-1] + 1600 for turn in first.turns)


def test_a_stream_keeps_as_much_after_a_minute_as_after_seconds(diarizer: NemotronDiarSession) -> None:
    hearing, schedule = Hearing(diarizer._open), diarizer._open.files.schedule
    for _ in range(60):
        list(hearing.feed(voices(1.0)))
        assert len(hearing._features) <= 8 * (schedule.chunk_len + schedule.right_context)
        assert len(hearing._mel._emphasised) < 1520
        assert len(hearing._memory.cache) <= schedule.spkcache_len
        assert len(hearing._memory.fifo) <= schedule.fifo_len
        assert not any(voice.done for voice in hearing._turns._voices)


def test_live_audio_that_says_nothing_has_no_turns(diarizer: NemotronDiarSession) -> None:
    assert final(live(diarizer, iter(()))).speaker_turns == ()


def test_a_fault_of_the_audio_is_passed_on_and_the_session_stays_fit(diarizer: NemotronDiarSession) -> None:
    before = diarizer.run(TaskRequest(audio=pcm_of(voices(3.0))))

    def leaving() -> Iterator[AudioChunk]:
        yield from chunks(voices(2.0), 4000)
        raise ClientLeft("gone")

    with pytest.raises(ClientLeft):
        live(diarizer, leaving())
    diarizer.reset()
    assert diarizer.run(TaskRequest(audio=pcm_of(voices(3.0)))) == before


def test_a_cancelled_request_ends_after_the_step_at_hand(diarizer: NemotronDiarSession) -> None:
    gone = Cancellation()
    gone.cancel()
    hearing = diarizer.run(TaskRequest(audio=pcm_of(voices(30.0)), cancellation=gone))
    schedule = diarizer._open.files.schedule
    assert all(turn.end_sample <= schedule.chunk_len * 1280 for turn in hearing.speaker_turns)


# Sameness.


def test_sixteen_recordings_on_four_slots_are_told_as_they_are_serially(
    model: LoadedModel, diarizer: NemotronDiarSession, answers_of_four: FourAnswers
) -> None:
    requests = [TaskRequest(audio=pcm_of(voices(2 + seed / 5, seed))) for seed in range(16)]
    serial = [diarizer.run(request) for request in requests]
    assert len({result.speaker_turns for result in serial}) == 16
    assert answers_of_four(model, requests) == serial


def test_all_slots_share_one_set_of_weights_whatever_their_schedule(
    tiny_diarizer: Callable[..., Path], model: LoadedModel, diarizer: NemotronDiarSession
) -> None:
    assert diarizer.clone()._open is diarizer._open
    path = str(diarizer._open.files.graph)
    probe = model.open_session(ModelSpec("tiny", "nemotron_diar", path, Task.DIAR, session_options={"chunk_len": 3}))
    assert isinstance(probe, NemotronDiarSession)
    assert probe._open.graph is diarizer._open.graph
    assert probe._open.files.schedule.chunk_len == 3


# What is refused.


def test_a_request_without_audio_is_refused(diarizer: NemotronDiarSession) -> None:
    with pytest.raises(InvalidRequest, match="no audio"):
        diarizer.prepare(TaskRequest())


def test_audio_at_another_rate_is_refused(diarizer: NemotronDiarSession) -> None:
    wrong = Pcm.from_bytes(bytes(4000), 8000)
    with pytest.raises(InvalidRequest, match="16000 Hz mono"):
        diarizer.prepare(TaskRequest(audio=wrong))
    with pytest.raises(InvalidRequest, match="16000 Hz mono"):
        live(diarizer, iter([AudioChunk(wrong, 0)]))
