"""New ids: private validation, an entry published under its own lease, and what a first load leaves that fails."""

import asyncio

import pytest

from antiphon.vocabulary.errors import InvalidRequest, LoadFailed, ModelNotFound, ShuttingDown, UnsupportedSlots
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.states import ModelState
from runtime_stage import left, until

READY, UNLOADED, LOADING = ModelState.READY, ModelState.UNLOADED, ModelState.LOADING


def ids(stage):
    return [view.registration.spec.id for view in stage.runtime.views()]


async def test_a_new_id_is_registered_and_loaded(stage):
    stage.model("a")
    view = await stage.register(stage.registration("new"))
    assert (view.loaded, view.registration.spec.id) == (True, "new")
    assert ids(stage) == ["a", "new"]
    assert (await stage.say("hello", "new")).endswith("|hello")


async def test_the_entry_is_there_under_an_exclusive_lease_before_its_first_load(stage):
    checkpoint = stage.checkpoint("new")
    with checkpoint.held("load"):
        registering = stage.register(stage.registration("new"))
        await checkpoint.await_for("load")
        assert stage.state("new") is LOADING
        request = stage.say("hello", "new")
        await stage.waiting(1, "new")
    await asyncio.gather(registering, request)
    assert len(checkpoint.events("load")) == 1


async def test_a_client_that_leaves_does_not_stop_its_registration(stage):
    checkpoint = stage.checkpoint("new")
    with checkpoint.held("load"):
        registering = stage.register(stage.registration("new"))
        await checkpoint.await_for("load")
        await left(registering)
    await until(lambda: stage.state("new") is READY)


async def test_a_first_load_that_fails_leaves_the_model_registered_for_the_next_request(stage):
    checkpoint = stage.checkpoint("new")
    checkpoint.fail("load")
    with pytest.raises(LoadFailed):
        await stage.register(stage.registration("new"))
    view = stage.runtime.view("new")
    assert (view.state, view.last_error) == (
        UNLOADED,
        "the model could not be loaded: the engine failed (RuntimeError)",
    )
    checkpoint.unset("load.fail")
    assert (await stage.say("hello", "new")).endswith("|hello")


async def test_those_who_wait_behind_a_first_load_that_fails_try_again_themselves(stage):
    checkpoint = stage.checkpoint("new")
    checkpoint.hold("open")
    registering = stage.register(stage.registration("new"))
    await checkpoint.await_for("open")
    request = stage.say("hello", "new")
    await stage.waiting(1, "new")
    checkpoint.hold("load")  # the second one
    checkpoint.fail("open")
    checkpoint.release("open")
    with pytest.raises(LoadFailed):
        await registering
    await checkpoint.await_for("load", 2)
    checkpoint.unset("open.fail")
    checkpoint.release("load")
    assert (await request).endswith("|hello")


async def test_a_count_that_a_new_model_cannot_serve_leaves_it_registered_until_it_is_corrected(wide):
    checkpoint = wide.checkpoint("new")
    checkpoint.set("capacity", "1")
    with pytest.raises(InvalidRequest, match="can serve 1 slots") as caught:
        await wide.register(wide.registration("new"))
    assert caught.value.param == "slots"
    assert wide.state("new") is UNLOADED
    with pytest.raises(UnsupportedSlots):
        await wide.say("hello", "new")
    view = await wide.register(wide.registration("new", slots=1))
    assert (view.loaded, view.slots) == (True, 1)
    await wide.say("hello", "new")


async def test_a_model_of_no_known_family_or_without_files_is_refused_and_leaves_nothing(stage):
    registration = stage.registration("new")
    missing = type(registration)(ModelSpec("new", "controlled", "/nowhere", registration.spec.task))
    with pytest.raises(InvalidRequest) as caught:
        await stage.register(missing)
    assert caught.value.param == "path"
    assert ids(stage) == []
    with pytest.raises(ModelNotFound):
        await stage.say("hello", "new")


async def test_an_inspection_that_fails_leaves_nothing(stage):
    checkpoint = stage.checkpoint("new")
    checkpoint.fail("inspect")
    with pytest.raises(Exception, match="RuntimeError"):
        await stage.register(stage.registration("new"))
    assert ids(stage) == []
    checkpoint.unset("inspect.fail")
    await stage.register(stage.registration("new"))


async def test_a_publication_that_fails_leaves_neither_an_entry_nor_a_gate(parallel):
    def broken(spec):
        raise LookupError

    audit, parallel.audit = parallel.audit, broken
    with pytest.raises(LookupError):
        await parallel.register(parallel.registration("new"))
    assert ids(parallel) == []
    parallel.audit = audit
    await parallel.register(parallel.registration("new"))
    await parallel.say("hello", "new")


async def test_registrations_of_one_new_id_at_once_queue_on_one_entry(stage):
    checkpoint = stage.checkpoint("new")
    checkpoint.hold("load")
    tasks = [stage.register(stage.registration("new")) for _ in range(3)]
    await checkpoint.await_for("load")
    await stage.waiting(2, "new")
    checkpoint.release("load")
    views = await asyncio.gather(*tasks)
    assert [view.loaded for view in views] == [True] * 3
    assert ids(stage) == ["new"]
    assert len(checkpoint.events("load")) == 1


async def test_the_last_of_two_registrations_of_a_new_id_is_the_one_that_stays(stage):
    first, second = stage.checkpoint("first"), stage.checkpoint("second")
    with first.held("load"):
        one = stage.register(stage.registration("new", "first"))
        await first.await_for("load")
        two = stage.register(stage.registration("new", "second"))
        await stage.waiting(1, "new")
    await asyncio.gather(one, two)
    assert (await stage.say("hello", "new")).startswith("second|")
    assert len(second.events("load")) == 1


async def test_registrations_of_different_ids_do_not_wait_for_each_other(stage):
    slow = stage.checkpoint("slow")
    with slow.held("load"):
        registering = stage.register(stage.registration("slow"))
        await slow.await_for("load")
        assert (await stage.register(stage.registration("quick"))).loaded
    await registering


async def test_nothing_is_registered_once_the_runtime_closes(stage):
    await stage.runtime.close()
    with pytest.raises(ShuttingDown):
        await stage.register(stage.registration("new"))
    assert ids(stage) == []


async def test_a_registration_that_is_inspected_while_the_runtime_closes_is_refused(stage):
    checkpoint = stage.checkpoint("new")
    with checkpoint.held("inspect"):
        registering = stage.register(stage.registration("new"))
        await until(lambda: len(stage.runtime._tasks))
        closing = asyncio.ensure_future(stage.runtime.close())
        await asyncio.sleep(0)
    with pytest.raises(ShuttingDown):
        await registering
    await closing
    assert ids(stage) == []
