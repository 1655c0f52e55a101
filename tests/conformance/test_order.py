"""The cells `order.*`: two arrivals on one model or on two, in either order."""

import itertools

import pytest

from conformance_binding import ASKED, KINDS, ask, assert_bound, rebindable
from conformance_evidence import error_of, said, steps, wait_that_ends
from conformance_plugin import cell
from conformance_server import answer_of, most_of_the_memory
from conformance_situations import cold_model, occupy
from conformance_standing import CAPACITY, comes_to, seen, seen_together, standing

QUEUED_AS = {"register": "load", "reconfigure": "load", "unload": "unload", "bulk": "bulk_unload"}
"""The kinds of managers, and what the queue calls them."""

LOADERS = {"register", "reconfigure"}


def answer_to(kind, model):
    """What a manager of this kind is answered when it is through."""
    if kind == "bulk":
        return {"unloaded": [model.id], "not_found": []}
    return {"id": model.id, "loaded": kind in LOADERS}


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
        assert seen(model) == standing("loading", slots=slots, leases=["infer"] * slots, queue=["infer"] * 3)
        for number in range(slots):  # one slot serves those who wait, one after the other
            model.checkpoint.hold("run", f"admitted {number}")
        model.checkpoint.release("load")
        model.checkpoint.wait_for("run", slots)
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"] * 3)
        model.checkpoint.release("run")
        model.checkpoint.release("run", "admitted 0")
        for call in queued:
            call.ok()
    model.unhold()
    sessions = [answer_of(call).session for call in admitted]
    assert len(set(sessions)) == slots
    assert model.runs()[slots:] == ["queued 0", "queued 1", "queued 2"]
    assert {answer_of(call).session for call in queued} == {sessions[0]}
    assert len(steps(model.checkpoint, "load")) == 2  # registered once, and one initialisation for them all
    assert seen(model) == standing("ready", slots=slots)


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
        assert seen(model) == standing(
            "ready", slots=slots, leases=["infer"] * slots, queue=["infer", QUEUED_AS[kind], "infer"]
        )
    assert said(older) == [*[("v1", f"earlier {number}") for number in range(slots)], ("v1", "older and queued")]
    assert manager.ok().items() >= answer_to(kind, model).items()
    answer = answer_of(later)
    assert (answer.revision, answer.text) == ("v2" if kind == "reconfigure" else "v1", "later")
    assert model.runs()[slots:] == ["older and queued", "later"]
    if kind != "register":
        ran = [it.t for it in model.checkpoint.events("ran") if it.request != "later"]
        assert max(ran) < model.checkpoint.events("destroy")[0].t
    assert seen(model) == standing("ready", slots=slots)


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
        assert seen(model) == standing("ready", slots=slots, leases=["infer"], queue=["unload", "infer"])
    assert list(older.events())[-1]["type"] == ("task.done" if kind == "stream" else "task.batch.done")
    assert manager.ok()["loaded"] is False
    assert answer_of(later).text == "later"
    events = [(it.step, it.request) for it in model.checkpoint.events() if it.step in {"run", "ran", "closed"}]
    order = [(step, of) for step, of in events if of in {"later", text, None}]
    assert order == [("run", text), ("ran", text), ("closed", None), ("run", "later"), ("ran", "later")]
    assert seen(model) == standing("ready", slots=slots)


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
        capacity = CAPACITY if slots > 1 else None  # several slots are tried beside the old pool first
        waiting = standing("reconfiguring", slots=slots, leases=["load"], queue=["infer"] * slots, capacity=capacity)
        assert seen(model) == waiting
        refused = model.infer("impatient", busy_timeout_ms=1).result()
        assert (refused.status_code, error_of(refused)["code"]) == (503, "server_busy")
        assert seen(model) == waiting  # it held no lease, and has left the queue
    assert manager.ok()["loaded"] is True
    assert [answer_of(call).revision for call in calls] == ["v2"] * slots
    assert "impatient" not in model.runs()
    assert seen(model) == standing("ready", slots=slots)


@cell("order.manager_request")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outcome", ["replaced", "refused"])
def test_order_manager_request_is_bound_to_the_configuration_that_results(server, slots, kind, outcome):
    model, replacement, registration = rebindable(server)
    is_replaced = outcome == "replaced"
    with model.checkpoint.held("run"):
        (older,) = occupy(model, 1)
        manager = model.register(**registration, slots=slots if is_replaced else CAPACITY + 1)
        model.wait_queue("load")
        requests = ask(model, kind)
        queue = ["load", *["infer"] * len(ASKED)]
        comes_to(model, standing("ready", slots=slots, leases=["infer"], queue=queue))

    assert answer_of(older).revision == "v1"
    assert manager.result().status_code == (200 if is_replaced else 400)
    assert_bound(requests, replacement if is_replaced else model.checkpoint, new=is_replaced)
    comes_to(model, standing("ready", slots=slots))


