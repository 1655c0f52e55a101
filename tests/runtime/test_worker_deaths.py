"""What becomes of a host whose process ends, whenever that is and however."""

import asyncio
import os
import select
import signal
import subprocess
import sys

import pytest
import uvloop

from antiphon.vocabulary.errors import WorkerDied
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import TaskRequest
from host_stage import Opened, descriptors
from runtime_stage import until

HANG_GUARD_S = 30.0


@pytest.fixture
def opened(checkpoint):
    return Opened(checkpoint, Isolation.PROCESS)


def gone(pid):
    """Whether there is no such process, not even a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def streamed(host):
    stream = await host.stream(0, TaskRequest(text="a"), None)
    try:
        async for _ in stream:
            pass
    finally:
        await stream.aclose()


async def batched(host):
    batch = await host.run_batch(0, [TaskRequest(text="a")])
    try:
        async for _ in batch:
            pass
    finally:
        await batch.aclose()


CALLS = {
    "inspect": lambda host: host.inspect(),
    "load": lambda host: host.load(),
    "open": lambda host: host.open(),
    "clone": lambda host: host.clone(1),
    "prepare": lambda host: host.run(0, TaskRequest(text="a")),
    "run": lambda host: host.run(0, TaskRequest(text="a")),
    "stream": streamed,
    "reset": streamed,
    "destroy": lambda host: host.close(),
}


async def dies(call):
    with pytest.raises(WorkerDied) as caught:
        await call
    return caught.value.message


@pytest.mark.parametrize("step", CALLS)
async def test_a_call_whose_worker_dies_says_so_and_so_does_every_later_one(opened, step):
    before_it = list(CALLS)[: list(CALLS).index(step)]
    for earlier in ("inspect", "load", "open"):
        if earlier in before_it:
            await CALLS[earlier](opened.host)
    opened.checkpoint.set(f"{step}.crash")
    told = await dies(CALLS[step](opened.host))
    assert told == "the model's worker process has ended: it was killed by signal 9 (SIGKILL)"
    assert await dies(opened.host.run(0, TaskRequest(text="a"))) == told
    assert opened.deaths == 1


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("SIGSEGV", "it was killed by signal 11 (SIGSEGV)"),
        ("SIGABRT", "it was killed by signal 6 (SIGABRT)"),
        ("3", "it exited with code 3"),
        ("0", "it exited with code 0"),
    ],
)
async def test_a_death_is_told_in_words(opened, how, words):
    await opened.slots()
    opened.checkpoint.set("run.crash", how)
    assert words in await dies(opened.host.run(0, TaskRequest(text="a")))


async def test_a_crash_says_in_the_log_where_it_was(opened, caplog):
    caplog.set_level("INFO")
    await opened.slots()
    opened.checkpoint.set("run.crash", "SIGSEGV")
    await dies(opened.host.run(0, TaskRequest(text="a")))
    await opened.host.terminate()
    said = [record.message for record in caplog.records]
    assert "controlled: Fatal Python error: Segmentation fault" in said
    assert any("steering.py" in line for line in said)


async def test_all_that_is_under_way_fails_before_the_death_is_told(opened):
    await opened.slots(3)
    opened.checkpoint.hold("run")
    opened.checkpoint.hold("stream")
    stream = await opened.host.stream(2, TaskRequest(text="c"), None)
    running = [opened.say("a", 0), opened.say("b", 1)]
    await opened.checkpoint.await_for("run", 3)
    reading = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    os.kill(opened.host.pid, signal.SIGKILL)
    outcomes = await asyncio.gather(*running, reading, return_exceptions=True)
    assert [type(it) for it in outcomes] == [WorkerDied] * 3
    assert len({id(it) for it in outcomes}) == 3
    await stream.aclose()


async def test_a_worker_that_dies_idle_is_missed_at_once(opened):
    await opened.slots()
    pid = opened.host.pid
    os.kill(pid, signal.SIGKILL)
    await until(lambda: opened.deaths)
    assert gone(pid)
    assert (opened.host.pid, await opened.host.resident_bytes()) == (None, None)


async def test_a_worker_that_ends_when_it_is_told_to_is_not_missed(opened):
    await opened.slots()
    await opened.host.close()
    await opened.host.terminate()
    assert opened.deaths == 0


@pytest.mark.parametrize("steer", [("run.hang", ""), ("run.spin", "60000"), ("run.gil", "60000")])
async def test_a_worker_that_hangs_is_killed_whatever_it_does(opened, steer):
    await opened.slots()
    opened.checkpoint.set(*steer)
    running = opened.say("a")
    await opened.checkpoint.await_for("run")
    pid = opened.host.pid
    opened.host.kill()
    assert "signal 9" in await dies(running)
    assert gone(pid)
    assert opened.deaths == 1
    opened.host.kill()  # once more is harmless


async def test_an_end_that_hangs_is_cut_short_by_a_kill(opened):
    await opened.slots()
    opened.checkpoint.set("run.gil", "60000")
    running = opened.say("a")
    await opened.checkpoint.await_for("run")
    ending = asyncio.ensure_future(opened.host.terminate())
    await asyncio.sleep(0)
    opened.host.kill()
    await ending
    await dies(running)
    assert opened.deaths == 0  # it was asked to end


async def test_a_kill_that_comes_before_the_start_forbids_it(opened):
    opened.host.kill()
    assert "before it had started" in await dies(opened.host.load())
    assert opened.host.pid is None


async def test_a_kill_that_comes_while_it_starts_ends_it(opened):
    loading = asyncio.ensure_future(opened.host.load())
    await asyncio.sleep(0)
    opened.host.kill()
    assert "signal 9" in await dies(loading)
    assert opened.deaths == 1


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_process_that_cannot_be_started_leaves_nothing(checkpoint, loop_factory, monkeypatch):
    async def fail():
        opened = Opened(checkpoint, Isolation.PROCESS)
        before = descriptors()
        monkeypatch.setattr(sys, "executable", str(checkpoint.path / "none"))
        with pytest.raises(FileNotFoundError):
            await opened.host.load()
        await opened.host.close()
        await opened.host.terminate()
        await asyncio.sleep(0)
        return descriptors() - before

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        first = runner.run(fail())
        monkeypatch.undo()
        assert len(first) <= 1  # uvloop keeps one of its own
        assert not runner.run(fail())


async def test_a_terminate_ends_a_worker_whose_engine_hangs(opened):
    await opened.slots()
    opened.checkpoint.set("run.hang")
    running = opened.say("a")
    await opened.checkpoint.await_for("run")
    pid = opened.host.pid
    await opened.host.terminate()
    assert gone(pid)
    await dies(running)


async def test_a_death_leaves_no_descriptor(opened):
    before = descriptors()
    await opened.slots()
    opened.checkpoint.set("run.crash")
    await dies(opened.host.run(0, TaskRequest(text="a")))
    await opened.host.terminate()
    assert descriptors() == before


PARENT = """
import asyncio, sys
from antiphon.runtime.hosts.process import ProcessHost
from antiphon.testing import ControlledCheckpoint
from antiphon.vocabulary.tasks import TaskRequest
from host_stage import CONTROLLED
from pathlib import Path

