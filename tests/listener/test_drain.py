"""The drain after a stop signal: what goes on, what is refused, what the deadline and a second signal cut off.

The cells `time.shutdown_*` and `ops.shutting_down.*` are in tests/conformance. Here are the deadline, connections that
lie idle, the ways to be started, and bug report DIS-03 whole. Each test names in a comment a mutant that it kills.
"""

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

import httpx
import psutil
import pytest

from antiphon.testing import ControlledCheckpoint
from conformance_client import Client, OpenCall
from conformance_evidence import answers
from listener_stop import assert_ended, begin_stop, kept_alive
from refusals import assert_refused
from server_process import running_server

SPEECH = "/v1/audio/speech"
TASK_RUN = "/v1/tasks/run"
TASK_STREAM = "/v1/tasks/stream"

NAMESPACES = (
    ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
    ("unshare", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"),
)
"""Ways to become process 1 of a namespace: as root, and as a user where the kernel lets users have namespaces."""

LIKE_PROCESS_1 = ("sh", "-c", 'trap "" TERM INT; exec "$@"', "sh")
"""To process 1 the kernel delivers no signal that it has no handler for; to one that was started like this neither."""


def test_an_open_stream_and_a_queued_request_end_while_new_requests_are_refused(serve):
    # Mutants: idle connections are closed before they can be answered; the stop cancels streams. (DIS-03)
    server = serve(slots=1)
    model = server.new_model()
    with (
        model.checkpoint.held("stream"),
        kept_alive(server.process.url) as idle,
        kept_alive(server.process.url) as other,
        kept_alive(server.process.url) as third,
    ):
        stream = model.open_stream("streamed")
        assert next(stream.events())["type"] == "task.delta"
        queued = model.infer("queued")
        model.wait_queue("infer")

        begin_stop(server.process)

        speech = {"model": model.id, "input": "too late"}
        assert_refused(idle.post(SPEECH, json=speech), 503, code="shutting_down")
        assert_refused(other.get("/health"), 503, code="shutting_down")
        assert_refused(third.get("/v1/models"), 503, code="shutting_down")
    assert [event["type"] for event in stream.events()][-1] == "task.done"
    assert stream.read() == b""
    assert answers([queued])[0].text == "queued"
    stream.cut()
    assert_ended(server.process)
    assert model.runs() == ["streamed", "queued"]


def test_a_refusal_during_the_drain_closes_its_connection(serve):
    # Mutant: the answer lacks `connection: close`, so the client sends its next request into a closing connection.
    server = serve()
    model = server.new_model()
    with model.checkpoint.held("run"), kept_alive(server.process.url) as line:
        running = model.infer("running")
        model.checkpoint.wait_for("run")
        begin_stop(server.process)
        refused = line.get("/v1/models")
        assert_refused(refused, 503, code="shutting_down")
        assert refused.headers["connection"] == "close"
        with pytest.raises(httpx.ConnectError):
            line.get("/v1/models")
    assert answers([running])[0].text == "running"
    assert_ended(server.process)


def test_an_idle_connection_does_not_keep_a_stopped_server(serve):
    # Mutant: the drain waits until idle connections are closed by their clients.
    server = serve()
    with kept_alive(server.process.url):
        begin_stop(server.process)
        assert_ended(server.process)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda it: it.name)
def test_at_the_deadline_what_waits_is_refused_and_what_runs_is_cut(serve, number):
    # Mutants: the deadline cancels tasks and leaves the engine running; waiters are closed without an answer.
    server = serve(drain_timeout_ms=100)
    model = server.new_model()
    model.checkpoint.set("run.cancellable")
    model.checkpoint.hold("stream")
    with model.checkpoint.held("run", "offline"):
        offline, stream = model.open_infer("offline"), model.open_stream("streamed")
        events = stream.events()
        assert next(events)["type"] == "task.delta"
        model.checkpoint.wait_for("run", text="offline")
        queued = [model.infer(f"queued {place}") for place in range(3)]
        model.wait_listed(queued_requests=3)

        begin_stop(server.process, number)

        for call in queued:
            assert_refused(call.result(), 503, code="shutting_down")
        assert _cut_answer(offline)
        assert "task.done" not in _types_until_cut(events)
        assert_ended(server.process)
    offline.cut()
    stream.cut()
    assert sorted(model.runs()) == ["offline", "streamed"]
    assert len(model.checkpoint.events("ran")) == 2
    assert model.checkpoint.events()[-1].step == "closed"


def test_a_second_signal_moves_the_deadline_to_now(serve):
    # Mutant: a second signal is ignored, or kills.
    server = serve(drain_timeout_ms=86_400_000)
    model = server.new_model()
    model.checkpoint.set("run.cancellable")
    with model.checkpoint.held("run"):
        running = [model.open_infer(f"running {number}") for number in range(server.slots)]
        model.checkpoint.wait_for("run", server.slots)
        queued = model.infer("queued")
        model.wait_queue("infer")
        begin_stop(server.process)
        server.process.process.send_signal(signal.SIGINT)  # whichever it is
        assert_refused(queued.result(), 503, code="shutting_down")
        assert all(_cut_answer(call) for call in running)
        assert_ended(server.process)
    for call in running:
        call.cut()
    assert len(model.checkpoint.events("ran")) == server.slots


