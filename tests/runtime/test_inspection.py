"""Models are inspected in processes of their own, within limits: what that goes wrong with costs the server nothing."""

import asyncio
import os
import threading

import psutil
import pytest

from antiphon.runtime.discovery import AdapterFinder
from antiphon.runtime.hosts.crew import Crew
from antiphon.runtime.inspection import IDLE_S, MAX_AT_ONCE, Inspections, Inspector
from antiphon.testing import ManualClock
from antiphon.vocabulary.errors import ConfigError, InsufficientMemory, ShuttingDown
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task
from ravenous_engine import TARGET, begun

find = AdapterFinder([TARGET]).target


def model(what: str, family: str = "ravenous") -> ModelSpec:
    return ModelSpec(what, family, what, Task.TTS)


def pid_of(capability) -> int:
    return int(capability.languages[0])


def test_models_are_inspected_in_one_process_that_is_not_this_one():
    with Inspector(find) as inspector:
        first, second = (pid_of(inspector.inspect(model("fine"))) for _ in range(2))
    assert first == second != os.getpid()
    assert not psutil.pid_exists(first)


@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        ("memory", InsufficientMemory, "ran out of memory"),
        ("words", ConfigError, "longer than 4194304 bytes"),
        ("crash", ConfigError, "has failed"),
    ],
)
def test_a_model_that_takes_too_much_is_refused_and_the_next_is_inspected(what, error, said):
    with Inspector(find) as inspector:
        with pytest.raises(error, match=said):
            inspector.inspect(model(what))
        assert pid_of(inspector.inspect(model("fine")))


def test_a_model_that_takes_too_long_is_refused_and_its_process_is_gone():
    with Inspector(find, limit_s=5) as inspector:
        before = pid_of(inspector.inspect(model("fine")))
        with pytest.raises(ConfigError, match="could not be inspected within 5 s"):
            inspector.inspect(model("wait"))
        assert not psutil.pid_exists(before)
        assert pid_of(inspector.inspect(model("fine"))) != before


@pytest.mark.parametrize("family", ["no-such-family", "broken"])
def test_a_family_at_fault_is_named_as_the_field(family):
    def target(name: str) -> str:
        return "no_such_module:Adapter" if name == "broken" else find(name)

    with Inspector(target) as inspector, pytest.raises(ConfigError) as caught:
        inspector.inspect(model("fine", family))
    assert caught.value.param == "family"


def test_one_that_is_killed_while_it_works_says_that_the_server_stops(tmp_path):
    with begun(tmp_path) as await_begun, Inspector(find) as inspector:
        pid = pid_of(inspector.inspect(model("fine")))
        killer = threading.Thread(target=lambda: (await_begun(), inspector.kill()))
        killer.start()
        with pytest.raises(ShuttingDown):
            inspector.inspect(model(f"{tmp_path}/wait"))
        killer.join()
        with pytest.raises(ShuttingDown):
            inspector.inspect(model("fine"))
        assert not psutil.pid_exists(pid)


async def test_several_are_inspected_at_once_and_their_processes_end_when_they_are_idle():
    clock = ManualClock()
    inspections = Inspections(clock, find)
    pids = {pid_of(it) for it in await asyncio.gather(*(inspections.inspect(model("fine")) for _ in range(3)))}
    assert len(pids) == 3
    clock.advance(IDLE_S)
    assert not any(map(psutil.pid_exists, pids))
    assert pid_of(await inspections.inspect(model("fine"))) not in pids
    inspections.close()


async def test_no_more_than_a_few_are_inspected_at_once():
    inspections = Inspections(ManualClock(), find)
    asked = [inspections.inspect(model("fine")) for _ in range(3 * MAX_AT_ONCE)]
    assert len({pid_of(it) for it in await asyncio.gather(*asked)}) == MAX_AT_ONCE
    inspections.close()


async def test_a_kill_ends_what_is_inspected_and_begins_no_other(tmp_path):
    inspections = Inspections(ManualClock(), find)
    pid = pid_of(await inspections.inspect(model("fine")))
    with begun(tmp_path) as await_begun:
        waiting = asyncio.ensure_future(inspections.inspect(model(f"{tmp_path}/wait")))
        reader = Crew("reader")
        await reader.call(await_begun)
        reader.stop()
    inspections.kill()
    with pytest.raises(ShuttingDown):
        await waiting
    with pytest.raises(ShuttingDown):
        await inspections.inspect(model("fine"))
    inspections.close()
    assert not psutil.pid_exists(pid)
