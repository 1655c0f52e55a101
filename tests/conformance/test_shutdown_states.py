"""The cells `ops.*.shutdown` and `state.shutting_down`: a stop signal meets models in each state.

The drain has no deadline here (`drain_timeout_ms` 0), as in the contract. Each test names a mutant that it kills.
"""

import httpx
import pytest

from conformance_client import HANG_GUARD_S
from conformance_evidence import last, refusal, said
from conformance_plugin import cell
from conformance_situations import cold_model, fill, last_of_load, loading, occupied_cold, reconfiguring, unloading
from conformance_standing import comes_to, standing
from conformance_stopping import assert_destroyed_after_use
from listener_peers import port_of, stalled_body
from listener_stop import assert_ended, begin_stop, kept_alive, wait_disconnected
from refusals import assert_refused


@pytest.fixture
def draining(fresh_server):
    """A server whose drain has no deadline."""
    return fresh_server(drain_timeout_ms=0)


@cell("ops.unloaded.shutdown")
def test_ops_unloaded_shutdown(draining, slots):
    # Mutant: `serve` closes the runtime while a registration is under way.
    with occupied_cold(draining, slots) as (model, register):
        queued = model.infer("queued")
        comes_to(model, standing("loading", slots=slots, leases=["load"], queue=["infer"]))
        begin_stop(draining.process)
        replacement = model.checkpoints[1]
        assert replacement.events("loaded") == []
        assert model.checkpoint.events() == []
    assert refusal(register) == (400, None, "slots")
    assert said([queued]) == [("v1", "queued")]  # it was accepted, so it has the model loaded
    assert_ended(draining.process)
    assert [event.step for event in replacement.events()][-1] == "closed"
    assert len(model.checkpoint.events("load")) == 1
    assert_destroyed_after_use(model)


@cell("ops.unloaded.shutdown")
def test_ops_unloaded_shutdown_loads_nothing(draining, slots):
    # Mutant: `close` binds each model in order to free it.
    model, other = cold_model(draining), draining.new_model()
    with other.checkpoint.held("run"), kept_alive(draining.process.url) as line:
        running = other.infer("running")
        other.checkpoint.wait_for("run")
        begin_stop(draining.process)
        refused = line.post("/v1/tasks/run", json={"model": model.id, "request": {"text": "too late"}})
    assert_refused(refused, 503, code="shutting_down")
    assert said([running]) == [("v1", "running")]
    assert_ended(draining.process)
    assert model.checkpoint.events() == []


@cell("ops.loading.shutdown")
def test_ops_loading_shutdown(draining, slots):
    # Mutant: the stop withdraws what is queued, although the drain has no deadline.
    with loading(draining, slots, queued=1) as (model, calls, texts):
        begin_stop(draining.process)
    assert said(calls) == [("v1", text) for text in texts]
    assert_ended(draining.process)
    assert len(model.checkpoint.events("load")) == 1
    assert_destroyed_after_use(model)


@cell("ops.loading.shutdown")
def test_ops_loading_shutdown_when_all_who_waited_have_left(draining, slots):
    # Mutant: `close` joins the requests, and not the attempt to load.
    model, step = cold_model(draining), last_of_load(slots)
    with model.checkpoint.held(step):
        leaving = [model.open_infer(f"left {number}") for number in range(slots)]
        model.wait_listed(active_slots=slots)
        model.checkpoint.wait_for(step)
        for call in leaving:
            call.cut()
        begin_stop(draining.process)
    assert_ended(draining.process)
    assert model.runs() == []
    assert_destroyed_after_use(model)


@cell("ops.ready.shutdown")
def test_ops_ready_shutdown(draining, slots):
    # Mutants: the listener's end cancels the tasks of its requests; the runtime is closed before the listener's end.
    model, other = draining.new_model(), draining.new_model()
    other.checkpoint.hold("stream")
    with model.checkpoint.held("run"), stalled_body(draining.process.url, model.id) as peer:
        calls, texts = fill(model, slots, queued=1)
        model.checkpoint.wait_for("run", slots)
        stream = other.open_stream("streamed")
        assert next(stream.events())["type"] == "task.delta"
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"]))
        comes_to(other, standing("ready", slots=slots, leases=["infer"]))

        begin_stop(draining.process)

        wait_disconnected(draining.process, port_of(peer))  # I/O first: all that runs is still held
        other.checkpoint.release("stream")
        assert list(stream.events())[-1]["type"] == "task.done"
        assert other.checkpoint.events("destroy") == []
        assert model.checkpoint.events("ran") == []
    assert said(calls) == [("v1", text) for text in texts]
    stream.cut()
    assert_ended(draining.process)
    assert_destroyed_after_use(model, other)


