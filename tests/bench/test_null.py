"""The family that does nothing is an adapter like any other."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from antiphon.bench.null import FAMILY, TARGET, NullAdapter
from antiphon.ports.adapter import Adapter
from antiphon.runtime.discovery import AdapterFinder
from antiphon.testing.adapter_suite import AdapterTests
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task, TaskRequest


class TestNullAdapter(AdapterTests):
    @pytest.fixture
    def adapter(self) -> Adapter:
        return NullAdapter()

    @pytest.fixture
    def spec(self, tmp_path: Path) -> ModelSpec:
        return ModelSpec(id="null", family=FAMILY, path=str(tmp_path), task=Task.TTS, slots=4)

    @pytest.fixture
    def requests(self) -> Sequence[TaskRequest]:
        return [TaskRequest(text="one"), TaskRequest(text="two")]

    @pytest.fixture
    def bad_request(self) -> TaskRequest:
        return TaskRequest()


def test_the_flag_of_the_null_family_finds_it() -> None:
    assert isinstance(AdapterFinder([TARGET]).find(FAMILY), NullAdapter)
