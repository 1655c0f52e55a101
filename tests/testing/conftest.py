"""A controlled checkpoint for each test, and sessions over it that are closed at the end."""

from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.testing import ControlledAdapter, ControlledCheckpoint
from antiphon.testing.answers import RATE
from antiphon.testing.controlled import ControlledModel, ControlledSession
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.tasks import Task

OpenSession = Callable[[Task], ControlledSession]


@pytest.fixture
def checkpoint(tmp_path: Path) -> ControlledCheckpoint:
    return ControlledCheckpoint(tmp_path / "tts-v1")


@pytest.fixture
def model(checkpoint: ControlledCheckpoint) -> ControlledModel:
    return ControlledAdapter().load(checkpoint.spec())


@pytest.fixture
def session(model: ControlledModel) -> ControlledSession:
    opened = model.open_session()
    assert opened is not None
    return opened


@pytest.fixture
def open_session(checkpoint: ControlledCheckpoint) -> OpenSession:
    def open_one(task: Task) -> ControlledSession:
        opened = ControlledAdapter().load(checkpoint.spec(task)).open_session()
        assert opened is not None
        return opened

    return open_one


@pytest.fixture
def second_of_silence() -> Pcm:
    return Pcm(memoryview(array("f", [0.0] * RATE)), RATE)
