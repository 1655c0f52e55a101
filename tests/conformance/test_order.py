"""The cells `order.*`: two arrivals on one model or on two, in either order."""

import itertools

import pytest

from antiphon.admission.gate import Gate
from antiphon.admission.scheduler import PublicationError, Scheduler
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import Operation
from conformance_plugin import cell
from conformance_server import BULK_UNLOAD, answer_of
from conformance_standing import expected, occupy, standing, standings, steps, wait_standing

QUEUED_AS = {"register": "load", "reconfigure": "load", "unload": "unload", "bulk": "bulk_unload"}
"""The kinds of managers, and what the queue calls them."""

LOADERS = {"register", "reconfigure"}


def error_of(answer):
    return answer.json()["error"]


def manage(server, model, kind, replacement):
    """Start a manager; `register` says again what is registered, `reconfigure` takes the replacement."""
    match kind:
        case "register":
            return model.register()
        case "reconfigure":
            return model.register(path=str(replacement.path))
        case "unload":
            return model.unload()
        case _:
            return server.bulk_unload(model)


@cell("order.request_request")
def test_order_request_request(server, slots):
    model = server.new_model(loaded=False)
    with model.checkpoint.held("load"), model.checkpoint.held("run"):
        admitted = []
        for number in range(slots):
            admitted.append(model.infer(f"admitted {number}"))
            model.wait_listed(active_slots=number + 1)
        queued = []
        for number in range(3):
            queued.append(model.infer(f"queued {number}"))
            model.wait_queue(*["infer"] * (number + 1))
        assert standing(model) == expected(model, slots, "loading", leases=slots, queue=["infer"] * 3)
        for number in range(slots):  # one slot serves those who wait, one after the other
            model.checkpoint.hold("run", f"admitted {number}")
        model.checkpoint.release("load")
        model.checkpoint.wait_for("run", slots)
        assert standing(model) == expected(model, slots, leases=slots, queue=["infer"] * 3)
        model.checkpoint.release("run")
        model.checkpoint.release("run", "admitted 0")
        for call in queued:
            call.ok()
    model.unhold()
    sessions = [answer_of(call).session for call in admitted]
    assert len(set(sessions)) == slots
    assert model.runs()[slots:] == ["queued 0", "queued 1", "queued 2"]
    assert {answer_of(call).session for call in queued} == {sessions[0]}
    assert len(steps(model, "load")) == 2  # registered once, and one initialisation for them all
    assert standing(model) == expected(model, slots)


@cell("order.request_manager")
@pytest.mark.parametrize("kind", QUEUED_AS)
def test_order_request_manager(server, slots, kind):
    model = server.new_model()
    replacement = model.replacement("v2")
    with model.checkpoint.held("run"):
        older = occupy(model, slots)
        older.append(model.infer("older and queued"))
        model.wait_queue("infer")
        manager = manage(server, model, kind, replacement)
        model.wait_queue("infer", QUEUED_AS[kind])
        later = model.infer("later")
        model.wait_queue("infer", QUEUED_AS[kind], "infer")
        assert standing(model) == expected(model, slots, leases=slots, queue=["infer", QUEUED_AS[kind], "infer"])
    assert [answer_of(call).revision for call in older] == ["v1"] * (slots + 1)
    manager.ok()
    answer = answer_of(later)
    assert (answer.revision, answer.text) == ("v2" if kind == "reconfigure" else "v1", "later")
    assert model.runs()[slots:] == ["older and queued", "later"]
    if kind != "register":
        ran = [it.t for it in model.checkpoint.events("ran") if it.request != "later"]
        assert max(ran) < model.checkpoint.events("destroy")[0].t
    assert standing(model) == expected(model, slots)


