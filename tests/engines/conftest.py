"""Installed models, sessions over them, and speech that Piper makes: no recording is needed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import soxr
from numpy.typing import NDArray

from antiphon.packages.root import default_models_root
from antiphon.ports.adapter import LoadedModel, OfflineSession, Session
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task, TaskRequest, TaskResult
from antiphon_adapters.piper import PiperAdapter
from antiphon_adapters.piper.session import PiperSession
from antiphon_adapters.whisper import WhisperAdapter
from antiphon_adapters.whisper.session import WhisperSession

WHISPER_RATE = 16000

SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "We walked along the river until the sun went down.",
    "There is a small garden behind the house.",
    "Can you tell me the way to the station?",
)
"""Four that the smallest Whisper model hears without a fault."""

MORE_SENTENCES = (
    *SENTENCES,
    "Nobody knew where the old map had come from.",
    "Please call me tomorrow at half past nine.",
    "His brother plays the piano very well.",
    "The train to the city leaves in ten minutes.",
    "Put the letters on the table by the door.",
    "It has been raining since early this morning.",
    "A good book is the best company.",
    "They painted the kitchen walls a bright yellow.",
    "She sells fresh bread and butter in the morning.",
    "My father taught me how to swim.",
    "The children laughed at the funny story.",
    "Winter came late to the mountains.",
)
"""Sixteen different ones."""


def samples_of(pcm: Pcm) -> NDArray[np.float32]:
    return np.frombuffer(pcm.samples.cast("B"), np.float32)


def pcm_of(samples: NDArray[np.floating], rate: int = WHISPER_RATE) -> Pcm:
    return Pcm.from_bytes(np.ascontiguousarray(samples, np.float32).tobytes(), rate)


@pytest.fixture(scope="session")
def installed() -> Callable[[str], str]:
    """The folder of an installed model of the default catalogue, which must be there."""

    def find(name: str) -> str:
        folder = default_models_root() / name
        if not folder.is_dir():
            pytest.fail(f"the model {name} is not installed: run make setup")
        return str(folder)

    return find


@pytest.fixture(scope="session")
def piper_spec(installed: Callable[[str], str]) -> ModelSpec:
    return ModelSpec("joe", "piper", installed("piper-en-joe"), Task.TTS, slots=4)


@pytest.fixture(scope="session")
def piper_model(piper_spec: ModelSpec) -> Iterator[LoadedModel]:
    model = PiperAdapter().load(piper_spec)
    yield model
    model.close()


@pytest.fixture
def piper(piper_model: LoadedModel) -> Iterator[PiperSession]:
    session = piper_model.open_session()
    assert isinstance(session, PiperSession)
    yield session
    session.close()


@pytest.fixture(scope="session")
def whisper_spec(installed: Callable[[str], str]) -> ModelSpec:
    return ModelSpec("tiny", "whisper", installed("whisper-tiny-en"), Task.ASR, slots=4)


@pytest.fixture(scope="session")
def whisper_model(whisper_spec: ModelSpec) -> Iterator[LoadedModel]:
    model = WhisperAdapter().load(whisper_spec)
    yield model
    model.close()


@pytest.fixture
def whisper(whisper_model: LoadedModel) -> Iterator[WhisperSession]:
    session = whisper_model.open_session()
    assert isinstance(session, WhisperSession)
    yield session
    session.close()


@pytest.fixture(scope="session")
def multilingual(installed: Callable[[str], str]) -> Iterator[WhisperSession]:
    model = WhisperAdapter().load(ModelSpec("base", "whisper", installed("whisper-base"), Task.ASR))
    session = model.open_session()
    assert isinstance(session, WhisperSession)
    yield session
    session.close()
    model.close()


@pytest.fixture(scope="session")
def spoken(piper_model: LoadedModel) -> Callable[[str], Pcm]:
    """A sentence as 16 kHz mono speech."""
    session = piper_model.open_session()
    assert isinstance(session, PiperSession)
    made: dict[str, Pcm] = {}

    def speak(text: str) -> Pcm:
        if text not in made:
            audio = session.run(TaskRequest(text=text)).audio
            assert audio is not None
            made[text] = pcm_of(soxr.resample(samples_of(audio), audio.rate, WHISPER_RATE))
        return made[text]

    return speak


@pytest.fixture
def answers_of_four() -> Callable[[LoadedModel, Sequence[TaskRequest]], list[TaskResult]]:
    """The answers that four sessions over one model give at the same time, in the order of the requests."""

    def ask(model: LoadedModel, requests: Sequence[TaskRequest]) -> list[TaskResult]:
        primary = model.open_session()
        assert primary is not None
        sessions: list[Session] = [primary]
        for _ in range(3):
            clone = primary.clone()
            assert clone is not None
            sessions.append(clone)

        def work(slot: int) -> list[TaskResult]:
            session = sessions[slot]
            assert isinstance(session, OfflineSession)
            answers = []
            for request in requests[slot::4]:
                session.prepare(request)
                answers.append(session.run(request))
            return answers

        with ThreadPoolExecutor(4) as pool:
            shares = list(pool.map(work, range(4)))
        return [shares[place % 4][place // 4] for place in range(len(requests))]

    return ask


@pytest.fixture
def sentences() -> Sequence[str]:
    return SENTENCES


@pytest.fixture(scope="session")
def sixteen_sentences() -> Sequence[str]:
    return MORE_SENTENCES


@pytest.fixture
def tiny_voice(tmp_path: Path) -> Callable[..., Path]:
    """Builds the folder of a voice that spells letters and hums; see `tiny_piper.py`."""
    from tiny_piper import build_voice

    def build(**changes: object) -> Path:
        return build_voice(tmp_path / "voice", **changes)  # type: ignore[arg-type]  # passed on as they are

    return build


@pytest.fixture
def tiny_canary(tmp_path: Path) -> Callable[..., Path]:
    """Builds the folder of a Canary model that hears nonsense; see `tiny_canary.py`."""
    from tiny_canary import build_canary

    def build(**changes: object) -> Path:
        return build_canary(tmp_path / "canary", **changes)  # type: ignore[arg-type]  # passed on as they are

    return build


@pytest.fixture
def tiny_diarizer(tmp_path: Path) -> Callable[..., Path]:
    """Builds the file of a streaming diarizer that mistakes noise for people; see `tiny_diarizer.py`."""
    from tiny_diarizer import Kind, build_diarizer

    def build(kind: Kind, metadata: Mapping[str, object] | None = None, **changes: bool) -> Path:
        return build_diarizer(tmp_path / f"{kind}.onnx", kind, metadata, **changes)

    return build
