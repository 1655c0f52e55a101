"""The cells `rule.*` about leases: who has one, and how it ends."""

import json

import pytest

from conformance_evidence import error_of, refusal
from conformance_plugin import cell
from conformance_server import TASK_RUN, answer_of
from conformance_situations import occupy
from conformance_standing import CAPACITY, comes_to, seen, seen_together, standing


@cell("rule.fifo_at_entry")
def test_rule_fifo_at_entry(server, slots):
    model = server.new_model()
    texts = [f"earlier {number}" for number in range(slots)]
    for text in texts:
        model.checkpoint.hold("run", text)
    earlier = occupy(model, slots)
    body = json.dumps({"model": model.id, "request": {"text": "sent first"}}).encode()
    head = f"POST {TASK_RUN} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    with server.client.connect() as socket:
        socket.sendall(head.encode() + body[:-1])
        entered_first = model.infer("entered first")
        model.wait_queue("infer")
        socket.sendall(body[-1:])
        model.wait_queue("infer", "infer")
        model.checkpoint.release("run", texts[0])  # one slot serves both, one after the other
        assert answer_of(entered_first).text == "entered first"
        assert socket.recv(64).startswith(b"HTTP/1.1 200")
    for text in texts[1:]:
        model.checkpoint.release("run", text)
    for call in earlier:
        call.ok()
    assert model.runs()[slots:] == ["entered first", "sent first"]
    assert seen(model) == standing("ready", slots=slots)


@cell("rule.lease_release")
@pytest.mark.parametrize("step", ["none", "prepare", "run", "stream", "batch", "reset", "input"])
def test_rule_lease_release(server, slots, step):
    model = server.new_model()
    checkpoint = model.checkpoint
    match step:
        case "none":
            assert answer_of(model.infer("well")).text == "well"
        case "prepare" | "run":
            checkpoint.fail(step)
            assert refusal(model.infer("badly")) == (500, "engine_error", None)
            checkpoint.unset(f"{step}.fail")
        case "stream":
            checkpoint.fail("stream")
            assert [it["type"] for it in model.open_stream("badly").events()][-1] == "error"
            checkpoint.unset("stream.fail")
        case "batch":
            checkpoint.set("run.fail.second", "RuntimeError")
            events = list(model.open_batch("first", "second").events())
            assert [it["type"] for it in events] == ["task.batch.result", "error"]
        case "reset":
            checkpoint.fail("reset")
            list(model.open_stream("well").events())
            checkpoint.unset("reset.fail")
        case _:
            assert refusal(model.infer("")) == (400, None, "request.text")
    comes_to(model, standing("ready", slots=slots))

    with checkpoint.held("run"):  # every slot can be leased again
        again = occupy(model, slots, "again")
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots)
    assert {answer_of(call).text for call in again} == {f"again {number}" for number in range(slots)}
    assert model.unload().ok()["loaded"] is False  # and the whole model


@cell("rule.lease_release")
@pytest.mark.parametrize("fault", ["none", "refused", "load.fail", "session.null", "destroy.fail"])
def test_rule_lease_release_of_a_manager(server, slots, fault):
    model = server.new_model()
    replacement = model.replacement("v2")
    match fault:
        case "none":
            model.register(path=str(replacement.path)).ok()
        case "refused":
            assert refusal(model.register(slots=CAPACITY + 1)) == (400, None, "slots")
        case "destroy.fail":
            model.checkpoint.set(fault)
            model.unload().ok()
        case _:
            replacement.set(fault)
            assert refusal(model.register(path=str(replacement.path))) == (500, "load_failed", None)
            replacement.unset(fault)
    state = {"none": "ready", "refused": "ready", "destroy.fail": "unloaded"}.get(fault)
    if state is None:  # several slots are tried before the commit, and leave the old pool; one is not
        state = "ready" if slots > 1 else "unloaded"
    assert seen(model) == standing(state, slots=slots, last_error=model.status()["last_error"])
    if fault == "destroy.fail":
        model.checkpoint.unset(fault)
    assert answer_of(model.infer("on")).text == "on"
    assert model.unload().ok()["loaded"] is False
    assert seen(model) == standing("unloaded", slots=slots, last_error=model.status()["last_error"])