@cell("order.request_manager")
@pytest.mark.parametrize("kind", ["stream", "batch"])
def test_order_request_manager_behind_a_deferred_response(server, slots, kind):
    model = server.new_model()
    step, text = ("stream", "older") if kind == "stream" else ("run", "second")
    with model.checkpoint.held(step, text):
        older = model.open_stream("older") if kind == "stream" else model.open_batch("older", "second")
        model.checkpoint.wait_for(step, text=text)
        manager = model.unload()
        model.wait_queue("unload")
        later = model.infer("later")
        model.wait_queue("unload", "infer")  # although, with several, there are spare slots
        assert standing(model) == expected(model, slots, leases=1, queue=["unload", "infer"])
    assert list(older.events())[-1]["type"] == ("task.done" if kind == "stream" else "task.batch.done")
    assert manager.ok()["loaded"] is False
    assert answer_of(later).text == "later"
    order = [it for it in steps(model, "ran", "closed", "run") if it[1] in {"later", text, None}]
    assert order == [("run", text), ("ran", text), ("closed", None), ("run", "later"), ("ran", "later")]
    assert standing(model) == expected(model, slots)


@cell("order.manager_request")
def test_order_manager_request(server, slots):
    model = server.new_model()
    replacement = model.replacement("v2")
    with replacement.held("load"):
        manager = model.register(path=str(replacement.path))
        replacement.wait_for("load")
        calls = []
        for number in range(slots):
            calls.append(model.infer(f"behind {number}"))
            model.wait_queue(*["infer"] * (number + 1))
        seen = standing(model)
        published = slots > 1  # several slots are tried beside the old pool first
        assert seen == expected(
            model, slots, "reconfiguring", leases="load", queue=["infer"] * slots, published=published
        )
        refused = model.infer("impatient", busy_timeout_ms=1).result()
        assert (refused.status_code, error_of(refused)["code"]) == (503, "server_busy")
        assert standing(model) == seen  # it held no lease, and has left the queue
    assert manager.ok()["loaded"] is True
    assert [answer_of(call).revision for call in calls] == ["v2"] * slots
    assert "impatient" not in model.runs()
    assert standing(model) == expected(model, slots)


