"""The cells `two.other_bulk.*`: a bulk unload has its barriers on A and B, behind a request in each slot."""

from conformance_evidence import last, steps
from conformance_plugin import cell
from conformance_server import answer_of
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
