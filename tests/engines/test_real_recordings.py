"""People, not Piper: words and voices are told as well in real recordings."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import jiwer
import numpy as np
import pytest
from numpy.typing import NDArray

from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import SpeakerTurn, Task, TaskRequest
from antiphon_adapters.speaker_clustering import SpeakerClusteringAdapter
from antiphon_adapters.speaker_clustering.session import SpeakerClusteringSession
from antiphon_adapters.whisper.session import WhisperSession
from diarization_score import score
from engine_server import words_of
from real_recordings import RATE, WORDS, recording

pytestmark = pytest.mark.engine

Samples = NDArray[np.float32]

PIECES = {
    "A": ("two_cities", ((0.9, 4.9), (10.0, 14.0), (20.0, 24.0))),
    "B": ("clone-test", ((0.45, 4.1),) * 2),
    "C": ("endgame_nagg_nell", ((8.6, 11.6), (14.5, 17.2))),
}
"""Where each of three speakers is alone, without the noise before they begin. Units: seconds."""
FRAME = RATE // 100
QUIET = 0.02
"""Of a piece's loudest sample: what is below does not sound."""
PAUSE = 3 * RATE // 10
"""Who is silent for as long does not speak; so long are the joins, too."""


@pytest.fixture(scope="module")
def clustering(installed: Callable[[str], str]) -> Iterator[SpeakerClusteringSession]:
    model = SpeakerClusteringAdapter().load(
        ModelSpec("turns", "speaker_clustering", installed("speaker-turns"), Task.DIAR)
    )
    session = model.open_session()
    assert isinstance(session, SpeakerClusteringSession)
    yield session
    model.close()


def pcm(samples: Samples) -> Pcm:
    return Pcm.from_bytes(samples.astype(np.float32).tobytes(), RATE)


def joined(speakers: str) -> tuple[Pcm, list[SpeakerTurn]]:
    """Pieces one after another, a letter for each one's speaker, and who speaks when, by what sounds."""
    pieces: list[Samples] = []
    turns: list[SpeakerTurn] = []
    at = 0
    for place, speaker in enumerate(speakers):
        name, spans = PIECES[speaker]
        start, end = spans[speakers[:place].count(speaker)]
        piece = recording(name)[round(start * RATE) : round(end * RATE)]
        turns += [SpeakerTurn(at + begins, at + ends, speaker) for begins, ends in sounding(piece)]
        pieces += [piece, np.zeros(PAUSE, np.float32)]
        at += len(piece) + PAUSE
    return pcm(np.concatenate(pieces)), turns


def sounding(piece: Samples) -> list[tuple[int, int]]:
    """The stretches of a piece without a pause."""
    loudest = np.abs(piece[: len(piece) // FRAME * FRAME]).reshape(-1, FRAME).max(axis=1)
    frames = np.flatnonzero(loudest > QUIET * loudest.max()) * FRAME
    cuts = [place for place, (one, other) in enumerate(pairwise(frames), 1) if other - one > PAUSE]
    return [(int(part[0]), int(part[-1]) + FRAME) for part in np.split(frames, cuts)]


@pytest.mark.parametrize("model", ["whisper", "multilingual"])
def test_words_that_people_say_are_heard(request: pytest.FixtureRequest, model: str) -> None:
    session: WhisperSession = request.getfixturevalue(model)
    heard = [session.run(TaskRequest(audio=pcm(recording(name)), language="en")).text or "" for name in WORDS]
    assert jiwer.wer([words_of(text) for text in WORDS.values()], [words_of(text) for text in heard]) <= 0.06


@pytest.mark.parametrize(("speakers", "number"), [("ABABA", 2), ("ABCACB", 3)])
def test_people_are_told_apart_with_few_errors(
    clustering: SpeakerClusteringSession, speakers: str, number: int
) -> None:
    audio, truth = joined(speakers)
    found = score(truth, clustering.run(TaskRequest(audio=audio)).speaker_turns)
    assert found.speakers == number
    assert found.confusion <= 0.02
    assert found.error <= 0.10


def test_a_dialogue_has_two_speakers_who_take_turns(clustering: SpeakerClusteringSession) -> None:
    turns = clustering.run(TaskRequest(audio=pcm(recording("endgame_nagg_nell")))).speaker_turns
    assert len({turn.speaker_id for turn in turns}) == 2
    assert len(turns) > 10
    assert all(one.speaker_id != other.speaker_id for one, other in pairwise(turns))