@cell("order.manager_request")
def test_order_manager_request_whose_wait_ends_first(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        older = occupy(model, 1)
        manager = model.unload()
        model.wait_queue("unload")
        bounded = model.infer("bounded", busy_timeout_ms=2000)
        model.wait_queue("unload", "infer")
        assert (bounded.result().status_code, error_of(bounded.result())["code"]) == (503, "server_busy")
        assert standing(model) == expected(model, slots, leases=1, queue=["unload"])
    assert manager.ok()["loaded"] is False
    for call in older:
        call.ok()
    assert "bounded" not in model.runs()
    assert standing(model) == expected(model, slots, "unloaded")


@cell("order.manager_manager")
@pytest.mark.parametrize("kinds", list(itertools.product(QUEUED_AS, repeat=2)), ids="-".join)
def test_order_manager_manager(server, slots, kinds):
    model = server.new_model()
    replacement = model.replacement("v2")
    with model.checkpoint.held("run"):
        (older,) = occupy(model, 1)
        calls = []
        for number, kind in enumerate(kinds, start=1):
            calls.append(manage(server, model, kind, replacement))
            model.wait_queue(*[QUEUED_AS[it] for it in kinds[:number]])
        queue = [QUEUED_AS[kind] for kind in kinds]
        assert standing(model) == expected(model, slots, leases=1, queue=queue)
    older.ok()
    answers = [call.ok() for call in calls]

    ends_loaded = [kind in LOADERS for kind in kinds]
    for kind, answer, is_loaded in zip(kinds, answers, ends_loaded, strict=True):
        told = {"unloaded": [model.id], "not_found": []} if kind == "bulk" else {"id": model.id, "loaded": is_loaded}
        assert answer == told
    assert standing(model) == expected(model, slots, "ready" if ends_loaded[-1] else "unloaded")
    revision = next((("v1", "v2")[kind == "reconfigure"] for kind in kinds[::-1] if kind in LOADERS), "v1")
    assert answer_of(model.infer("now")).revision == revision
    for checkpoint in model.checkpoints:  # each alone: no load before the last teardown was over
        assert_no_two_pools(checkpoint)


def assert_no_two_pools(checkpoint):
    alive = 0
    for event in checkpoint.events():
        alive += {"load": 1, "closed": -1}.get(event.step, 0)
        assert alive in (0, 1)


@cell("order.different_models")
@pytest.mark.parametrize("wait", ["load", "run", "queue", "destroy", "reconfigure"])
def test_order_different_models(server, slots, wait):
    a, b = server.new_model(loaded=wait != "load"), server.new_model()
    held = "load" if wait == "reconfigure" else "run" if wait == "queue" else wait
    replacement = a.replacement("v2")
    (replacement if wait == "reconfigure" else a.checkpoint).hold(held)
    match wait:
        case "load" | "run":
            calls = [a.infer("waits")]
        case "queue":
            calls = [*occupy(a, slots), a.unload()]
            a.wait_queue("unload")
        case "destroy":
            calls = [a.unload()]
        case _:
            calls = [a.register(path=str(replacement.path))]
    waiting = replacement if wait == "reconfigure" else a.checkpoint
    waiting.wait_for(held, len(steps(a, held)) if wait == "queue" else 1 + (wait == "load"))
    before = standing(a)

    assert answer_of(b.infer("warm")).text == "warm"
    assert list(b.open_stream("streamed").events())[-1]["type"] == "task.done"
    assert b.listed()["loaded"] is True
    b.register(slots=1).ok()
    assert b.unload().ok()["loaded"] is False
    assert answer_of(b.infer("cold")).text == "cold"
    assert server.bulk_unload(b).ok()["unloaded"] == [b.id]

    assert standing(a) == before  # in all that time
    assert not any(call.has_ended() for call in calls)
    a.unhold()
    for call in calls:
        call.ok()
    assert standing(a)["leases"] == []


@cell("order.different_models")
def test_order_different_models_in_the_other_order(server, slots):
    a, b = server.new_model(loaded=False), server.new_model()
    with b.checkpoint.held("run"), a.checkpoint.held("load"):
        warm = occupy(b, slots)  # first the warm work, then the other model's wait
        cold = a.infer("cold")
        a.checkpoint.wait_for("load", 2)
        b.checkpoint.release("run")
        assert [answer_of(call).text for call in warm] == [f"earlier {number}" for number in range(slots)]
        assert standings(server, a, b) == [expected(a, slots, "loading", leases=1), expected(b, slots)]
    cold.ok()
    assert standings(server, a, b) == [expected(a, slots), expected(b, slots)]


@cell("order.different_models")
def test_order_different_models_when_cold_loads_take_turns(fresh_server, slots):
    """A guarded load waits for another; warm work does not."""
    server = fresh_server(models={name: {"slots": slots} for name in "abw"}, min_free_memory_mb=1)
    a, b, warm = (server.configured_model(name) for name in "abw")
    warm.infer("once").ok()
    with a.checkpoint.held("load"):
        calls = [a.infer("first")]
        a.checkpoint.wait_for("load")
        calls.append(b.infer("second"))
        b.wait_state("loading")
        assert answer_of(warm.infer("warm")).text == "warm"
        assert b.checkpoint.events() == []
        assert standings(server, a, b, warm) == [
            expected(a, slots, "loading", leases=1),
            expected(b, slots, "loading", leases=1),
            expected(warm, slots),
        ]
    for call in calls:
        call.ok()


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
        assert standings(server, a, b) == [
            expected(a, slots, leases=1, queue=["bulk_unload", "infer", "bulk_unload"]),
            expected(b, slots, leases=1, queue=["bulk_unload", "bulk_unload"]),
        ]
        assert answer_of(other.infer("passes by")).text == "passes by"
        b.checkpoint.release("run")
        wait_standing(b, expected(b, slots, "unloaded"))  # both calls are through with it
        assert not first.has_ended()
        assert not second.has_ended()
    for call in older:
        call.ok()
    assert first.ok() == {"unloaded": [a.id, b.id], "not_found": []}
    assert answer_of(between).text == "between"
    assert second.ok() == {"unloaded": [a.id, b.id] if selection == "equal" else [b.id, a.id], "not_found": []}
    assert [step for step, _ in steps(a, "load", "closed")] == ["load", "closed"] * 2
    assert standings(server, a, b, other) == [
        expected(a, slots, "unloaded"),
        expected(b, slots, "unloaded"),
        expected(other, slots),
    ]


@cell("order.bulk_single")
@pytest.mark.parametrize("kind", ["infer", "reconfigure", "unload"])
@pytest.mark.parametrize("bulk_first", [True, False], ids=["bulk first", "single first"])
def test_order_bulk_single(server, slots, kind, bulk_first):
    model = server.new_model()
    replacement = model.replacement("v2")
    starts = {
        "bulk_unload": lambda: server.bulk_unload(model),
        QUEUED_AS.get(kind, kind): lambda: (
            model.infer("single") if kind == "infer" else manage(server, model, kind, replacement)
        ),
    }
    order = list(starts) if bulk_first else list(starts)[::-1]
    with model.checkpoint.held("run"):
        older = occupy(model, slots)
        calls = {}
        for number, operation in enumerate(order, start=1):
            calls[operation] = starts[operation]()
            model.wait_queue(*order[:number])
        assert standing(model) == expected(model, slots, leases=slots, queue=order)
    for call in (*older, *calls.values()):
        call.ok()
    ends_unloaded = not bulk_first or kind == "unload"
    assert standing(model) == expected(model, slots, "unloaded" if ends_unloaded else "ready")
    if kind == "infer":
        found = [step for step, _ in steps(model, "closed", "run")][slots:]
        assert found == (["closed", "run"] if bulk_first else ["run", "closed"])
    if kind == "reconfigure":
        assert replacement.events("load")
        assert len(replacement.events("closed")) == (0 if bulk_first else 1)


@cell("order.bulk_single")
def test_order_bulk_single_registered_after_the_snapshot(fresh_server, slots):
    server = fresh_server(models={"old": {"slots": slots}})
    old = server.configured_model("old")
    with old.checkpoint.held("run"):
        (older,) = occupy(old, 1)
        bulk = server.unload_all()
        old.wait_queue("bulk_unload")
        new = server.new_model()
        assert standing(new) == expected(new, slots)  # there is no barrier on it
    older.ok()
    assert bulk.ok() == {"unloaded": ["old"], "not_found": []}
    assert standings(server, old, new) == [expected(old, slots, "unloaded"), expected(new, slots)]


@cell("order.bulk_cancel")
def test_order_bulk_cancel(server, slots):
    """The client leaves: what is queued goes on, and nobody is left owning a model."""
    idle, busy, also_busy = (server.new_model() for _ in range(3))
    with busy.checkpoint.held("run"), also_busy.checkpoint.held("run"):
        older = [*occupy(busy, 1), *occupy(also_busy, 1)]
        call = server.client.open("POST", BULK_UNLOAD, json={"model_ids": [idle.id, busy.id, also_busy.id]})
        wait_standing(idle, expected(idle, slots, "unloaded"))
        behind = busy.infer("behind")
        busy.wait_queue("bulk_unload", "infer")
        call.cut(reset=True)
    for request in (*older, behind):
        request.ok()
    wait_standing(idle, expected(idle, slots, "unloaded"))  # what was complete is not undone
    wait_standing(also_busy, expected(also_busy, slots, "unloaded"))
    wait_standing(busy, expected(busy, slots))
    assert [step for step, _ in steps(busy, "closed", "run")] == ["run", "closed", "run"]
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
    left = standing(broken)
    assert left == expected(broken, slots, "unloaded", last_error=left["last_error"])
    assert left["last_error"]
    assert standings(server, idle, busy) == [expected(idle, slots, "unloaded"), expected(busy, slots, "unloaded")]
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
