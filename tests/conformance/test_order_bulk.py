"""The cells `order.bulk_bulk` and `order.bulk_cancel`: bulk calls beside each other, and taken back."""

import pytest

from antiphon.admission.gate import Gate
from antiphon.admission.scheduler import PublicationError, Scheduler
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import Operation
from conformance_evidence import steps
from conformance_plugin import cell
from conformance_server import BULK_UNLOAD, answer_of
from conformance_situations import occupy
from conformance_standing import comes_to, last_error, seen, seen_together, standing


@cell("order.bulk_bulk")
@pytest.mark.parametrize("selection", ["equal", "reversed"])
def test_order_bulk_bulk(server, slots, selection):
    a, b, other = (server.new_model() for _ in range(3))
    with a.checkpoint.held("run"), b.checkpoint.held("run"):
        older = [*occupy(a, 1), *occupy(b, 1)]
        first = server.bulk_unload(a, b)
        a.wait_queue("bulk_unload")
        between = a.infer("between")
        a.wait_queue("bulk_unload", "infer")
        second = server.bulk_unload(a, b) if selection == "equal" else server.bulk_unload(b, a)
        a.wait_queue("bulk_unload", "infer", "bulk_unload")
        assert seen_together(server, a, b) == [
            standing("ready", slots=slots, leases=["infer"], queue=["bulk_unload", "infer", "bulk_unload"]),
            standing("ready", slots=slots, leases=["infer"], queue=["bulk_unload", "bulk_unload"]),
        ]
        assert answer_of(other.infer("passes by")).text == "passes by"
        b.checkpoint.release("run")
        comes_to(b, standing("unloaded", slots=slots))  # both calls are through with it
        assert not first.has_ended()
        assert not second.has_ended()
    for call in older:
        call.ok()
    assert first.ok() == {"unloaded": [a.id, b.id], "not_found": []}
    assert answer_of(between).text == "between"
    assert second.ok() == {"unloaded": [a.id, b.id] if selection == "equal" else [b.id, a.id], "not_found": []}
    assert steps(a.checkpoint, "load", "closed") == ["load", "closed"] * 2
    assert seen_together(server, a, b, other) == [
        standing("unloaded", slots=slots),
        standing("unloaded", slots=slots),
        standing("ready", slots=slots),
    ]


@cell("order.bulk_cancel")
def test_order_bulk_cancel(server, slots):
    """The client leaves: what is queued goes on, and nobody is left owning a model."""
    idle, busy, also_busy = (server.new_model() for _ in range(3))
    with busy.checkpoint.held("run"), also_busy.checkpoint.held("run"):
        older = [*occupy(busy, 1), *occupy(also_busy, 1)]
        call = server.client.open("POST", BULK_UNLOAD, json={"model_ids": [idle.id, busy.id, also_busy.id]})
        comes_to(idle, standing("unloaded", slots=slots))
        behind = busy.infer("behind")
        busy.wait_queue("bulk_unload", "infer")
        call.cut(reset=True)
    for request in (*older, behind):
        request.ok()
    comes_to(idle, standing("unloaded", slots=slots))  # what was complete is not undone
    comes_to(also_busy, standing("unloaded", slots=slots))
    comes_to(busy, standing("ready", slots=slots))
    assert steps(busy.checkpoint, "closed", "run") == ["run", "closed", "run"]
    for model in (idle, busy, also_busy):
        assert model.unload().ok()["loaded"] is False  # it can be had alone


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
    """A gate that no claim can enter."""

    def submit(self, operation, now, timeout_s):
        raise InvariantError("this gate is broken")


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
