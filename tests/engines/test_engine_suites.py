"""Both engines pass the suite that antiphon ships for adapters."""

from collections.abc import Callable, Sequence

import pytest

from antiphon.ports.adapter import Adapter, LoadedModel
from antiphon.testing.adapter_suite import AdapterTests
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import TaskRequest
from antiphon_adapters.piper import PiperAdapter
from antiphon_adapters.whisper import WhisperAdapter


@pytest.mark.engine
class TestPiperAdapter(AdapterTests):
    @pytest.fixture
    def adapter(self) -> Adapter:
        return PiperAdapter()

    @pytest.fixture
    def spec(self, piper_spec: ModelSpec) -> ModelSpec:
        return piper_spec

    @pytest.fixture
    def loaded(self, piper_model: LoadedModel) -> LoadedModel:
        return piper_model

    @pytest.fixture
    def requests(self) -> Sequence[TaskRequest]:
        return [TaskRequest(text="One. Two."), TaskRequest(text="Three, four.", seed=3)]

    @pytest.fixture
    def bad_request(self) -> TaskRequest:
        return TaskRequest(text="...")


@pytest.mark.engine
class TestWhisperAdapter(AdapterTests):
    @pytest.fixture
    def adapter(self) -> Adapter:
        return WhisperAdapter()

    @pytest.fixture
    def spec(self, whisper_spec: ModelSpec) -> ModelSpec:
        return whisper_spec

    @pytest.fixture
    def loaded(self, whisper_model: LoadedModel) -> LoadedModel:
        return whisper_model

    @pytest.fixture
    def requests(self, spoken: Callable[[str], Pcm], sentences: Sequence[str]) -> Sequence[TaskRequest]:
        return [TaskRequest(audio=spoken(sentence), options={"word_timestamps": True}) for sentence in sentences[:2]]

    @pytest.fixture
    def bad_request(self) -> TaskRequest:
        return TaskRequest(text="no audio")
