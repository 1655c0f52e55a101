"""Names beside a model's id: they lead to its one queue, and each is one model's at any moment."""

import asyncio
from dataclasses import replace

import pytest

from antiphon.runtime.api import Strategy
from antiphon.vocabulary.errors import InvalidRequest, ModelNotFound
from antiphon.vocabulary.states import ModelState


def named(stage, model_id, *aliases, **fields):
    return replace(stage.registration(model_id, **fields), aliases=aliases)


async def test_a_request_for_an_alias_waits_in_the_models_queue(stage):
    await stage.register(named(stage, "a", "one"))
    checkpoint = stage.checkpoint("a")
    with checkpoint.held("run"):
        running = stage.fill()
        await checkpoint.await_for("run", stage.kind.slots)
        waiting = [stage.say("first", "one"), stage.say("second", "a")]
        await stage.waiting(2)
    answers = await asyncio.gather(*waiting, *running)
    assert [answer.partition("|")[0] for answer in answers] == ["a"] * len(answers)


async def test_what_is_said_of_an_alias_is_said_under_the_id(stage):
    await stage.register(named(stage, "a", "one"))
    assert stage.runtime.view("one").registration.spec.id == "a"
    assert [it.view.registration.spec.id for it in stage.runtime.status()] == ["a"]


async def test_a_model_is_managed_under_its_alias(stage):
    await stage.register(named(stage, "a", "one"))
    view, _ = await stage.runtime.unload("one")
    assert (view.registration.spec.id, view.state) == ("a", ModelState.UNLOADED)
    assert (await stage.runtime.foresee_load("one")).loads == ("a",)
    assert (await stage.runtime.load("one")).loaded


async def test_a_bulk_unload_takes_a_model_once_whatever_it_is_called(stage):
    await stage.register(named(stage, "a", "one", "two"))
    told = await stage.runtime.unload_many(["two", "nobody", "a", "one", "nobody"])
    assert (told.unloaded, told.not_found) == (("a",), ("nobody",))


@pytest.mark.parametrize(("model_id", "aliases", "param"), [("one", (), "id"), ("b", ("one",), "aliases")])
async def test_a_new_model_with_a_name_of_another_is_refused_and_leaves_nothing(stage, model_id, aliases, param):
    await stage.register(named(stage, "a", "one"))
    newcomer = named(stage, model_id, *aliases, folder="b")
    for refused in (stage.register(newcomer), stage.runtime.foresee_load(model_id, newcomer)):
        with pytest.raises(InvalidRequest) as caught:
            await refused
        assert caught.value.param == param
    assert [view.registration.spec.id for view in stage.runtime.views()] == ["a"]
    assert stage.checkpoint("b").events() == []


@pytest.mark.parametrize("strategy", Strategy)
async def test_an_alias_that_is_dropped_can_be_given_to_another(stage, strategy):
    await stage.register(named(stage, "a", "one"))
    await stage.register(named(stage, "a", revision="2"), strategy=strategy)
    with pytest.raises(ModelNotFound):
        stage.runtime.view("one")
    await stage.register(named(stage, "b", "one"))
    assert stage.runtime.view("one").registration.spec.id == "b"


@pytest.mark.parametrize("strategy", Strategy)
async def test_a_replacement_whose_name_is_taken_while_it_waits_changes_nothing(stage, strategy):
    await stage.register(named(stage, "a"))
    before, pool = stage.runtime.view("a"), stage.pool()
    checkpoint = stage.checkpoint("a")
    with checkpoint.held("run"):
        running = stage.fill()
        await checkpoint.await_for("run", stage.kind.slots)
        late = stage.register(named(stage, "a", "one", capacity=4), strategy=strategy)
        await stage.waiting(1)
        await stage.register(named(stage, "b", "one"))
    with pytest.raises(InvalidRequest) as caught:
        await late
    await asyncio.gather(*running)
    assert caught.value.param == "aliases"
    assert stage.pool() is pool
    assert stage.runtime.view("a").registration == before.registration
    assert stage.state() is ModelState.READY


async def test_a_name_is_kept_for_a_replacement_that_is_under_way(stage):
    await stage.register(named(stage, "a"))
    checkpoint = stage.checkpoint("a")
    with checkpoint.held("destroy"):
        replacing = stage.register(named(stage, "a", "one", capacity=5))
        await checkpoint.await_for("destroy")
        with pytest.raises(InvalidRequest):
            await stage.register(named(stage, "b", "one"))
    assert (await replacing).registration.aliases == ("one",)
