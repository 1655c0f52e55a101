"""The thread host alone: one load of one model, called as the runtime calls it."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from antiphon.runtime.hosts.thread import ThreadHost
from antiphon.testing import ControlledAdapter
from antiphon.vocabulary.errors import EngineError, InsufficientMemory, InvalidRequest, InvariantError
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import AudioDelta, Final, Interface, Mode, Task, TaskRequest, TaskResult, TextDelta
from coroutine_tests import Ending
from runtime_stage import until


class Opened:
    """A host with its weights and some sessions, freed at the test's end."""

    def __init__(self, checkpoint):
        self.checkpoint = checkpoint
        self.host = ThreadHost(ControlledAdapter(), checkpoint.spec())
        self.hung = False

    async def slots(self, count=1):
        await self.host.load()
        facts = [await self.host.open()]
        facts += [await self.host.clone(slot) for slot in range(1, count)]
        return facts

    async def at_end(self):
        for path in self.checkpoint.path.glob("*.hold*"):
            path.unlink()
        for path in self.checkpoint.path.glob("*.fail"):
            path.unlink()
        if not self.hung:
            await self.host.close()
        await self.host.terminate()


@pytest.fixture
def opened(checkpoint):
    made = Opened(checkpoint)
    assert isinstance(made, Ending)
    return made


def request(text="hello"):
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
    results = [await opened.host.run(slot, request()) for slot in (0, 1, 0)]
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
        await opened.host.run(0, request())
    assert type(caught.value.__cause__).__name__ == kind
    assert caught.value.message == f"the engine failed ({kind})"
    opened.checkpoint.unset(f"{step}.fail")
    assert (await opened.host.run(0, request())).text == "alone|s1|hello"


@pytest.mark.parametrize("step", ["prepare", "run"])
async def test_an_engine_that_runs_out_of_memory_is_told_as_that_with_its_cause(opened, step):
    await opened.slots()
    opened.checkpoint.fail(step, "MemoryError")
    with pytest.raises(InsufficientMemory) as caught:
        await opened.host.run(0, request())
    assert isinstance(caught.value.__cause__, MemoryError)
    assert caught.value.message == "the engine ran out of memory"


async def test_a_probe_tells_of_a_session_for_other_options_and_leaves_the_open_ones(opened):
    await opened.slots(2)
    spec = opened.checkpoint.spec(session_options={"capacity": 9})
    assert (await opened.host.probe(spec)).capacity == 9
    assert [event.session for event in opened.checkpoint.events("session_closed")] == ["s3"]
    assert (await opened.host.run(1, request())).text == "alone|s2|hello"


async def test_a_probe_without_a_session_gives_none(opened):
    await opened.slots()
    opened.checkpoint.set("session.null")
    assert await opened.host.probe(opened.checkpoint.spec()) is None


async def test_a_domain_error_of_the_engine_arrives_as_it_is(opened):
    await opened.slots()
    with pytest.raises(InvalidRequest) as caught:
        await opened.host.run(0, request(""))
    assert caught.value.param == "input"


async def test_a_hung_engine_costs_only_its_own_slot(opened):
    await opened.slots(2)
    opened.hung = True
    opened.checkpoint.set("run.hang.forever")
    hung = asyncio.ensure_future(opened.host.run(0, request("forever")))
    await opened.checkpoint.await_for("run")
    assert (await opened.host.run(1, request())).text == "alone|s2|hello"
    assert not hung.done()
    hung.cancel()
    await asyncio.gather(hung, return_exceptions=True)


async def test_a_batch_prepares_all_before_it_starts_and_answers_in_its_order(opened):
    await opened.slots()
    batch = await opened.host.run_batch(0, [request("one"), request("two")])
    answers = [(index, result.text) async for index, result in batch]
    await batch.aclose()
    assert answers == [(0, "alone|s1|one"), (1, "alone|s1|two")]
    steps = [event.step for event in opened.checkpoint.events() if event.step in ("prepare", "run")]
    assert steps == ["prepare", "prepare", "run", "run"]


async def test_a_batch_with_one_bad_request_is_refused_before_it_starts(opened):
    await opened.slots()
    with pytest.raises(InvalidRequest):
        await opened.host.run_batch(0, [request("one"), request("")])
    assert opened.checkpoint.events("run") == []


