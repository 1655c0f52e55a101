"""The cells `two.other_bulk.*`: a bulk unload has its barriers on A and B, behind a request in each slot."""

import json
import signal
from contextlib import contextmanager

from conformance_evidence import last, steps
from conformance_plugin import cell
from conformance_server import BULK_UNLOAD, answer_of
from conformance_situations import occupy
from conformance_standing import comes_to, seen_together, standing
from conformance_two import (
    BULK,
    INFER,
    LOAD,
    READY,
    REQUEST,
    UNLOAD,
    UNLOADED,
    Standing,
    TwoModels,
    pool_steps,
    reconfigure,
    teardown_steps,
)


def other_bulk(server, slots):
    """The situation; its `manager` is the bulk unload."""
    two = TwoModels(server)
    for model in (two.a, two.b):
        two.run_older(model, slots)
    two.manager = server.bulk_unload(two.a, two.b)
    two.wait(a=barriers(slots), b=barriers(slots))
    return two.begin()


def barriers(slots, behind=()):
    """How a model stands that is selected, with what waits behind its barrier."""
    return Standing("ready", INFER * slots, BULK + behind)


def drained(slots):
    """What an engine announces of the older requests and of the unload that waited for them."""
    return [*["ran"] * slots, *teardown_steps(slots)]


def end_bulk(two, model):
    """Let go of the model that still holds up the first bulk unload, which is answered then."""
    assert not two.manager.has_ended()
    two.finish(model)
    assert two.manager.ok() == {"unloaded": [two.a.id, two.b.id], "not_found": []}


@cell("two.other_bulk.request_a")
def test_two_other_bulk_request_a(server, slots):
    two = other_bulk(server, slots)
    request = two.a.infer("new")
    two.wait(a=barriers(slots, INFER), b=barriers(slots))

    two.finish(two.a)
    assert answer_of(request).text == "new"
    two.show(a=READY, b=barriers(slots))
    assert two.since(two.a) == [*drained(slots), *pool_steps(slots), *REQUEST]
    end_bulk(two, two.b)
    two.show(a=READY, b=UNLOADED)
    assert two.since(two.b) == drained(slots)


@cell("two.other_bulk.request_b")
def test_two_other_bulk_request_b(server, slots):
    two = other_bulk(server, slots)
    request = two.b.infer("new")
    two.wait(a=barriers(slots), b=barriers(slots, INFER))

    two.finish(two.b)
    assert answer_of(request).text == "new"
    two.show(a=barriers(slots), b=READY)
    assert two.since(two.b) == [*drained(slots), *pool_steps(slots), *REQUEST]
    end_bulk(two, two.a)
    two.show(a=UNLOADED, b=READY)
    assert two.since(two.a) == drained(slots)


@cell("two.other_bulk.reconfigure_a")
def test_two_other_bulk_reconfigure_a(server, slots):
    two = other_bulk(server, slots)
    call, replacement = reconfigure(two.a)
    two.wait(a=barriers(slots, LOAD), b=barriers(slots))
    assert steps(replacement) == []

    two.finish(two.a)
    assert call.ok()["loaded"] is True
    two.show(a=READY, b=barriers(slots))
    assert two.since(two.a) == drained(slots)
    assert steps(replacement) == pool_steps(slots)
    assert replacement.events("load")[0].t > last(two.a.checkpoint, "closed")
    assert answer_of(two.a.infer("new")).revision == "v2"
    end_bulk(two, two.b)
    two.show(a=READY, b=UNLOADED)
    assert two.since(two.b) == drained(slots)


@cell("two.other_bulk.unload_a")
def test_two_other_bulk_unload_a(server, slots):
    two = other_bulk(server, slots)
    unload = two.a.unload()
    two.wait(a=barriers(slots, UNLOAD), b=barriers(slots))

    two.finish(two.a)
    assert unload.ok()["loaded"] is False
    two.show(a=UNLOADED, b=barriers(slots))
    assert two.since(two.a) == drained(slots)
    end_bulk(two, two.b)
    two.show(a=UNLOADED, b=UNLOADED)
    assert two.since(two.b) == drained(slots)


