"""Managing models as a use case: what is allowed, and to whom."""

import asyncio

import pytest

from antiphon.runtime.api import Strategy
from antiphon.service.models import ModelService
from antiphon.vocabulary.errors import Forbidden, ModelNotFound
from antiphon.vocabulary.spec import Registration
from antiphon.vocabulary.states import ModelState


class Parse:
    """Makes a registration of a checkpoint, whatever the fields say, and remembers them."""

    def __init__(self, checkpoint):
        self.checkpoint = checkpoint
        self.given = []

    def __call__(self, fields):
        self.given.append(fields)
        return Registration(self.checkpoint.spec(model_id=str(fields["id"])), pinned=True)


@pytest.fixture
def checkpoint(stage):
    return stage.model()


@pytest.fixture
def parse(checkpoint):
    return Parse(checkpoint)


@pytest.fixture
def service(stage, parse):
    return ModelService(stage.runtime, parse, management=True)


async def test_clients_may_not_manage_unless_they_are_allowed_to(stage, service, parse):
    service.require_management()
    with pytest.raises(Forbidden):
        ModelService(stage.runtime, parse, management=False).require_management()


async def test_a_model_is_loaded_as_it_is_and_unloaded(stage, service, parse):
    assert (await service.load("a", {}, None)).loaded
    assert not (await service.unload("a", None))[0].loaded
    assert parse.given == []


async def test_fields_replace_the_whole_registration(stage, service, parse):
    view = await service.load("a", {"slots": 1}, None)
    assert (view.loaded, view.registration.pinned) == (True, True)
    assert parse.given == [{"id": "a", "slots": 1}]


async def test_fields_with_a_new_id_register_a_model(stage, service, checkpoint):
    assert (await service.load("new", {"family": "controlled"}, None)).loaded
    assert [view.registration.spec.id for view in service.views()] == ["a", "new"]


async def test_a_model_is_replaced_from_beside_where_that_is_asked_for(stage, service, checkpoint):
    await service.load("a", {}, None)
    spec = checkpoint.spec(model_id="a", session_options={"capacity": 2})
    beside = ModelService(stage.runtime, lambda fields: Registration(spec), management=True)
    with checkpoint.held("load"):
        loading = asyncio.ensure_future(beside.load("a", {"slots": 1}, None, Strategy.SIDE_BY_SIDE))
        await checkpoint.await_for("load", 2)
        assert stage.state() is ModelState.READY
    assert (await loading).max_parallel_slots == 2


async def test_an_unknown_model_is_not_found_by_any_operation_on_it(service, parse):
    with pytest.raises(ModelNotFound):
        await service.unload("nobody", None)
    with pytest.raises(ModelNotFound) as unload:
        service.foresee_unload("nobody", None)
    with pytest.raises(ModelNotFound, match="send its family, path and task") as load:
        await service.load("nobody", {}, None)
    with pytest.raises(ModelNotFound) as dry_run:
        await service.foresee_load("nobody", {}, None)
    assert [it.value.param for it in (unload, load, dry_run)] == ["model", "id", "id"]
    assert parse.given == []


async def test_many_are_unloaded_and_the_unknown_are_told_of(service):
    await service.load("a", {}, None)
    foreseen, told = service.foresee_unload_many(["a", "nobody"])
    done = await service.unload_many(["a", "nobody"])
    assert foreseen.unloads == ("a",)
    assert done == told
    assert (done.unloaded, done.not_found) == (("a",), ("nobody",))


async def test_what_a_load_would_do_is_told_without_doing_it(stage, service, parse):
    foreseen = await service.foresee_load("new", {"family": "controlled"}, None)
    assert foreseen.loads == ("new",)
    assert [view.registration.spec.id for view in service.views()] == ["a"]
    assert (await service.foresee_load("a", {}, None)).loads == ("a",)
    assert stage.state() is ModelState.UNLOADED
