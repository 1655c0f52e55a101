"""The test's side of a controlled checkpoint, and its log of events."""

import asyncio
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from antiphon.testing import ControlledAdapter, ControlledCheckpoint
from antiphon.testing.controlled import ControlledSession
from antiphon.testing.events import append_event, read_events
from antiphon.vocabulary.tasks import Interface, Mode, Task, TaskRequest


def test_the_folder_is_made(tmp_path: Path) -> None:
    ControlledCheckpoint(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_steering_file_is_written_and_removed(checkpoint: ControlledCheckpoint) -> None:
    checkpoint.set("capacity", "2")
    assert (checkpoint.path / "capacity").read_text() == "2"
    checkpoint.unset("capacity")
    assert list(checkpoint.path.iterdir()) == []


def test_a_release_without_a_hold_is_a_fault_of_the_test(checkpoint: ControlledCheckpoint) -> None:
    with pytest.raises(FileNotFoundError):
        checkpoint.release("run")


def test_a_held_block_ends_its_hold_even_when_it_was_released_within(checkpoint: ControlledCheckpoint) -> None:
    with checkpoint.held("run"), checkpoint.held("run", "text"):
        checkpoint.release("run")
        assert {file.name for file in checkpoint.path.iterdir()} == {"run.hold.text"}
    assert list(checkpoint.path.iterdir()) == []


def test_an_event_has_the_fields_that_the_documentation_names(session: ControlledSession) -> None:
    session.run(TaskRequest(text="hello"))
    log = Path(session._model._spec.path) / "events.jsonl"
    last = json.loads(log.read_text().splitlines()[-1])
    assert set(last) == {"t", "pid", "step", "session", "request", "revision", "terms", "at_work"}
    assert last["step"] == "ran"


def test_events_can_be_chosen_by_step_and_text(checkpoint: ControlledCheckpoint, session: ControlledSession) -> None:
    session.run(TaskRequest(text="one"))
    session.run(TaskRequest(text="two"))
    assert [event.request for event in checkpoint.events("run")] == ["one", "two"]
    assert [event.step for event in checkpoint.events(text="two")] == ["run", "ran"]


def test_events_of_many_threads_are_whole_lines(tmp_path: Path) -> None:
    def write(name: str) -> None:
        for _ in range(50):
            append_event(tmp_path, "run", "revision", request=TaskRequest(text=name * 100))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, "abcdefgh"))
    assert len(read_events(tmp_path)) == 8 * 50


def test_a_line_that_is_just_being_written_counts_later(tmp_path: Path) -> None:
    append_event(tmp_path, "run", "revision")
    with (tmp_path / "events.jsonl").open("a") as log:
        log.write('{"t": 1')
    assert [event.step for event in read_events(tmp_path)] == ["run"]


def test_waiting_returns_the_event_that_was_counted(
    checkpoint: ControlledCheckpoint, session: ControlledSession
) -> None:
    for text in ("one", "two", "one"):
        session.run(TaskRequest(text=text))
    assert checkpoint.wait_for("run", count=2) == checkpoint.events("run")[1]
    assert checkpoint.wait_for("run", count=2, text="one") == checkpoint.events("run")[2]


def test_waiting_blocks_until_the_step_is_announced(checkpoint: ControlledCheckpoint) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(checkpoint.wait_for, "load")
        assert not waiting.done()
        ControlledAdapter().load(checkpoint.spec()).close()
        assert waiting.result().step == "load"


def test_waiting_in_vain_shows_the_events_that_were_seen(
    checkpoint: ControlledCheckpoint, session: ControlledSession
) -> None:
    session.run(TaskRequest(text="hello"))
    with pytest.raises(AssertionError, match=r"(?s)no 2 x 'run'.*the events seen.*step='ran'"):
        checkpoint.wait_for("run", count=2, timeout_s=0)


def test_the_event_loop_runs_on_while_it_awaits_a_step(checkpoint: ControlledCheckpoint) -> None:
    async def both() -> str:
        waiting = asyncio.ensure_future(checkpoint.await_for("load"))
        await asyncio.sleep(0)
        threading.Thread(target=ControlledAdapter().load, args=(checkpoint.spec(),)).start()
        return (await waiting).step

    assert asyncio.run(both()) == "load"


def test_the_spec_is_what_the_adapter_loads(checkpoint: ControlledCheckpoint) -> None:
    spec = checkpoint.spec(Task.ASR, mode=Mode.STREAMING, slots=2, session_options={"capacity": 3})
    session = ControlledAdapter().load(spec).open_session()
    assert session is not None
    assert (session.task, session.mode, session.capacity) == (Task.ASR, Mode.STREAMING, 3)
    assert session.interfaces == frozenset(Interface)


def test_the_doubles_need_neither_pytest_nor_numpy() -> None:
    code = "import sys, antiphon.testing; print(sorted({'pytest', 'numpy', 'pydantic'} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