async def main():
    host = ProcessHost(CONTROLLED, ControlledCheckpoint(Path(sys.argv[1])).spec(), lambda: None)
    await host.load()
    await host.open()
    print(host.pid, flush=True)
    await host.run(0, TaskRequest(text="a"))

asyncio.run(main())
"""


@pytest.mark.parametrize("steer", [("run.hang", ""), ("run.gil", "60000")])
def test_a_worker_does_not_outlive_a_server_that_is_killed(checkpoint, steer):
    checkpoint.set(*steer)
    command = [sys.executable, "-c", PARENT, str(checkpoint.path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as parent:
        worker = os.pidfd_open(int(parent.stdout.readline()))
        checkpoint.wait_for("run")
        parent.kill()
    ended, _, _ = select.select([worker], [], [], HANG_GUARD_S)
    os.close(worker)
    assert ended


def test_the_same_holds_on_the_loop_that_the_server_runs_on(checkpoint):
    async def live_and_die():
        opened = Opened(checkpoint, Isolation.PROCESS)
        await opened.slots()
        pid = opened.host.pid
        assert (await opened.say("a")).endswith("|a")
        await streamed(opened.host)
        checkpoint.set("run.crash", "SIGSEGV")
        assert "signal 11" in await dies(opened.say("a"))
        checkpoint.unset("run.crash")
        await opened.host.terminate()
        assert (opened.deaths, gone(pid)) == (1, True)

    async def twice():
        await live_and_die()
        before = descriptors()  # the loop keeps one of its own from the first time on
        await live_and_die()
        assert descriptors() == before

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(twice())
