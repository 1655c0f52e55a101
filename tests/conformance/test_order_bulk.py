"""The cells `order.bulk_bulk` and `order.bulk_cancel`: bulk calls beside each other, and taken back."""

import asyncio

import pytest

from antiphon.admission.gate import Gate
from antiphon.admission.scheduler import PublicationError, Scheduler
from antiphon.runtime.parallel import ParallelServerState
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import Operation
from conformance_evidence import said, steps
from conformance_plugin import cell
from conformance_server import BULK_UNLOAD, UNLOAD_ALL, answer_of
from conformance_situations import occupy
from conformance_standing import comes_to, last_error, seen, seen_together, standing
from runtime_stage import Kind, Stage


@cell("order.bulk_bulk")
@pytest.mark.parametrize("selection", ["equal", "reversed"])
def test_order_bulk_bulk(server, slots, selection):
    a, b, slow, idle, other = (server.new_model() for _ in range(5))
    with a.checkpoint.held("run"), b.checkpoint.held("run"), slow.checkpoint.held("destroy"):
        older = [*occupy(a, 1), *occupy(b, 1)]
        first = server.bulk_unload(a, b, slow)
        a.wait_queue("bulk_unload")
        slow.checkpoint.wait_for("destroy")
        between = a.infer("between")
        a.wait_queue("bulk_unload", "infer")
        shared = [a, b] if selection == "equal" else [b, a]
        second = server.bulk_unload(*shared, idle)
        a.wait_queue("bulk_unload", "infer", "bulk_unload")
        assert seen_together(server, a, b) == [
            standing("ready", slots=slots, leases=["infer"], queue=["bulk_unload", "infer", "bulk_unload"]),
            standing("ready", slots=slots, leases=["infer"], queue=["bulk_unload", "bulk_unload"]),
        ]
        # The first call waits for a and b, and is in the middle of a teardown. None of that holds the second one up.
        comes_to(idle, standing("unloaded", slots=slots))
        assert seen(slow) == standing("unloading", slots=slots, leases=["bulk_unload"])
        assert answer_of(other.infer("passes by")).text == "passes by"
        b.checkpoint.release("run")
        comes_to(b, standing("unloaded", slots=slots))  # both calls are through with it
        assert not first.has_ended()
        assert not second.has_ended()
    for call in older:
        call.ok()
    assert first.ok() == {"unloaded": [a.id, b.id, slow.id], "not_found": []}
    assert answer_of(between).text == "between"
    assert second.ok() == {"unloaded": [*[it.id for it in shared], idle.id], "not_found": []}
    assert steps(a.checkpoint, "load", "closed") == ["load", "closed"] * 2
    assert steps(b.checkpoint, "load", "closed") == ["load", "closed"]
    unloaded = standing("unloaded", slots=slots)
    assert seen_together(server, a, b, slow, idle, other) == [*[unloaded] * 4, standing("ready", slots=slots)]


def open_bulk(server, *models):
    """Start a bulk unload on a connection of its own, which can be cut; without models it unloads all of them."""
    if not models:
        return server.client.open("POST", UNLOAD_ALL, json={})
    return server.client.open("POST", BULK_UNLOAD, json={"model_ids": [model.id for model in models]})


