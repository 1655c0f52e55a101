"""The engines pass the suite that antiphon ships for adapters."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from antiphon.ports.adapter import Adapter, LoadedModel
from antiphon.testing.adapter_suite import AdapterTests
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task, TaskRequest
from antiphon_adapters.canary import CanaryAdapter
from antiphon_adapters.nemotron_diar import NemotronDiarAdapter
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


class TestCanaryAdapter(AdapterTests):
    @pytest.fixture
    def adapter(self) -> Adapter:
        return CanaryAdapter()

    @pytest.fixture
    def spec(self, tiny_canary: Callable[..., Path]) -> ModelSpec:
        return ModelSpec("tiny", "canary", str(tiny_canary()), Task.ASR, slots=4)

    @pytest.fixture
    def requests(self) -> Sequence[TaskRequest]:
        return [TaskRequest(audio=noise(seconds), language="de") for seconds in (2.0, 35.0)]

    @pytest.fixture
    def bad_request(self) -> TaskRequest:
        return TaskRequest(text="no audio")


class TestNemotronDiarAdapter(AdapterTests):
    @pytest.fixture(params=["sortformer", "nemotron_hr"])
    def spec(self, request: pytest.FixtureRequest, tiny_diarizer: Callable[..., Path]) -> ModelSpec:
        return ModelSpec("tiny", "nemotron_diar", str(tiny_diarizer(request.param)), Task.DIAR, slots=4)

    @pytest.fixture
    def adapter(self) -> Adapter:
        return NemotronDiarAdapter()

    @pytest.fixture
    def requests(self) -> Sequence[TaskRequest]:
        return [TaskRequest(audio=noise(seconds)) for seconds in (3.0, 5.5)]

    @pytest.fixture
    def bad_request(self) -> TaskRequest:
        return TaskRequest(text="no audio")


def noise(seconds: float) -> Pcm:
    samples = np.random.Generator(np.random.PCG64(5)).standard_normal(round(seconds * 16000)) * 0.1
    return Pcm.from_bytes(samples.astype(np.float32).tobytes(), 16000)
