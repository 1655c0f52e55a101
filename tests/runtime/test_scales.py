"""What a model takes and gives back of the process's memory: told where nothing else moved, and only there."""

import asyncio
import mmap

import pytest

from antiphon.runtime.api import MemoryChange, Strategy
from antiphon.runtime.memory import SystemMemory
from antiphon.vocabulary.errors import LoadFailed
from runtime_stage import until


def resident_bytes(stage, model="a"):
    """What status says of the model's memory."""
    return next(it.resident_bytes for it in stage.runtime.status() if it.view.registration.spec.id == model)


async def grown(stage, checkpoint, load, by):
    """Let a load take so many bytes of the process."""
    with checkpoint.held("load"):
        loading = asyncio.ensure_future(load)
        await checkpoint.await_for("load")
        stage.process_bytes += by
    await loading


async def test_a_model_takes_what_the_process_grew_by_in_its_load(stage):
    checkpoint = stage.model()
    assert resident_bytes(stage) is None
    await grown(stage, checkpoint, stage.runtime.load("a"), by=70)
    assert resident_bytes(stage) == 70
    await stage.runtime.unload("a")
    assert resident_bytes(stage) is None


async def test_a_process_that_shrank_meanwhile_makes_no_model_of_less_than_nothing(stage):
    stage.process_bytes = 100
    await grown(stage, stage.model(), stage.runtime.load("a"), by=-30)
    assert resident_bytes(stage) == 0


async def test_requests_that_wait_for_the_load_are_no_other_work(stage):
    await grown(stage, stage.model(), stage.say("hello"), by=70)
    assert resident_bytes(stage) == 70


@pytest.mark.parametrize("ends", ["before", "after"])
async def test_a_run_of_another_model_leaves_it_unknown(stage, ends):
    checkpoint, other = stage.model(), stage.model("b")
    await stage.bring("b")
    stage.clock.advance(1)
    other.hold("run")
    running = stage.say("hello", "b")
    await other.await_for("run")
    with checkpoint.held("load"):
        loading = asyncio.ensure_future(stage.runtime.load("a"))
        await checkpoint.await_for("load")
        if ends == "before":
            other.release("run")
            await running
    await loading
    assert resident_bytes(stage) is None
    other.path.joinpath("run.hold").unlink(missing_ok=True)
    await running


async def test_a_run_that_came_and_went_meanwhile_leaves_it_unknown(stage):
    checkpoint = stage.model()
    stage.model("b")
    await stage.bring("b")
    stage.clock.advance(1)
    with checkpoint.held("load"):
        loading = asyncio.ensure_future(stage.runtime.load("a"))
        await checkpoint.await_for("load")
        await stage.say("hello", "b")
    await loading
    assert resident_bytes(stage) is None


async def test_what_was_over_before_does_not_matter(stage):
    stage.model("b")
    await stage.say("hello", "b")
    stage.clock.advance(1)
    await grown(stage, stage.model(), stage.runtime.load("a"), by=70)
    assert resident_bytes(stage) == 70


async def test_a_pool_that_is_built_beside_another_model_leaves_it_unknown(stage):
    checkpoint = stage.model()
    stage.model("b")
    new = stage.checkpoint("new")
    await stage.bring("b")
    stage.clock.advance(1)
    with checkpoint.held("load"):
        loading = asyncio.ensure_future(stage.runtime.load("a"))
        await checkpoint.await_for("load")
        new.fail("load")
        with pytest.raises(LoadFailed):  # it leaves no trace in any queue
            await stage.register(stage.registration("b", "new"), strategy=Strategy.SIDE_BY_SIDE)
    await loading
    assert resident_bytes(stage) is None


async def test_a_meter_that_reads_nothing_leaves_it_unknown(stage):
    stage.process_bytes = None
    stage.model()
    await stage.runtime.load("a")
    assert resident_bytes(stage) is None
    _, change = await stage.runtime.unload("a")
    assert change == MemoryChange(None, None, alone=True)
    assert change.returned_bytes is None


async def test_an_unload_tells_what_came_back(stage):
    checkpoint = stage.model()
    stage.process_bytes = 90
    await stage.runtime.load("a")
    with checkpoint.held("destroy"):
        unload = asyncio.ensure_future(stage.runtime.unload("a"))
        await checkpoint.await_for("destroy")
        stage.process_bytes = 20
    view, change = await unload
    assert (view.loaded, change) == (False, MemoryChange(90, 20, alone=True))
    assert (change.returned_bytes, change.grown_bytes) == (70, 0)


async def test_an_unload_beside_other_work_tells_no_difference(stage):
    stage.model()
    other = stage.model("b")
    await stage.bring("a", "b")
    stage.clock.advance(1)
    with other.held("run"):
        running = stage.say("hello", "b")
        await other.await_for("run")
        _, change = await stage.runtime.unload("a")
    await running
    assert (change.before_bytes, change.after_bytes, change.returned_bytes) == (0, 0, None)


async def test_an_unload_of_what_is_not_loaded_tells_of_no_memory(stage):
    stage.model()
    assert (await stage.runtime.unload("a"))[1] is None


async def test_a_meter_that_fails_costs_the_load_and_leaves_nothing_of_it(stage):
    checkpoint, read = stage.model(), stage.resident_bytes

    async def broken():
        if checkpoint.events("loaded"):
            raise OSError("no such file")
        return 0

    stage.resident_bytes = broken
    with pytest.raises(OSError, match="no such file"):
        await stage.runtime.load("a")
    await until(lambda: not len(stage.runtime._tasks))
    assert len(checkpoint.events("closed")) == 1
    stage.resident_bytes = read
    assert (await stage.say("hello")).endswith("|hello")


async def test_the_process_is_weighed_with_what_it_allocates(stage):
    meter = SystemMemory()
    before = await meter.resident_bytes()
    with mmap.mmap(-1, 64 * 2**20) as block:  # the allocator might give memory that the process has already
        block[:: mmap.PAGESIZE] = bytes(len(range(0, len(block), mmap.PAGESIZE)))
        after = await meter.resident_bytes()
    assert 60 * 2**20 < after - before < 90 * 2**20