@cell("order.bulk_cancel")
@pytest.mark.parametrize("everything", [False, True], ids=["named", "all"])
def test_order_bulk_cancel(fresh_server, slots, everything):
    """The client leaves in mid-wait: barriers that wait are withdrawn at once, unloads that were granted finish."""
    server = fresh_server()
    idle, in_teardown, busy, also_busy = models = [server.new_model() for _ in range(4)]
    with busy.checkpoint.held("run"), also_busy.checkpoint.held("run"), in_teardown.checkpoint.held("destroy"):
        older = [*occupy(busy, slots), *occupy(also_busy, 1)]
        call = open_bulk(server, *([] if everything else models))
        comes_to(idle, standing("unloaded", slots=slots))
        in_teardown.checkpoint.wait_for("destroy")
        behind = []
        for model in (busy, also_busy):
            behind.append(model.infer("behind"))
            model.wait_queue("bulk_unload", "infer")

        call.cut(reset=True)

        # The older work still runs. The requests that came later have moved up, into spare slots where there are some.
        comes_to(busy, standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"]))
        if slots > 1:
            comes_to(also_busy, standing("ready", slots=slots, leases=["infer", "infer"]))
        else:
            comes_to(also_busy, standing("ready", slots=slots, leases=["infer"], queue=["infer"]))
        assert seen_together(server, idle, in_teardown) == [
            standing("unloaded", slots=slots),
            standing("unloading", slots=slots, leases=["bulk_unload"]),
        ]
    assert said(older) == [*[("v1", f"earlier {number}") for number in range(slots)], ("v1", "earlier 0")]
    assert said(behind) == [("v1", "behind")] * 2
    comes_to(in_teardown, standing("unloaded", slots=slots))
    assert seen_together(server, *models) == [
        standing("unloaded", slots=slots),  # what was complete is not undone
        standing("unloaded", slots=slots),
        standing("ready", slots=slots),
        standing("ready", slots=slots),
    ]
    assert steps(in_teardown.checkpoint)[-1] == "closed"
    assert [steps(it.checkpoint, "load", "destroy") for it in (busy, also_busy)] == [["load"]] * 2
    for model in models:
        assert model.unload().ok()["loaded"] is False  # a manager can have it to itself


@cell("order.bulk_cancel")
def test_order_bulk_cancel_frees_a_manager_behind_it(server, slots):
    """A manager behind a withdrawn barrier comes next; another bulk call's barriers stay in their places."""
    model, other = server.new_model(), server.new_model()
    replacement = model.replacement("v2")
    with model.checkpoint.held("run"), other.checkpoint.held("run"):
        older = [*occupy(model, 1), *occupy(other, 1)]
        first = open_bulk(server, model, other)
        model.wait_queue("bulk_unload")
        second = server.bulk_unload(other)
        other.wait_queue("bulk_unload", "bulk_unload")
        register = model.register(path=str(replacement.path))
        model.wait_queue("bulk_unload", "load")

        first.cut()

        comes_to(model, standing("ready", slots=slots, leases=["infer"], queue=["load"]))
        comes_to(other, standing("ready", slots=slots, leases=["infer"], queue=["bulk_unload"]))
    assert said(older) == [("v1", "earlier 0")] * 2
    assert register.ok() == {"id": model.id, "loaded": True}
    assert second.ok() == {"unloaded": [other.id], "not_found": []}
    assert seen_together(server, model, other) == [standing("ready", slots=slots), standing("unloaded", slots=slots)]
    assert steps(model.checkpoint, "load", "closed") == ["load", "closed"]  # torn down once, by the replacement
    assert said([model.infer("new")]) == [("v2", "new")]


@cell("order.bulk_cancel")
def test_order_bulk_cancel_by_a_failed_teardown(server, slots):
    """`exceeds`: it strands no other model of the call."""
    broken, idle, busy = (server.new_model() for _ in range(3))
    broken.checkpoint.fail("destroy")
    with busy.checkpoint.held("run"):
        (older,) = occupy(busy, 1)
        bulk = server.bulk_unload(broken, idle, busy)
        busy.wait_queue("bulk_unload")
    older.ok()
    assert bulk.ok()["unloaded"] == [broken.id, idle.id, busy.id]
    assert seen(broken) == standing("unloaded", slots=slots, last_error=last_error(broken))
    assert seen_together(server, idle, busy) == [standing("unloaded", slots=slots), standing("unloaded", slots=slots)]
    broken.checkpoint.unset("destroy.fail")
    for model in (broken, idle, busy):
        assert answer_of(model.infer("again")).text == "again"


class BrokenGate(Gate):
    """A gate that no bulk unload can enter."""

    def submit(self, operation, now, timeout_s):
        if operation is Operation.BULK_UNLOAD:
            raise InvariantError("this gate is broken")
        return super().submit(operation, now, timeout_s)


@cell("order.bulk_cancel", "unit")
def test_order_bulk_cancel_in_the_middle_of_publishing(slots):
    scheduler = Scheduler()
    idle, busy = Gate("idle", slots), Gate("busy", slots)
    for gate in (idle, busy, BrokenGate("broken", slots)):
        scheduler.add(gate)
    (running,) = busy.submit(Operation.INFER, 1.0, 0)[1]
    before = idle.snapshot(2.0), busy.snapshot(2.0)

    with pytest.raises(PublicationError):
        scheduler.publish(["idle", "busy", "broken"], Operation.BULK_UNLOAD, 2.0)

    assert (idle.snapshot(2.0), busy.snapshot(2.0)) == before  # one barrier was granted, the other waited
    busy.release(running.lease, 3.0)
    assert idle.is_idle
    assert busy.is_idle


@cell("order.bulk_cancel", "unit")
def test_order_bulk_cancel_in_the_middle_of_publishing_leaves_the_models_as_they_were(slots, tmp_path):
    """The same fault in a whole runtime: every model keeps its pool, its leases and its queue."""

    def make_gate(name, capacity):
        return BrokenGate(name, capacity) if name == "broken" else Gate(name, capacity)

    async def scenario():
        stage = Stage(tmp_path, Kind(ParallelServerState, slots), make_gate=make_gate)
        checkpoints = {name: stage.model(name) for name in ("idle", "busy", "broken")}
        await stage.bring(*checkpoints)
        with checkpoints["busy"].held("run"):
            running = stage.say("running", "busy")
            await checkpoints["busy"].await_for("run")
            before = stage.runtime.status()
            pools = [stage.pool(name) for name in checkpoints]

            with pytest.raises(PublicationError):
                await stage.runtime.unload_many(["idle", "busy", "broken"])

            assert stage.runtime.status() == before
            assert [stage.pool(name) for name in checkpoints] == pools
        assert (await running).endswith("|running")
        assert [len(it.events("destroy")) for it in checkpoints.values()] == [0, 0, 0]
        for name in ("idle", "busy"):
            assert (await stage.say("on", name)).endswith("|on")
        assert (await stage.runtime.unload_many(["idle", "busy"])).unloaded == ("idle", "busy")
        await stage.at_end()

    asyncio.run(scenario())
