"""Each steering file, exercised against the controlled engine without a server."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from antiphon.testing import ControlledAdapter, ControlledCheckpoint
from antiphon.testing.controlled import ControlledModel, ControlledSession
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.tasks import AudioDelta, Cancellation, TaskRequest

HELLO = TaskRequest(text="hello")
MEBIBYTE = 1024 * 1024

Act = Callable[[ControlledModel, ControlledSession], object]
STEPS: dict[str, Act] = {
    "load": lambda model, _: ControlledAdapter().load(model._spec),
    "open": lambda model, _: model.open_session(),
    "clone": lambda _, session: session.clone(),
    "prepare": lambda _, session: session.prepare(HELLO),
    "run": lambda _, session: session.run(HELLO),
    "stream": lambda _, session: list(session.stream(HELLO, None)),
    "reset": lambda _, session: session.reset(),
    "destroy": lambda _, session: session.close(),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_held_step_announces_itself_and_waits_for_its_release(
    checkpoint: ControlledCheckpoint, model: ControlledModel, session: ControlledSession, step: str
) -> None:
    announced = len(checkpoint.events(step))
    checkpoint.hold(step)
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(_ended_at, STEPS[step], model, session)
        checkpoint.wait_for(step, announced + 1)
        released_at = time.monotonic()
        checkpoint.release(step)
        assert acting.result() >= released_at


@pytest.mark.parametrize("step", STEPS)
def test_a_step_fails_as_its_file_says(
    checkpoint: ControlledCheckpoint, model: ControlledModel, session: ControlledSession, step: str
) -> None:
    checkpoint.fail(step, "MemoryError")
    with pytest.raises(MemoryError):
        STEPS[step](model, session)


def test_inspect_fails_as_its_file_says(checkpoint: ControlledCheckpoint) -> None:
    checkpoint.fail("inspect", "ConfigError")
    with pytest.raises(Exception, match="inspect fails") as failure:
        ControlledAdapter().inspect(checkpoint.spec())
    assert type(failure.value).__name__ == "ConfigError"


@pytest.mark.parametrize(
    ("text", "kind"), [("", RuntimeError), ("OSError", OSError), ("InvalidRequest", InvalidRequest)]
)
def test_a_fail_file_names_a_builtin_or_a_domain_error(
    checkpoint: ControlledCheckpoint, session: ControlledSession, text: str, kind: type[Exception]
) -> None:
    checkpoint.fail("run", text)
    with pytest.raises(kind, match="run fails") as failure:
        session.run(HELLO)
    assert type(failure.value) is kind


@pytest.mark.parametrize("name", ["print", "Nothing", "ClassVar"])
def test_a_fail_file_that_names_no_exception_says_so(
    checkpoint: ControlledCheckpoint, session: ControlledSession, name: str
) -> None:
    checkpoint.fail("run", name)
    with pytest.raises(LookupError, match=name):
        session.run(HELLO)


@pytest.mark.parametrize("step", ["prepare", "run", "stream"])
def test_a_hold_with_a_text_holds_only_that_request(
    checkpoint: ControlledCheckpoint, model: ControlledModel, session: ControlledSession, step: str
) -> None:
    other = session.clone()
    assert other is not None
    checkpoint.hold(step, "hello")
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(_ended_at, STEPS[step], model, session)
        checkpoint.wait_for(step, text="hello")
        passing = TaskRequest(text="passes")
        other.prepare(passing)
        assert len(list(other.stream(passing, None))) == 4
        released_at = time.monotonic()
        checkpoint.release(step, "hello")
        assert acting.result() >= released_at


@pytest.mark.parametrize("text", ["a/b", "../run", "x" * 5000, "nul\0", "\ud800", ""])
def test_a_text_that_is_no_name_of_a_file_is_answered(
    checkpoint: ControlledCheckpoint, session: ControlledSession, text: str
) -> None:
    checkpoint.hold("run", "hello")
    assert session.run(TaskRequest(text=text)).text == f"tts-v1|s1|{text}"
    assert checkpoint.events("ran")[0].request == text


def test_run_files_hold_each_item_of_a_batch(checkpoint: ControlledCheckpoint, session: ControlledSession) -> None:
    checkpoint.hold("run", "two")
    batch = session.run_batch([HELLO, TaskRequest(text="two")])
    assert next(batch)[0] == 0
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(next, batch)
        checkpoint.wait_for("run", text="two")
        assert [event.request for event in checkpoint.events("ran")] == ["hello"]
        checkpoint.release("run", "two")
        assert second.result()[0] == 1


def test_run_files_fail_a_stream_before_its_first_piece(
    checkpoint: ControlledCheckpoint, session: ControlledSession
) -> None:
    checkpoint.fail("run")
    with pytest.raises(RuntimeError, match="run fails"):
        next(session.stream(HELLO, None))


def test_stream_files_fail_a_stream_after_its_first_piece(
    checkpoint: ControlledCheckpoint, session: ControlledSession
) -> None:
    checkpoint.fail("stream")
    events = session.stream(HELLO, None)
    assert isinstance(next(events), AudioDelta)
    with pytest.raises(RuntimeError, match="stream fails"):
        next(events)
    assert checkpoint.events()[-1].step == "ran"


def test_a_stream_that_is_closed_early_has_ran(checkpoint: ControlledCheckpoint, session: ControlledSession) -> None:
    events = session.stream(HELLO, None)
    next(events)
    assert checkpoint.events("ran") == []
    events.close()
    assert len(checkpoint.events("ran")) == 1


def test_a_failed_run_has_ran(checkpoint: ControlledCheckpoint, session: ControlledSession) -> None:
    checkpoint.fail("run")
    with pytest.raises(RuntimeError):
        session.run(HELLO)
    assert len(checkpoint.events("ran")) == 1


def test_the_clone_that_is_named_fails(checkpoint: ControlledCheckpoint, session: ControlledSession) -> None:
    checkpoint.fail("clone", "2 OSError")
    assert session.clone() is not None
    with pytest.raises(OSError, match="clone fails"):
        session.clone()
    assert session.clone() is not None


def test_a_null_session_is_none(checkpoint: ControlledCheckpoint, model: ControlledModel) -> None:
    checkpoint.set("session.null")
    assert model.open_session() is None
    model.close()


def test_a_null_clone_is_none(checkpoint: ControlledCheckpoint, session: ControlledSession) -> None:
    checkpoint.set("clone.null")
    assert session.clone() is None


@pytest.mark.parametrize("fact", ["family", "task", "mode", "interfaces", "sample_rate", "channels"])
def test_a_clone_differs_in_the_fact_that_is_named(
    checkpoint: ControlledCheckpoint, session: ControlledSession, fact: str
) -> None:
    checkpoint.set("clone.differs", fact)
    clone = session.clone()
    facts = ["family", "task", "mode", "interfaces", "sample_rate", "channels", "capacity"]
    assert [name for name in facts if getattr(clone, name) != getattr(session, name)] == [fact]


def test_an_unknown_fact_to_differ_in_is_named(checkpoint: ControlledCheckpoint, session: ControlledSession) -> None:
    checkpoint.set("clone.differs", "colour")
    with pytest.raises(ValueError, match="colour"):
        session.clone()


def test_the_capacity_is_four_unless_a_file_or_the_session_options_say_otherwise(
    checkpoint: ControlledCheckpoint,
) -> None:
    capacities = []
    for text, options in ((None, {}), ("2", {}), ("2", {"capacity": 7})):
        if text is not None:
            checkpoint.set("capacity", text)
        session = ControlledAdapter().load(checkpoint.spec(session_options=options)).open_session()
        assert session is not None
        capacities.append(session.capacity)
    assert capacities == [4, 2, 7]


def test_an_open_session_keeps_its_capacity(checkpoint: ControlledCheckpoint, session: ControlledSession) -> None:
    checkpoint.set("capacity", "1")
    assert session.capacity == 4


def test_the_bytes_are_really_taken_and_given_back(checkpoint: ControlledCheckpoint) -> None:
    checkpoint.set("bytes", str(64 * MEBIBYTE))
    assert ControlledAdapter().inspect(checkpoint.spec()).weight_bytes == 64 * MEBIBYTE
    process = psutil.Process()
    before = process.memory_info().rss
    model = ControlledAdapter().load(checkpoint.spec())
    loaded = process.memory_info().rss
    model.close()
    after = process.memory_info().rss
    assert loaded - before > 60 * MEBIBYTE
    assert loaded - after > 60 * MEBIBYTE


@pytest.mark.parametrize("behaviour", ["ms", "spin", "gil"])
def test_a_run_takes_at_least_the_time_that_its_file_says(
    checkpoint: ControlledCheckpoint, session: ControlledSession, behaviour: str
) -> None:
    checkpoint.set(f"run.{behaviour}", "20")
    session.run(HELLO)
    [began], [ended] = checkpoint.events("run"), checkpoint.events("ran")
    assert ended.t - began.t >= 0.02


def test_a_load_takes_at_least_the_time_that_its_file_says(checkpoint: ControlledCheckpoint) -> None:
    checkpoint.set("load.ms", "20")
    ControlledAdapter().load(checkpoint.spec())
    [began], [ended] = checkpoint.events("load"), checkpoint.events("loaded")
    assert ended.t - began.t >= 0.02


def test_a_run_that_keeps_the_gil_stops_every_other_thread(
    checkpoint: ControlledCheckpoint, session: ControlledSession
) -> None:
    checkpoint.set("run.gil", "200")
    looping, done, gaps = threading.Event(), threading.Event(), [0.0]

    def loop() -> None:
        last, is_over = time.monotonic(), False
        while not is_over:
            is_over = done.is_set()  # looked at before the clock, so that the last gap counts, too
            now = time.monotonic()
            gaps[0] = max(gaps[0], now - last)
            last = now
            looping.set()

    other = threading.Thread(target=loop)
    other.start()
    looping.wait()
    session.run(HELLO)
    done.set()
    other.join()
    assert gaps[0] >= 0.19


@pytest.mark.parametrize("behaviour", ["hold", "ms", "spin"])
def test_a_cancellable_run_ends_early(
    checkpoint: ControlledCheckpoint, session: ControlledSession, behaviour: str
) -> None:
    an_hour = "3600000"
    checkpoint.set(f"run.{behaviour}", an_hour)
    checkpoint.set("run.cancellable")
    gone = Cancellation()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.run, TaskRequest(text="hello", cancellation=gone))
        checkpoint.wait_for("run")
        gone.cancel()
        assert running.result().text == "tts-v1|s1|hello"


def test_a_run_heeds_no_cancellation_by_itself(checkpoint: ControlledCheckpoint, session: ControlledSession) -> None:
    gone = Cancellation()
    gone.cancel()
    checkpoint.hold("run")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.run, TaskRequest(text="hello", cancellation=gone))
        checkpoint.wait_for("run")
        released_at = time.monotonic()
        checkpoint.release("run")
        running.result()
    assert checkpoint.events("ran")[0].t >= released_at


def test_a_cancellable_stream_ends_at_its_next_piece(
    checkpoint: ControlledCheckpoint, session: ControlledSession
) -> None:
    checkpoint.set("run.cancellable")
    gone = Cancellation()
    events = session.stream(TaskRequest(text="hello", cancellation=gone), None)
    next(events)
    gone.cancel()
    assert list(events) == []


def test_a_reset_that_fails_leaves_the_session_fit(
    checkpoint: ControlledCheckpoint, session: ControlledSession
) -> None:
    list(session.stream(HELLO, None))
    checkpoint.fail("reset")
    with pytest.raises(RuntimeError, match="reset fails"):
        session.reset()
    session.prepare(HELLO)


def test_a_destruction_that_fails_gives_the_memory_back(checkpoint: ControlledCheckpoint) -> None:
    model = ControlledAdapter().load(checkpoint.spec())
    checkpoint.fail("destroy")
    with pytest.raises(RuntimeError, match="destroy fails"):
        model.close()
    assert model._weights.closed
    assert checkpoint.events("closed") == []


@pytest.mark.parametrize(("text", "status"), [("", -signal.SIGKILL), ("7", 7), ("SIGTERM", -signal.SIGTERM)])
def test_a_run_that_crashes_ends_its_process(checkpoint: ControlledCheckpoint, text: str, status: int) -> None:
    checkpoint.set("run.crash", text)
    assert _run_in_a_process(checkpoint).wait(30) == status
    assert len(checkpoint.events("run")) == 1
    assert checkpoint.events("ran") == []


def test_a_run_that_hangs_never_returns(checkpoint: ControlledCheckpoint) -> None:
    checkpoint.set("run.hang")
    process = _run_in_a_process(checkpoint)
    try:
        checkpoint.wait_for("run")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)  # a run without the file takes far less
    finally:
        process.kill()
        process.wait()


def _ended_at(act: Act, model: ControlledModel, session: ControlledSession) -> float:
    act(model, session)
    return time.monotonic()


def _run_in_a_process(checkpoint: ControlledCheckpoint) -> "subprocess.Popen[bytes]":
    code = (
        "import sys; from antiphon.testing import *; from antiphon.vocabulary.tasks import TaskRequest\n"
        "from pathlib import Path; checkpoint = ControlledCheckpoint(Path(sys.argv[1]))\n"
        "ControlledAdapter().load(checkpoint.spec()).open_session().run(TaskRequest(text='hello'))"
    )
    return subprocess.Popen([sys.executable, "-c", code, os.fspath(checkpoint.path)])
