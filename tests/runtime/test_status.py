"""What the runtimes report: counters, capacities and times, exact under a clock that stands still."""

import asyncio

import pytest

from antiphon.runtime.api import Timing
from antiphon.runtime.parallel import STARTUP_NOTICE
from antiphon.vocabulary.errors import ModelNotFound, ServerBusy
from antiphon.vocabulary.tasks import Interface
from runtime_stage import order


async def test_the_serial_runtime_reports_neither_slots_nor_queues(serial):
    serial.model()
    await serial.runtime.load("a")
    view = serial.runtime.view("a")
    assert (view.slots, view.active_slots, view.queued_requests, view.max_parallel_slots) == (None,) * 4
    assert not serial.runtime.parallel


async def test_the_parallel_runtime_counts_leased_slots_and_queued_requests_but_no_manager(parallel):
    checkpoint = parallel.model()
    checkpoint.hold("run")
    tasks = parallel.fill()
    await checkpoint.await_for("run", parallel.kind.slots)
    tasks += [parallel.say("queued"), asyncio.ensure_future(parallel.runtime.unload("a")), parallel.say("last")]
    await parallel.waiting(3)
    view = parallel.runtime.view("a")
    assert (view.slots, view.active_slots, view.queued_requests) == (parallel.kind.slots, parallel.kind.slots, 2)
    assert parallel.runtime.parallel
    checkpoint.release("run")
    await asyncio.gather(*tasks)


async def test_a_request_that_waits_for_the_load_counts_as_active(parallel):
    checkpoint = parallel.model()
    with checkpoint.held("load"):
        task = parallel.say("hello")
        await checkpoint.await_for("load")
        assert parallel.runtime.view("a").active_slots == 1
    await task
    assert parallel.runtime.view("a").active_slots == 0


async def test_no_slot_is_active_under_an_exclusive_lease(parallel):
    checkpoint = parallel.model()
    with checkpoint.held("load"):
        load = asyncio.ensure_future(parallel.runtime.load("a"))
        await checkpoint.await_for("load")
        assert parallel.runtime.view("a").active_slots == 0
    await load


async def test_the_most_slots_are_known_only_while_a_pool_is_published(parallel):
    checkpoint = parallel.model(max_slots=5)
    checkpoint.set("capacity", "7")
    assert parallel.runtime.view("a").max_parallel_slots is None
    assert (await parallel.runtime.load("a")).max_parallel_slots == 5
    assert (await parallel.runtime.unload("a"))[0].max_parallel_slots is None


async def test_the_models_are_listed_in_the_order_of_their_registration(stage):
    for model in "cab":
        stage.model(model)
    assert [view.registration.spec.id for view in stage.runtime.views()] == ["c", "a", "b"]


async def test_an_unknown_model_is_not_found(stage):
    with pytest.raises(ModelNotFound):
        stage.runtime.view("nobody")
    with pytest.raises(ModelNotFound):
        await stage.say("hello", "nobody")
    with pytest.raises(ModelNotFound):
        await stage.open("hello", "nobody")


async def test_a_request_that_neither_waits_nor_loads_spends_its_time_in_the_engine(stage):
    checkpoint = stage.model()
    await stage.runtime.load("a")
    checkpoint.hold("run")
    timing = asyncio.ensure_future(stage.timing_of(order("hello")))
    await checkpoint.await_for("run")
    stage.clock.advance(3)
    checkpoint.release("run")
    assert await timing == Timing(queue_s=0, load_s=0, run_s=3)


async def test_a_cold_request_spends_its_time_in_the_load(stage):
    checkpoint = stage.model()
    checkpoint.hold("load")
    timing = asyncio.ensure_future(stage.timing_of(order("hello")))
    await checkpoint.await_for("load")
    stage.clock.advance(7)
    checkpoint.release("load")
    assert await timing == Timing(queue_s=0, load_s=7, run_s=0)


async def test_a_queued_request_spends_its_time_in_the_queue(stage):
    checkpoint = stage.model()
    checkpoint.hold("run")
    running = stage.fill()
    await checkpoint.await_for("run", stage.kind.slots)
    timing = asyncio.ensure_future(stage.timing_of(order("hello")))
    await stage.waiting(1)
    stage.clock.advance(5)
    checkpoint.release("run")
    assert await timing == Timing(queue_s=5, load_s=0, run_s=0)
    await asyncio.gather(*running)


async def test_the_run_of_a_stream_ends_with_its_close(stage):
    stage.model()
    stream = await stage.open("hello")
    stage.clock.advance(2)
    assert stream.timing.run_s == 2
    await stream.aclose()
    stage.clock.advance(2)
    assert stream.timing == Timing(queue_s=0, load_s=0, run_s=2)


@pytest.mark.parametrize(
    ("request_ms", "model_ms", "waits_s"), [(2000, None, 2), (9000, 4000, 4), (None, 4000, 4), (0, 4000, 4)]
)
async def test_a_request_waits_no_longer_than_the_shorter_of_its_own_bound_and_the_models(
    stage, request_ms, model_ms, waits_s
):
    checkpoint = stage.model(busy_timeout_ms=model_ms)
    checkpoint.hold("run")
    running = stage.fill()
    await checkpoint.await_for("run", stage.kind.slots)
    task = stage.say("late", busy_timeout_ms=request_ms)
    await stage.waiting(1)
    stage.clock.advance(waits_s - 0.001)
    await stage.waiting(1)
    stage.clock.advance(0.001)
    with pytest.raises(ServerBusy):
        await task
    checkpoint.release("run")
    await asyncio.gather(*running)


@pytest.mark.parametrize("interface", [Interface.OFFLINE, Interface.STREAMING])
async def test_work_that_is_hopelessly_overdue_refuses_a_bounded_request_at_once(stage, interface):
    checkpoint = stage.model()
    checkpoint.hold("run")
    running = stage.fill()
    await checkpoint.await_for("run", stage.kind.slots)
    stage.clock.advance(2)
    ask = stage.ask if interface is Interface.OFFLINE else stage.runtime.open_stream
    with pytest.raises(ServerBusy, match="longer than 1000 ms"):
        await ask(order("late", interface=interface, busy_timeout_ms=1000))
    checkpoint.release("run")
    await asyncio.gather(*running)


def test_the_startup_notice_says_what_is_experimental_and_what_is_not_covered():
    assert all(word in STARTUP_NOTICE for word in ("--parallel-jobs", "experimental", "incomplete", "cuda", "vulkan"))