async def test_a_batch_that_is_left_ends_at_its_next_item(opened):
    await opened.slots()
    opened.checkpoint.hold("run", "two")
    batch = await opened.host.run_batch(0, [request(text) for text in ("one", "two", "three")])
    assert (await anext(batch))[0] == 0
    await opened.checkpoint.await_for("run", 2)
    closing = asyncio.ensure_future(batch.aclose())
    await asyncio.sleep(0)
    opened.checkpoint.release("run", "two")
    await closing
    assert opened.checkpoint.events("run", "three") == []
    assert (await opened.host.run(0, request())).text == "alone|s1|hello"


async def test_a_stream_that_ended_has_been_reset_and_its_slot_serves_again(opened):
    await opened.slots()
    for _ in range(2):
        stream = await opened.host.stream(0, request(), None)
        assert [type(event) for event in [event async for event in stream]] == [AudioDelta] * 3 + [Final]
        await stream.aclose()
    assert len(opened.checkpoint.events("reset")) == 2


async def test_a_fault_that_a_stream_has_told_is_told_once(opened):
    await opened.slots()
    opened.checkpoint.fail("run")
    stream = await opened.host.stream(0, request(), None)
    with pytest.raises(EngineError):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await stream.aclose()


async def test_the_first_of_two_faults_is_the_one_that_is_told(opened):
    await opened.slots()
    opened.checkpoint.fail("run", "ZeroDivisionError")
    opened.checkpoint.fail("reset", "OSError")
    stream = await opened.host.stream(0, request(), None)
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


async def test_a_terminated_host_leaves_no_thread(checkpoint):
    host = ThreadHost(ControlledAdapter(), checkpoint.spec(model_id="watched"))
    await host.load()
    await host.open()
    await host.clone(1)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("antiphon-watched")]
    assert len(threads) == 3
    await host.close()
    await host.terminate()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


class Endless:
    """An adapter, a model and a session in one: its stream never ends and tells who iterates and closes it."""

    family, task, mode, sample_rate, channels, capacity = "endless", Task.ASR, Mode.STREAMING, 16_000, 1, 1
    interfaces = frozenset({Interface.STREAMING})

    def __init__(self):
        self.made = 0
        self.threads = {}
        self.third_made = threading.Event()

    def inspect(self, spec: ModelSpec) -> Capability:
        return Capability(frozenset(Task), frozenset(Mode), 16_000, 0)

    def load(self, spec):
        return self

    def open_session(self):
        return self

    def clone(self):
        return None

    def prepare(self, request):
        self.threads["prepare"] = threading.current_thread().name

    def stream(self, request, audio) -> Iterator[TextDelta]:
        try:
            while True:
                self.made += 1
                yield TextDelta(str(self.made))
        finally:
            self.threads["end"] = threading.current_thread().name

    def reset(self):
        self.threads["reset"] = threading.current_thread().name

    def close(self):
        pass


@pytest.fixture
def endless():
    return Endless()


async def on_endless(endless):
    host = ThreadHost(endless, ModelSpec("m", "endless", "/nowhere", Task.ASR))
    await host.load()
    await host.open()
    return host, await host.stream(0, TaskRequest(), None)


async def test_an_engine_is_only_so_far_ahead_of_its_reader(endless):
    host, stream = await on_endless(endless)
    for number in range(1, 30):
        assert (await anext(stream)).text == str(number)
        assert endless.made <= number + 10  # eight on the way, one that waits for credit, one being read
    await stream.aclose()
    await host.terminate()


async def test_a_producer_that_waits_for_credit_is_woken_when_its_reader_leaves(endless):
    host, stream = await on_endless(endless)
    await until(lambda: endless.made == 9)  # nobody reads: the ninth waits for credit
    await stream.aclose()
    assert endless.made == 9
    await host.terminate()


async def test_only_the_slots_thread_prepares_iterates_closes_and_resets(endless):
    host, stream = await on_endless(endless)
    await anext(stream)
    await stream.aclose()
    assert endless.threads == dict.fromkeys(("prepare", "end", "reset"), "antiphon-m-slot0/0")
    await host.terminate()


class Short(Endless):
    """An iterator without `close`."""

    def stream(self, request, audio):
        return iter([TextDelta("a"), Final(TaskResult(text="a"))])


async def test_an_iterator_that_cannot_be_closed_streams_as_well():
    host, stream = await on_endless(Short())
    assert [type(event) for event in [event async for event in stream]] == [TextDelta, Final]
    await stream.aclose()
    await host.terminate()
