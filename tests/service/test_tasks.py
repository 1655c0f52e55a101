"""The generic task as a use case."""

import io

import pytest

from antiphon.service.tasks import Heard, TaskOrder, TaskService
from antiphon.vocabulary.errors import EngineError, InvalidRequest, ModelNotFound, TooLarge
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Task

NOTHING = Heard()


@pytest.fixture
def service(stage):
    return TaskService(stage.runtime, stage.codec, max_text_chars=20)


async def test_a_task_that_speaks_answers_a_whole_wav(stage, service):
    stage.model()
    done = await service.run(TaskOrder("a", text="hello"), NOTHING, lambda it: it)
    with done.encoded.body as body:
        assert body.read(4) == b"RIFF"
    assert done.result.text.endswith("|hello")


@pytest.mark.parametrize("task", [Task.ASR, Task.DIAR, Task.VAD, Task.ALIGN])
async def test_a_task_that_hears_answers_no_audio(stage, service, wav, task):
    stage.model(task=task)
    done = await service.run(TaskOrder("a", text="hello"), Heard(wav()), lambda it: it)
    assert done.encoded is None
    assert done.result.sample_rate == 16_000


async def test_an_answer_is_rendered_while_its_slot_is_held(stage, service, wav):
    stage.model(task=Task.ASR)
    assert await service.run(TaskOrder("a"), Heard(wav()), lambda _: stage.runtime.view("a").active_slots) == 1


@pytest.mark.parametrize(("task", "param"), [(Task.TTS, "request.text"), (Task.ASR, "request.audio")])
async def test_a_task_without_what_it_works_on_is_refused_and_loads_nothing(stage, service, task, param):
    stage.model(task=task)
    with pytest.raises(InvalidRequest) as caught:
        await service.run(TaskOrder("a"), NOTHING, lambda it: it)
    assert caught.value.param == param
    assert stage.state() is ModelState.UNLOADED


async def test_a_blank_text_and_one_over_the_limit_are_refused(stage, service):
    stage.model()
    with pytest.raises(InvalidRequest) as caught:
        await service.run(TaskOrder("a", text=" "), NOTHING, lambda it: it)
    assert caught.value.param == "request.text"
    with pytest.raises(TooLarge):
        await service.run(TaskOrder("a", text="x" * 21), NOTHING, lambda it: it)


async def test_an_unknown_model_is_refused_before_anything_is_decoded(service):
    with pytest.raises(ModelNotFound):
        await service.run(TaskOrder("nobody"), Heard(io.BytesIO(b"certainly no audio")), lambda it: it)


@pytest.mark.parametrize(
    ("order", "param"),
    [
        (TaskOrder("a", text="hello", options={"beams": 5}), "request.options.beams"),
        (TaskOrder("a", text="hello", voice="coco"), "voice"),
    ],
)
async def test_what_the_model_does_not_take_is_refused_by_its_name(stage, service, order, param):
    stage.model()
    with pytest.raises(InvalidRequest) as caught:
        await service.run(order, NOTHING, lambda it: it)
    assert caught.value.param == param


async def test_a_stream_whose_encoder_cannot_be_opened_leaves_no_lease(stage, service, monkeypatch):
    def refuse(*_):
        raise EngineError("no encoder")

    stage.model()
    monkeypatch.setattr(stage.codec, "open_encoder", refuse)
    with pytest.raises(EngineError) as caught:
        await service.stream(TaskOrder("a", text="hello"), NOTHING)
    assert caught.value.__traceback__ is not None  # which keeps the stream: its lease is not left to its end
    assert stage.runtime.view("a").active_slots == 0