def test_after_the_deadline_an_engine_that_heeds_nothing_is_still_joined(serve):
    # Mutant: the process ends although a thread is in an engine.
    server = serve(slots=1, drain_timeout_ms=100)
    model, loading = server.new_model(), server.new_model(loaded=False)
    with loading.checkpoint.held("load"), model.checkpoint.held("run"):
        running, cold = model.open_infer("running"), loading.open_infer("cold")
        model.checkpoint.wait_for("run")
        loading.checkpoint.wait_for("load", 2)
        queued = model.infer("queued")
        model.wait_queue("infer")
        begin_stop(server.process)
        assert_refused(queued.result(), 503, code="shutting_down")
        assert _cut_answer(running)
        assert _cut_answer(cold)
    assert_ended(server.process)
    running.cut()
    cold.cut()
    for it in (model, loading):
        assert it.checkpoint.events()[-1].step == "closed"
    assert loading.runs() == []


def test_the_stop_is_heeded_while_a_model_loads_at_the_start(tmp_path):
    # Mutant: signals are taken only once the models of the configuration are loaded.
    with _small_server(tmp_path, held="load", lazy_load=False) as (server, checkpoint):
        checkpoint.wait_for("load")
        begin_stop(server)
        assert checkpoint.events("loaded") == []
        checkpoint.release("load")
        assert_ended(server)
    assert checkpoint.events()[-1].step == "closed"


@pytest.mark.parametrize("how", ["in a namespace", "with its signals ignored"])
def test_it_stops_as_process_1(tmp_path, how):
    # Mutant: the stop signals keep the default action or the one that was inherited. (DIS-03)
    launcher = _namespace() if how == "in a namespace" else LIKE_PROCESS_1
    with _small_server(tmp_path, launcher) as (server, checkpoint):
        pid = _server_pid(server.process.pid)
        assert launcher == LIKE_PROCESS_1 or _pid_inside(pid) == 1
        stream = Client(server.url).open("POST", TASK_STREAM, json=_order("streamed"))
        assert next(stream.events())["type"] == "task.delta"
        with kept_alive(server.url) as idle:
            begin_stop(server, pid=pid)
            assert_refused(idle.get("/health"), 503, code="shutting_down")
        checkpoint.release("stream")
        assert [event["type"] for event in stream.events()][-1] == "task.done"
        stream.cut()
        assert_ended(server)
    assert checkpoint.events()[-1].step == "closed"


def test_a_second_signal_ends_the_drain_of_process_1(tmp_path):
    # Mutant: the second signal restores the default action, which process 1 does not have. (DIS-03)
    with _small_server(tmp_path, _namespace()) as (server, checkpoint):
        pid = _server_pid(server.process.pid)
        checkpoint.set("run.cancellable")
        stream = Client(server.url).open("POST", TASK_STREAM, json=_order("streamed"))
        events = stream.events()
        assert next(events)["type"] == "task.delta"
        begin_stop(server, pid=pid)
        psutil.Process(pid).send_signal(signal.SIGTERM)
        assert "task.done" not in _types_until_cut(events)
        assert_ended(server)
        stream.cut()


def _cut_answer(call: OpenCall) -> bool:
    """Whether a call ends without a whole answer: closed, or the refusal of a server that is shutting down."""
    try:
        answer = call.head()
        body = answer.read()
    except (OSError, HTTPException):
        return True
    return answer.status == 503 and b"shutting_down" in body


def _types_until_cut(events: Iterator[dict[str, object]]) -> list[object]:
    """The types of the events that still come."""
    types: list[object] = []
    with suppress(OSError, HTTPException):
        types.extend(event["type"] for event in events)
    return types


@contextmanager
def _small_server(folder: Path, launcher=(), *, held="stream", lazy_load=True):
    """A server of one controlled model, `m`, in which one step is held; yields the process and the checkpoint."""
    checkpoint = ControlledCheckpoint(folder / "v1")
    checkpoint.hold(held)
    models = [{"id": "m", "family": "controlled", "path": str(checkpoint.path), "task": "tts"}]
    settings = {"lazy_load": lazy_load, "drain_timeout_ms": 86_400_000, "models": models}
    with running_server(folder, settings, launcher=launcher) as server:
        yield server, checkpoint


def _order(text):
    return {"model": "m", "request": {"text": text}}


def _namespace():
    """How to run a command as process 1. Where nobody may have namespaces: as one that is treated like process 1."""
    for launcher in NAMESPACES:
        if subprocess.run([*launcher, "true"], capture_output=True, check=False).returncode == 0:
            return launcher
    return LIKE_PROCESS_1


def _server_pid(launched: int) -> int:
    """The server's process, as we see it: the one that was launched, or its child."""
    return next(iter(psutil.Process(launched).children()), psutil.Process(launched)).pid


def _pid_inside(pid: int) -> int:
    """The number of a process in its own namespace."""
    numbers = re.search(r"^NSpid:\s+(.*)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert numbers is not None
    return int(numbers[1].split()[-1])