@cell("two.other_bulk.unload_ab")
def test_two_other_bulk_unload_ab(server, slots):
    two = other_bulk(server, slots)
    second = server.bulk_unload(two.b, two.a, two.b)
    both = barriers(slots, BULK)
    two.wait(a=both, b=both)

    two.finish(two.b)
    two.wait(a=both, b=UNLOADED)  # both barriers of B have come and gone, and both calls wait for A alone
    end_bulk(two, two.a)
    assert second.ok() == {"unloaded": [two.b.id, two.a.id], "not_found": []}
    two.show(a=UNLOADED, b=UNLOADED)
    assert two.since(two.a) == drained(slots)
    assert two.since(two.b) == drained(slots)


@cell("two.other_bulk.unload_ab")
def test_two_other_bulk_unload_ab_in_one_order_on_both(server, slots):
    two = other_bulk(server, slots)
    between = {it: it.infer("between") for it in (two.a, two.b)}
    two.wait(a=barriers(slots, INFER), b=barriers(slots, INFER))
    second = server.bulk_unload(two.b, two.a)
    two.wait(a=barriers(slots, INFER + BULK), b=barriers(slots, INFER + BULK))

    two.a.checkpoint.hold("run", "between")
    two.finish_first(two.a, slots)
    two.wait(a=Standing("ready", INFER, BULK), b=barriers(slots, INFER + BULK))
    end_bulk(two, two.b)  # it had both its barriers before the second call had any
    assert answer_of(between[two.b]).text == "between"
    two.wait(a=Standing("ready", INFER, BULK), b=UNLOADED)
    two.finish(two.a)
    assert answer_of(between[two.a]).text == "between"
    assert second.ok()["unloaded"] == [two.b.id, two.a.id]
    two.show(a=UNLOADED, b=UNLOADED)
    for model in (two.a, two.b):  # the first bulk, the request between them, the second bulk
        assert two.since(model) == [*drained(slots), *pool_steps(slots), *REQUEST, *teardown_steps(slots)]


@contextmanager
def at_the_same_moment(server):
    """Have what is sent in the block reach the server together: its process is stopped until the end of the block."""
    server.process.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.process.send_signal(signal.SIGCONT)


@cell("two.other_bulk.unload_ab")
def test_two_other_bulk_unload_ab_published_as_one_step(fresh_server, slots):
    """Two calls arrive together, in reversed order: whichever is first on one model is first on the other as well."""
    # The more models lie between A and B, the more room for another call there would be if the barriers came singly.
    between = [f"between {number}" for number in range(16)]
    server = fresh_server(models={model_id: {"slots": slots} for model_id in between})
    two = TwoModels(server)
    for model in (two.a, two.b):
        two.run_older(model, slots)
    marker = server.new_model()  # which the second call alone selects: its queue tells when that call is withdrawn
    selection = [two.a.id, *between, two.b.id]
    with marker.checkpoint.held("run"):
        occupy(marker, 1)
        with at_the_same_moment(server):
            first, second = (
                server.client.open("POST", BULK_UNLOAD, json={"model_ids": ids})
                for ids in (selection, [*selection[::-1], marker.id])
            )
        two.wait(a=barriers(slots, BULK), b=barriers(slots, BULK))
        for model in (two.a, two.b):
            model.checkpoint.hold("destroy")
            two.finish_first(model, slots)
        two.wait(a=Standing("unloading", BULK, BULK), b=Standing("unloading", BULK, BULK))

        second.cut()
        marker.wait_queue()
        # Where the second call came first, both its leases stay out; where it came second, both its barriers are gone.
        on_a, on_b = (len(it["queue"]) for it in seen_together(server, two.a, two.b))
        assert on_a == on_b
        for model in (two.a, two.b):
            model.checkpoint.release("destroy")
        assert json.loads(first.read()) == {"unloaded": selection, "not_found": []}
    comes_to(marker, standing("ready", slots=slots))
    two.show(a=UNLOADED, b=UNLOADED)
    for model in (two.a, two.b):
        assert two.since(model)[-len(teardown_steps(slots)) :] == teardown_steps(slots)
        assert two.since(model).count("closed") == 1
