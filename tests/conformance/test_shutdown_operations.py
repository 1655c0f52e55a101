"""The cells `ops.shutting_down.*`: what becomes of operations that were accepted before a stop, and of those after it.

The drain has no deadline here (`drain_timeout_ms` 0), as in the contract. Each test names a mutant that it kills.
"""

import json
import signal
import socket
from contextlib import ExitStack

import pytest

import line_listener
from antiphon.testing import ControlledCheckpoint
from conformance_client import HANG_GUARD_S, eventually
from conformance_evidence import first, last, said
from conformance_plugin import cell
from conformance_server import BULK_UNLOAD, ISOLATIONS, LOAD, TASK_RUN, UNLOAD
from conformance_situations import fill
from conformance_standing import CAPACITY, comes_to, standing
from conformance_stopping import assert_destroyed_after_use
from listener_stop import assert_ended, begin_stop, kept_alive
from refusals import assert_refused
from server_process import running_server


@pytest.fixture
def draining(fresh_server):
    """A server whose drain has no deadline."""
    return fresh_server(drain_timeout_ms=0)


@cell("ops.shutting_down.inference")
def test_ops_shutting_down_inference(draining, slots):
    # Mutants: the stop withdraws what is queued; what comes on an open connection is still served.
    model = draining.new_model()
    with model.checkpoint.held("run"), kept_alive(draining.process.url) as line:
        calls, texts = fill(model, slots, queued=2)
        model.checkpoint.wait_for("run", slots)
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"] * 2))
        begin_stop(draining.process)
        late = line.post(TASK_RUN, json={"model": model.id, "request": {"text": "too late"}})
        assert_refused(late, 503, code="shutting_down")
    assert said(calls) == [("v1", text) for text in texts]
    assert_ended(draining.process)
    assert sorted(model.runs()) == sorted(texts)
    assert_destroyed_after_use(model)


@cell("ops.shutting_down.register")
def test_ops_shutting_down_register(draining, slots):
    # Mutants: `register` refuses once it has its lease, because the runtime is closing; a late one is admitted.
    model = draining.new_model()
    replacement, late = model.replacement("v2"), model.replacement("v3")
    with model.checkpoint.held("run"), kept_alive(draining.process.url) as line:
        calls, texts = fill(model, slots)
        register = model.register(path=str(replacement.path))
        model.wait_queue("load")
        behind = model.infer("behind")
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=["load", "infer"]))
        begin_stop(draining.process)
        body = {"id": model.id, "family": "controlled", "path": str(late.path), "task": "tts"}
        assert_refused(line.post(LOAD, json=body), 503, code="shutting_down")
    assert said(calls) == [("v1", text) for text in texts]
    assert register.ok()["loaded"] is True
    assert said([behind]) == [("v2", "behind")]
    assert_ended(draining.process)
    assert late.events() == []
    assert last(model.checkpoint, "ran") < first(model.checkpoint, "destroy")
    assert_destroyed_after_use(model)


@cell("ops.shutting_down.unload")
def test_ops_shutting_down_unload(draining, slots):
    # Mutant: `close` enters its own barrier before those that wait.
    model, other = draining.new_model(), draining.new_model()
    with model.checkpoint.held("run"), kept_alive(draining.process.url) as line:
        calls, texts = fill(model, slots)
        unload = model.unload()
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=["unload"]))
        begin_stop(draining.process)
        assert_refused(line.post(UNLOAD, json={"id": other.id}), 503, code="shutting_down")
    assert said(calls) == [("v1", text) for text in texts]
    assert unload.ok()["loaded"] is False
    assert_ended(draining.process)
    assert len(model.checkpoint.events("load")) == 1
    assert_destroyed_after_use(model, other)


@cell("ops.shutting_down.bulk_unload")
def test_ops_shutting_down_bulk_unload(draining, slots):
    # Mutant: the stop takes the barriers of a bulk operation back.
    model, free = draining.new_model(), draining.new_model()
    with model.checkpoint.held("run"), kept_alive(draining.process.url) as line:
        calls, texts = fill(model, slots)
        bulk = draining.bulk_unload(model, free)
        comes_to(free, standing("unloaded", slots=slots))
        model.wait_queue("bulk_unload")
        behind = model.infer("behind")
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=["bulk_unload", "infer"]))
        begin_stop(draining.process)
        assert_refused(line.post(BULK_UNLOAD, json={"model_ids": [free.id]}), 503, code="shutting_down")
    assert said(calls) == [("v1", text) for text in texts]
    assert bulk.ok() == {"unloaded": [model.id, free.id], "not_found": []}
    assert said([behind]) == [("v1", "behind")]
    assert_ended(draining.process)
    assert len(model.checkpoint.events("load")) == 2  # the request behind the barrier loaded it again
    assert_destroyed_after_use(model, free)


@cell("ops.shutting_down.evict")
def test_ops_shutting_down_evict(fresh_server, slots):
    # Mutant: `close` frees only the models that are in use.
    server = fresh_server(drain_timeout_ms=0, idle_unload_ms=86_400_000)
    model, idle = server.new_model(), server.new_model()
    with model.checkpoint.held("run"):
        calls, texts = fill(model, slots)
        model.checkpoint.wait_for("run", slots)
        begin_stop(server.process)
    assert said(calls) == [("v1", text) for text in texts]
    assert_ended(server.process)  # today, although a model may lie idle for a day
    assert len(idle.checkpoint.events("load")) == 1
    assert_destroyed_after_use(model, idle)


