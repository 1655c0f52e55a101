"""The thread host alone: what is true of threads only. The laws that every host keeps are in test_hosts.py."""

import threading
from collections.abc import Iterator

import pytest

from antiphon.runtime.hosts.thread import ThreadHost
from antiphon.testing import ControlledAdapter
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Final, Interface, Mode, Task, TaskRequest, TaskResult, TextDelta
from runtime_stage import until


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