@cell("ops.reconfiguring.shutdown")
def test_ops_reconfiguring_shutdown(draining, slots):
    # Mutant: `replace` asks whether the runtime is closing before it publishes.
    with reconfiguring(draining, slots) as (model, replacement, register):
        queued = model.infer("behind")
        comes_to(model, standing("reconfiguring", slots=slots, leases=["load"], queue=["infer"]))
        begin_stop(draining.process)
    assert register.ok()["loaded"] is True
    assert said([queued]) == [("v2", "behind")]
    assert_ended(draining.process)
    assert last(model.checkpoint, "closed") < last(replacement, last_of_load(slots))
    assert_destroyed_after_use(model)


@cell("ops.reconfiguring.shutdown")
def test_ops_reconfiguring_shutdown_beside_the_working_pool(draining, slots):
    # Mutant: a stop refuses the swap for which the second pool was built.
    model = draining.new_model()
    replacement = model.replacement("v2")
    with replacement.held(last_of_load(slots)):
        register = model.register(path=str(replacement.path), strategy="side_by_side")
        replacement.wait_for(last_of_load(slots))
        comes_to(model, standing("ready", slots=slots))
        begin_stop(draining.process)
        assert model.checkpoint.events("destroy") == []
    assert register.ok()["loaded"] is True
    assert_ended(draining.process)
    assert last(replacement, last_of_load(slots)) < last(model.checkpoint, "destroy")
    assert_destroyed_after_use(model)


@cell("ops.reconfiguring.shutdown")
def test_ops_reconfiguring_shutdown_has_a_deadline(fresh_server, slots, isolation):
    # Mutants: `drain_timeout_ms` is taken for 0; a caller waits for its load also after the deadline.
    server = fresh_server(drain_timeout_ms=100)
    with reconfiguring(server, slots) as (model, _, register):
        queued = model.infer("behind")
        comes_to(model, standing("reconfiguring", slots=slots, leases=["load"], queue=["infer"]))
        begin_stop(server.process)
        assert_refused(queued.result(), 503, code="shutting_down")
        assert register.settle(HANG_GUARD_S)  # its caller waits no longer, although the load is still held
        if isolation == "process":
            assert_ended(server.process)  # a worker can be killed, a thread has to be joined
    with pytest.raises(httpx.RemoteProtocolError):
        register.result()
    assert_ended(server.process)
    assert "behind" not in model.runs()


@cell("ops.unloading.shutdown")
def test_ops_unloading_shutdown(draining, slots):
    # Mutant: `close` asks a host to destroy its weights a second time.
    with unloading(draining, slots) as (model, unload):
        begin_stop(draining.process)
        assert draining.alive
        assert len(model.checkpoint.events("destroy")) == 1
        assert model.checkpoint.events("closed") == []
    assert unload.ok()["loaded"] is False
    assert_ended(draining.process)
    assert len(model.checkpoint.events("load")) == 1
    assert_destroyed_after_use(model)


@cell("state.shutting_down")
def test_state_shutting_down(draining, slots):
    # Mutant: `/v1/status` shows a state of its own while the server drains.
    model = draining.new_model()
    with (
        model.checkpoint.held("run"),
        kept_alive(draining.process.url) as line,
        kept_alive(draining.process.url) as two,
        stalled_body(draining.process.url, model.id) as peer,
    ):
        calls, texts = fill(model, slots, queued=1)
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"]))
        begin_stop(draining.process)  # no new connections
        wait_disconnected(draining.process, port_of(peer))
        assert_refused(line.get("/health"), 503, code="shutting_down")
        assert_refused(two.get("/v1/status"), 503, code="shutting_down")
        assert model.checkpoint.events("destroy") == []
    assert said(calls) == [("v1", text) for text in texts]
    assert_ended(draining.process)
    assert_destroyed_after_use(model)


@cell("state.shutting_down")
def test_state_shutting_down_has_a_deadline(fresh_server, slots):
    # Mutant: `drain_timeout_ms` is taken for 0.
    server = fresh_server(drain_timeout_ms=100)
    model = server.new_model()
    model.checkpoint.set("run.cancellable")
    with model.checkpoint.held("run"):
        running = [model.open_infer(f"running {number}") for number in range(slots)]
        model.checkpoint.wait_for("run", slots)
        queued = model.infer("queued")
        model.wait_queue("infer")
        begin_stop(server.process)
        assert_refused(queued.result(), 503, code="shutting_down")
        assert_ended(server.process)
    for call in running:
        call.cut()
    assert len(model.checkpoint.events("ran")) == slots
    assert "queued" not in model.runs()
    assert_destroyed_after_use(model)