@cell("order.manager_request")
def test_order_manager_request_whose_wait_ends_first(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        older = occupy(model, 1)
        manager = model.unload()
        model.wait_queue("unload")
        wait_that_ends(lambda bound_ms: model.infer("bounded", busy_timeout_ms=bound_ms))
        assert seen(model) == standing("ready", slots=slots, leases=["infer"], queue=["unload"])
    assert manager.ok()["loaded"] is False
    for call in older:
        call.ok()
    assert "bounded" not in model.runs()
    assert seen(model) == standing("unloaded", slots=slots)


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
        assert seen(model) == standing("ready", slots=slots, leases=["infer"], queue=queue)
    older.ok()
    answers = [call.ok() for call in calls]

    ends_loaded = [kind in LOADERS for kind in kinds]
    for kind, answer in zip(kinds, answers, strict=True):
        assert answer.items() >= answer_to(kind, model).items()
    assert seen(model) == standing("ready" if ends_loaded[-1] else "unloaded", slots=slots)
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
@pytest.mark.parametrize("wait", ["load", "run", "queue", "destroy", "reconfigure", "metadata"])
def test_order_different_models(server, slots, wait):
    a, b = server.new_model(loaded=wait != "load"), server.new_model()
    held = {"reconfigure": "load", "queue": "run", "metadata": "inspect"}.get(wait, wait)
    replacement = a.replacement("v2")
    waiting = replacement if wait in {"reconfigure", "metadata"} else a.checkpoint
    waiting.hold(held)
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
    if wait != "metadata":  # reading a checkpoint's files announces nothing
        waiting.wait_for(held, len(steps(a.checkpoint, held)) if wait == "queue" else 1 + (wait == "load"))
    before = seen(a)

    assert answer_of(b.infer("warm")).text == "warm"
    assert list(b.open_stream("streamed").events())[-1]["type"] == "task.done"
    assert b.listed()["loaded"] is True
    b.register(slots=1).ok()
    assert b.unload().ok()["loaded"] is False
    assert answer_of(b.infer("cold")).text == "cold"
    assert server.bulk_unload(b).ok()["unloaded"] == [b.id]

    assert seen(a) == before  # in all that time
    assert not any(call.has_ended() for call in calls)
    a.unhold()
    for call in calls:
        call.ok()
    comes_to(a, standing("unloaded" if wait in {"queue", "destroy"} else "ready", slots=slots))
    assert seen(b) == standing("unloaded", slots=1)


@cell("order.different_models")
def test_order_different_models_in_the_other_order(server, slots):
    a, b = server.new_model(loaded=False), server.new_model()
    with b.checkpoint.held("run"), a.checkpoint.held("load"):
        warm = occupy(b, slots)  # first the warm work, then the other model's wait
        cold = a.infer("cold")
        a.checkpoint.wait_for("load", 2)
        b.checkpoint.release("run")
        assert [answer_of(call).text for call in warm] == [f"earlier {number}" for number in range(slots)]
        assert seen_together(server, a, b) == [
            standing("loading", slots=slots, leases=["infer"]),
            standing("ready", slots=slots),
        ]
    cold.ok()
    assert seen_together(server, a, b) == [standing("ready", slots=slots), standing("ready", slots=slots)]


@cell("order.different_models")
def test_order_different_models_when_cold_loads_take_turns(shared_server, slots):
    """A guarded load waits for another beside which it does not fit; warm work does not."""
    server = shared_server("load_guard")
    a, b = (cold_model(server, claimed_bytes=most_of_the_memory()) for _ in range(2))
    warm = server.new_model()
    with a.checkpoint.held("load"):
        calls = [a.infer("first")]
        a.checkpoint.wait_for("load")
        calls.append(b.infer("second"))
        b.wait_state("loading")
        assert answer_of(warm.infer("warm")).text == "warm"
        assert b.checkpoint.events() == []
        assert seen_together(server, a, b, warm) == [
            standing("loading", slots=slots, leases=["infer"]),
            standing("loading", slots=slots, leases=["infer"]),
            standing("ready", slots=slots),
        ]
    assert said(calls) == [("v1", "first"), ("v1", "second")]
    assert seen_together(server, a, b, warm) == [standing("ready", slots=slots)] * 3


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
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=order)
    assert said(older) == [("v1", f"earlier {number}") for number in range(slots)]
    assert calls.pop("bulk_unload").ok() == answer_to("bulk", model)
    (single,) = calls.values()
    if kind == "infer":
        assert said([single]) == [("v1", "single")]
    else:
        assert single.ok().items() >= answer_to(kind, model).items()
    ends_unloaded = not bulk_first or kind == "unload"
    assert seen(model) == standing("unloaded" if ends_unloaded else "ready", slots=slots)
    if kind == "infer":
        found = steps(model.checkpoint, "closed", "run")[slots:]
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
        assert seen(new) == standing("ready", slots=slots)  # there is no barrier on it
    older.ok()
    assert bulk.ok() == {"unloaded": ["old"], "not_found": []}
    assert seen_together(server, old, new) == [standing("unloaded", slots=slots), standing("ready", slots=slots)]
