"""The laws of a host, threads or a process: one load of one model, called as the runtime calls it."""

import asyncio
import traceback

import pytest

from antiphon.vocabulary.errors import EngineError, InsufficientMemory, InvalidRequest, InvariantError
from antiphon.vocabulary.spec import Capability
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import AudioDelta, Final, Interface, Mode, Task, TaskRequest
from coroutine_tests import Ending
from host_stage import Opened


@pytest.fixture(params=list(Isolation), ids=str)
def opened(request, checkpoint):
    made = Opened(checkpoint, request.param)
    assert isinstance(made, Ending)
    return made


def asked(text="hello"):
    return TaskRequest(text=text)


async def test_a_host_inspects_without_loading(opened):
    assert isinstance(await opened.host.inspect(), Capability)
    assert opened.checkpoint.events() == []


async def test_a_session_is_not_opened_before_the_weights(opened):
    with pytest.raises(InvariantError):
        await opened.host.open()


async def test_sessions_say_what_they_are(opened):
    primary, clone = await opened.slots(2)
    assert primary == clone
    assert (primary.family, primary.task, primary.mode) == ("controlled", Task.TTS, Mode.OFFLINE)
    assert primary.interfaces == frozenset(Interface)


async def test_a_run_happens_in_its_slots_own_session(opened):
    await opened.slots(2)
    results = [await opened.host.run(slot, asked()) for slot in (0, 1, 0)]
    assert [result.text for result in results] == ["alone|s1|hello", "alone|s2|hello", "alone|s1|hello"]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        *((step, kind) for step in ("prepare", "run") for kind in ("ZeroDivisionError", "SystemExit")),
        ("prepare", "StopIteration"),
        ("run", "GeneratorExit"),
    ],
)
async def test_what_the_engine_raises_is_an_engine_error_with_its_cause(opened, step, kind):
    await opened.slots()
    opened.checkpoint.fail(step, kind)
    with pytest.raises(EngineError) as caught:
        await opened.host.run(0, asked())
    assert kind in "".join(traceback.format_exception(caught.value.__cause__))
    assert caught.value.message == f"the engine failed ({kind})"
    opened.checkpoint.unset(f"{step}.fail")
    assert (await opened.host.run(0, asked())).text == "alone|s1|hello"


@pytest.mark.parametrize("step", ["prepare", "run"])
async def test_an_engine_that_runs_out_of_memory_is_told_as_that_with_its_cause(opened, step):
    await opened.slots()
    opened.checkpoint.fail(step, "MemoryError")
    with pytest.raises(InsufficientMemory) as caught:
        await opened.host.run(0, asked())
    assert "MemoryError" in "".join(traceback.format_exception(caught.value.__cause__))
    assert caught.value.message == "the engine ran out of memory"


async def test_a_probe_tells_of_a_session_for_other_options_and_leaves_the_open_ones(opened):
    await opened.slots(2)
    spec = opened.checkpoint.spec(session_options={"capacity": 9})
    assert (await opened.host.probe(spec)).capacity == 9
    assert [event.session for event in opened.checkpoint.events("session_closed")] == ["s3"]
    assert (await opened.host.run(1, asked())).text == "alone|s2|hello"


async def test_a_probe_without_a_session_gives_none(opened):
    await opened.slots()
    opened.checkpoint.set("session.null")
    assert await opened.host.probe(opened.checkpoint.spec()) is None


async def test_a_domain_error_of_the_engine_arrives_as_it_is(opened):
    await opened.slots()
    with pytest.raises(InvalidRequest) as caught:
        await opened.host.run(0, asked(""))
    assert caught.value.param == "input"


async def test_a_hung_engine_costs_only_its_own_slot(opened):
    await opened.slots(2)
    opened.hung = True
    opened.checkpoint.set("run.hang.forever")
    hung = asyncio.ensure_future(opened.host.run(0, asked("forever")))
    await opened.checkpoint.await_for("run")
    assert (await opened.host.run(1, asked())).text == "alone|s2|hello"
    assert not hung.done()
    hung.cancel()
    await asyncio.gather(hung, return_exceptions=True)


async def test_a_batch_prepares_all_before_it_starts_and_answers_in_its_order(opened):
    await opened.slots()
    batch = await opened.host.run_batch(0, [asked("one"), asked("two")])
    answers = [(index, result.text) async for index, result in batch]
    await batch.aclose()
    assert answers == [(0, "alone|s1|one"), (1, "alone|s1|two")]
    steps = [event.step for event in opened.checkpoint.events() if event.step in ("prepare", "run")]
    assert steps == ["prepare", "prepare", "run", "run"]