@cell("rule.bulk_two_phase")
def test_rule_bulk_two_phase(server, slots):
    busy, also_busy, idle, unnamed = (server.new_model() for _ in range(4))
    with busy.checkpoint.held("run"), also_busy.checkpoint.held("run"):
        earlier = [*occupy(busy, 1), *occupy(also_busy, 1)]
        bulk = server.bulk_unload(busy, idle, also_busy)
        comes_to(idle, standing("unloaded", slots=slots))  # before the call waits for anyone
        assert seen_together(server, busy, also_busy, idle, unnamed) == [
            standing("ready", slots=slots, leases=["infer"], queue=["bulk_unload"]),
            standing("ready", slots=slots, leases=["infer"], queue=["bulk_unload"]),  # all were published
            standing("unloaded", slots=slots),
            standing("ready", slots=slots),
        ]
        # Nothing shared is held meanwhile: registration, another bulk call and the model that was freed go on.
        assert server.new_model().listed()["loaded"] is True
        assert server.bulk_unload(unnamed, idle).ok() == {"unloaded": [unnamed.id, idle.id], "not_found": []}
        assert answer_of(idle.infer("again")).text == "again"
        assert not bulk.has_ended()
        also_busy.checkpoint.release("run")  # each follows as soon as its own barrier is granted
        comes_to(also_busy, standing("unloaded", slots=slots))
        assert seen(busy) == standing("ready", slots=slots, leases=["infer"], queue=["bulk_unload"])
    assert bulk.ok() == {"unloaded": [busy.id, idle.id, also_busy.id], "not_found": []}
    for call in earlier:
        call.ok()
    assert seen_together(server, busy, also_busy, idle) == [
        standing("unloaded", slots=slots),
        standing("unloaded", slots=slots),
        standing("ready", slots=slots),  # what came after the barrier stays
    ]


@cell("rule.bulk_two_phase")
def test_rule_bulk_two_phase_takes_a_snapshot(fresh_server, slots):
    """All models that are registered when the call comes, and none that comes later."""
    server = fresh_server(models={name: {"slots": slots} for name in ("busy", "cold")})
    busy, cold = server.configured_model("busy"), server.configured_model("cold")
    with busy.checkpoint.held("run"):
        (earlier,) = occupy(busy, 1)
        bulk = server.unload_all()
        busy.wait_queue("bulk_unload")
        later = server.new_model()
        assert seen_together(server, busy, cold, later) == [
            standing("ready", slots=slots, leases=["infer"], queue=["bulk_unload"]),
            standing("unloaded", slots=slots),
            standing("ready", slots=slots),
        ]
        assert answer_of(later.infer("later")).text == "later"
    assert answer_of(earlier).text == "earlier 0"
    assert bulk.ok() == {"unloaded": ["busy", "cold"], "not_found": []}
    assert seen_together(server, busy, cold, later) == [
        standing("unloaded", slots=slots),
        standing("unloaded", slots=slots),
        standing("ready", slots=slots),
    ]


@cell("rule.retire_try_acquire")
def test_rule_retire_try_acquire(fresh_server, slots):
    server = fresh_server("residency_limit_1", models={"a": {"slots": slots}, "b": {"slots": slots}})
    a, b = server.configured_model("a"), server.configured_model("b")
    with a.checkpoint.held("run"):
        (running,) = occupy(a, 1)
        refused = b.infer("no room").result()
        assert (refused.status_code, error_of(refused)["code"]) == (503, "server_busy")
        assert seen(a) == standing("ready", slots=slots, leases=["infer"])  # nobody queued for it
    running.ok()
    assert seen(b)["leases"] == []

    assert answer_of(b.infer("room")).text == "room"

    comes_to(a, standing("unloaded", slots=slots))
    assert seen(b) == standing("ready", slots=slots)


@cell("rule.retire_try_acquire")
def test_rule_retire_try_acquire_when_idle_for_long(fresh_server, slots):
    models = {name: {"slots": slots} for name in ("busy", "idle")}
    server = fresh_server("idle_unload", models=models)
    busy, idle = server.configured_model("busy"), server.configured_model("idle")
    with busy.checkpoint.held("run"):
        (running,) = occupy(busy, 1)
        idle.infer("once").ok()
        idle.checkpoint.wait_for("closed")  # its time came, and the other one's too if it had been idle
        assert seen(busy) == standing("ready", slots=slots, leases=["infer"])
    running.ok()
    busy.checkpoint.wait_for("closed")  # counted from the end of its lease
    comes_to(busy, standing("unloaded", slots=slots))