@cell("ops.shutting_down.evict")
def test_ops_shutting_down_evict_under_way(fresh_server, slots):
    # Mutant: `close` does not join the idle retirement.
    server = fresh_server("idle_unload", drain_timeout_ms=0)
    model = server.unregistered_model()
    with model.checkpoint.held("destroy"):
        model.register().ok()
        comes_to(model, standing("unloading", slots=slots, leases=["evict"]))
        model.checkpoint.wait_for("destroy")
        begin_stop(server.process)
        assert len(model.checkpoint.events("destroy")) == 1
    assert_ended(server.process)
    assert_destroyed_after_use(model)


@cell("ops.shutting_down.evict")
def test_ops_shutting_down_evict_for_work_that_was_accepted(fresh_server, slots):
    # Mutant: `_make_room` refuses while the server drains.
    server = fresh_server("residency_limit_1", drain_timeout_ms=0)
    model = server.new_model()
    with model.checkpoint.held("destroy"):
        unload = model.unload()
        model.checkpoint.wait_for("destroy")
        resident = server.new_model()
        behind = model.infer("behind")
        model.wait_queue("infer")
        begin_stop(server.process)
    assert unload.ok()["loaded"] is False
    assert said([behind]) == [("v1", "behind")]
    assert_ended(server.process)
    assert_destroyed_after_use(model, resident)


@cell("ops.shutting_down.status")
def test_ops_shutting_down_status(draining, slots):
    # Mutant: a status that is asked for during the drain waits for the models.
    model = draining.new_model()
    with model.checkpoint.held("run"), ExitStack() as open_lines:
        calls, texts = fill(model, slots)
        model.checkpoint.wait_for("run", slots)
        paths = ["/v1/models", f"/v1/models/{model.id}", "/v1/status", "/health"]
        lines = [open_lines.enter_context(kept_alive(draining.process.url)) for _ in paths]
        begin_stop(draining.process)
        for line, path in zip(lines, paths, strict=True):
            assert_refused(line.get(path), 503, code="shutting_down")
    assert said(calls) == [("v1", text) for text in texts]
    assert_ended(draining.process)
    assert_destroyed_after_use(model)


@cell("ops.shutting_down.status", "command")
def test_ops_shutting_down_status_for_a_caller_in_the_process(tmp_path, slots, isolation):
    # Mutant: the runtime is destroyed while a listener still calls the application.
    checkpoint, path = ControlledCheckpoint(tmp_path / "v1"), tmp_path / "lines.sock"
    model = {"id": "m", "family": "controlled", "path": str(checkpoint.path), "task": "tts", "slots": slots}
    lines = [{"kind": "lines", "path": str(path), "asks_at_stop": "/v1/status"}]
    settings = {"drain_timeout_ms": 0, **ISOLATIONS[isolation], "listeners": lines, "models": [model]}
    env = line_listener.installed(tmp_path)
    with (
        running_server(tmp_path, settings, "--parallel-jobs", env=env) as server,
        socket.socket(socket.AF_UNIX) as talk,
    ):
        talk.settimeout(HANG_GUARD_S)
        talk.connect(str(path))
        with checkpoint.held("run"):
            talk.sendall(b"running\n")
            checkpoint.wait_for("run")
            begin_stop(server)
            # A direct caller is still answered, with the model as it stands, and nothing is destroyed under it.
            eventually(lambda: line_listener.notes(tmp_path), lambda it: it[-1][1].startswith("asked"), "an answer")
            assert checkpoint.events("destroy") == []
        assert talk.recv(16).strip() == b"200"
        assert_ended(server)
    (asked, answer), *_ = ((t, what) for t, what in line_listener.notes(tmp_path) if what.startswith("asked"))
    (seen,) = json.loads(answer.removeprefix("asked: 200 "))["models"]
    (lease,) = seen["leases"]
    assert (seen["state"], seen["loaded"], seen["slots"], seen["max_parallel_slots"]) == (
        "ready",
        True,
        slots,
        CAPACITY,
    )
    assert (lease["operation"], lease["slot"], seen["active_slots"], seen["queue"]) == ("infer", 0, 1, [])
    told = {what: t for t, what in line_listener.notes(tmp_path)}
    assert asked < told["returned"] < checkpoint.events("destroy")[0].t


@cell("ops.shutting_down.shutdown")
@pytest.mark.parametrize("drain_timeout_ms", [0, 60_000])
def test_ops_shutting_down_shutdown(fresh_server, slots, drain_timeout_ms):
    # Mutants: a second signal ends the process, or skips the joins; it is taken for a first one.
    draining = fresh_server(drain_timeout_ms=drain_timeout_ms)
    model = draining.new_model()
    with model.checkpoint.held("run"):
        running = [model.open_infer(f"running {number}") for number in range(slots)]
        model.checkpoint.wait_for("run", slots)
        queued = model.infer("queued")
        model.wait_queue("infer")
        begin_stop(draining.process)
        draining.process.process.send_signal(signal.SIGTERM)
        assert_refused(queued.result(), 503, code="shutting_down")  # now, although the drain has a minute, or no end
        draining.process.process.send_signal(signal.SIGINT)
    for call in running:
        call.cut()
    assert_ended(draining.process)
    assert len(model.checkpoint.events("ran")) == slots  # joined: these ended, and then the pool
    assert "queued" not in model.runs()
    assert_destroyed_after_use(model)
