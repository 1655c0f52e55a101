"""The controlled adapter passes the suite that it ships with, for each task."""

from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.ports.adapter import Adapter
from antiphon.testing import ControlledAdapter, ControlledCheckpoint
from antiphon.testing.adapter_suite import AdapterTests
from antiphon.testing.answers import RATE
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task, TaskRequest, TaskResult


@pytest.mark.parametrize("task", list(Task))
class TestControlledAdapter(AdapterTests):
    @pytest.fixture
    def adapter(self) -> Adapter:
        return ControlledAdapter()

    @pytest.fixture
    def spec(self, tmp_path: Path, task: Task) -> ModelSpec:
        return ControlledCheckpoint(tmp_path / "model").spec(task, slots=4)

    @pytest.fixture
    def requests(self) -> Sequence[TaskRequest]:
        silence = Pcm(memoryview(array("f", [0.0] * RATE)), RATE)
        return [TaskRequest(text=text, audio=silence) for text in ("one", "two words", "three")]

    @pytest.fixture
    def bad_request(self, task: Task) -> TaskRequest:
        return TaskRequest(text=None if task is Task.TTS else "no audio")

    def comparable(self, result: TaskResult) -> object:
        """Without the session's name, which is different on purpose."""
        revision, _, text = (result.text or "").split("|")
        words = tuple(replace(word, text="") for word in result.words)
        segments = tuple(replace(segment, text="") for segment in result.segments)
        return replace(result, text=f"{revision}|{text}", segments=segments, words=words)
