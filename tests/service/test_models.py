"""Managing models as a use case: what is allowed, and to whom."""

import pytest

from antiphon.runtime.parallel import ParallelServerState
from antiphon.runtime.serial import ServerState
from antiphon.service.models import ModelService
from antiphon.vocabulary.errors import Forbidden, InvalidRequest, ModelNotFound
from runtime_stage import Kind, Stage


@pytest.fixture
def service(stage):
    return ModelService(stage.runtime, management=True)


async def test_clients_may_not_manage_unless_they_are_allowed_to(stage):
    stage.model()
    service = ModelService(stage.runtime, management=False)
    for attempt in (service.load("a", {}, None), service.unload("nobody", None)):
        with pytest.raises(Forbidden):
            await attempt
    assert [view.loaded for view in service.views()] == [False]


async def test_a_model_is_loaded_and_unloaded(stage, service):
    stage.model()
    assert (await service.load("a", {}, None)).loaded
    assert not (await service.unload("a", None)).loaded


async def test_an_unknown_model_is_not_found_for_an_unload_and_cannot_be_added_by_a_load(service):
    with pytest.raises(ModelNotFound):
        await service.unload("nobody", None)
    with pytest.raises(InvalidRequest, match="cannot be added") as caught:
        await service.load("nobody", {}, None)
    assert caught.value.param == "id"


async def test_a_load_may_repeat_what_is_registered(stage, service):
    checkpoint = stage.model(busy_timeout_ms=5)
    given = {
        "family": "controlled",
        "path": f"{checkpoint.path}/../{checkpoint.path.name}",
        "task": "tts",
        "mode": "offline",
        "slots": 1,
        "threads": 1,
        "lazy": True,
        "busy_timeout_ms": 5,
        "load_options": {},
    }
    assert (await service.load("a", given, None)).loaded


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", "asr"),
        ("path", "/elsewhere"),
        ("slots", 2),
        ("slots", True),  # to Python, True is 1
        ("slots", None),
        ("lazy", 1),
        ("device", "cpu"),
        ("colour", "red"),
    ],
)
async def test_a_load_that_differs_from_what_is_registered_is_refused_by_the_fields_name(stage, service, field, value):
    stage.model()
    with pytest.raises(InvalidRequest) as caught:
        await service.load("a", {field: value}, None)
    assert caught.value.param == field
    assert not stage.runtime.view("a").loaded


@pytest.mark.parametrize("slots", [1, None, 2])
async def test_the_serial_runtime_rejects_explicit_slots(tmp_path, slots):
    stage = Stage(tmp_path, Kind(ServerState, 1))
    stage.model()
    with pytest.raises(InvalidRequest, match="--parallel-jobs"):
        await ModelService(stage.runtime, management=True).load("a", {"slots": slots}, None)
    await stage.at_end()


async def test_the_service_tells_which_runtime_it_has(tmp_path):
    kinds = [Kind(ServerState, 1), Kind(ParallelServerState, 1)]
    stages = [Stage(tmp_path, kind) for kind in kinds]
    assert [ModelService(stage.runtime, management=True).parallel for stage in stages] == [False, True]