async def test_a_batch_with_one_bad_request_is_refused_before_it_starts(opened):
    await opened.slots()
    with pytest.raises(InvalidRequest):
        await opened.host.run_batch(0, [asked("one"), asked("")])
    assert opened.checkpoint.events("run") == []


async def test_a_batch_that_is_left_ends_at_its_next_item(opened):
    await opened.slots()
    opened.checkpoint.hold("run", "two")
    batch = await opened.host.run_batch(0, [asked(text) for text in ("one", "two", "three")])
    assert (await anext(batch))[0] == 0
    await opened.checkpoint.await_for("run", 2)
    closing = asyncio.ensure_future(batch.aclose())
    await asyncio.sleep(0)
    opened.checkpoint.release("run", "two")
    await closing
    assert opened.checkpoint.events("run", "three") == []
    assert (await opened.host.run(0, asked())).text == "alone|s1|hello"


async def test_a_stream_that_ended_has_been_reset_and_its_slot_serves_again(opened):
    await opened.slots()
    for _ in range(2):
        stream = await opened.host.stream(0, asked(), None)
        assert [type(event) for event in [event async for event in stream]] == [AudioDelta] * 3 + [Final]
        await stream.aclose()
    assert len(opened.checkpoint.events("reset")) == 2


async def test_a_fault_that_a_stream_has_told_is_told_once(opened):
    await opened.slots()
    opened.checkpoint.fail("run")
    stream = await opened.host.stream(0, asked(), None)
    with pytest.raises(EngineError):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await stream.aclose()


async def test_the_first_of_two_faults_is_the_one_that_is_told(opened):
    await opened.slots()
    opened.checkpoint.fail("run", "ZeroDivisionError")
    opened.checkpoint.fail("reset", "OSError")
    stream = await opened.host.stream(0, asked(), None)
    with pytest.raises(EngineError, match="ZeroDivisionError"):
        await anext(stream)
    await stream.aclose()


async def test_sessions_are_closed_in_reverse_before_the_weights(opened):
    await opened.slots(3)
    await opened.host.close()
    closed = [(event.step, event.session) for event in opened.checkpoint.events() if "closed" in event.step]
    assert closed == [*(("session_closed", session) for session in ("s3", "s2", "s1")), ("closed", None)]


async def test_all_are_closed_also_when_each_fails_and_the_first_fault_is_told(opened):
    await opened.slots(2)
    opened.checkpoint.fail("destroy", "OSError")
    with pytest.raises(EngineError, match="OSError"):
        await opened.host.close()
    assert [event.session for event in opened.checkpoint.events("destroy")] == ["s2", "s1", None]


async def test_a_second_close_closes_nothing(opened):
    await opened.slots()
    await opened.host.close()
    await opened.host.close()
    assert len(opened.checkpoint.events("closed")) == 1


async def test_a_request_tells_how_many_calls_are_at_work_with_its_own(opened):
    await opened.slots(2)
    with opened.checkpoint.held("run", "first"):
        first = opened.say("first")
        assert (await opened.checkpoint.await_for("run", text="first")).at_work == 1
        await opened.say("second", slot=1)
        assert [event.at_work for event in opened.checkpoint.events(text="second")] == [2, 2, 2]
    await first
    assert (await opened.checkpoint.await_for("ran", text="first")).at_work == 1


async def test_a_stream_is_at_work_until_it_is_reset(opened):
    await opened.slots(2)
    with opened.checkpoint.held("stream", "streamed"):
        flow = await opened.host.stream(0, asked("streamed"), None)
        await opened.checkpoint.await_for("stream", text="streamed")
        await opened.say("beside", slot=1)
        assert (await opened.checkpoint.await_for("run", text="beside")).at_work == 2
        leaving = asyncio.ensure_future(flow.aclose())
    await leaving
    await opened.say("after", slot=1)
    assert (await opened.checkpoint.await_for("run", text="after")).at_work == 1


async def test_a_call_that_failed_is_not_at_work(opened):
    await opened.slots(2)
    with opened.checkpoint.held("run", "held"):
        held = opened.say("held")
        await opened.checkpoint.await_for("run", text="held")
        with pytest.raises(InvalidRequest):
            await opened.host.run(1, asked(""))
    await held
    assert (await opened.checkpoint.await_for("ran", text="held")).at_work == 1


@pytest.mark.parametrize("item", ["one", "two"])
async def test_each_request_of_a_batch_tells_it_too(opened, item):
    await opened.slots()
    flow = await opened.host.run_batch(0, [asked("one"), asked("two")])
    assert [index async for index, _ in flow] == [0, 1]
    await flow.aclose()
    assert (await opened.checkpoint.await_for("run", text=item)).at_work == 1
