"""The cells `two.loading_ready.*`: A's first load is held under one request, B is ready and idle."""

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


def loading_ready(server):
    two = TwoModels(server, a_loaded=False)
    two.load_older(two.a, 1)
    return two.begin()


def rest_of_load(slots):
    """What A's engine announces once the load goes on, up to the end of the older request."""
    return [*pool_steps(slots)[1:], *REQUEST]


@cell("two.loading_ready.request_a")
def test_two_loading_ready_request_a(server, slots):
    two = loading_ready(server)
    requests = [two.a.infer(f"new {number}") for number in range(slots)]  # one more than there are slots
    two.wait(a=Standing("loading", INFER * slots, INFER), b=READY)

    two.finish(two.a)
    assert [answer_of(it).text for it in requests] == [f"new {number}" for number in range(slots)]
    two.show(a=READY, b=READY)
    assert two.since(two.a)[: slots + 1] == pool_steps(slots)[1:]  # nothing runs before the pool is whole
    assert two.since(two.a).count("load") == 0
    assert two.since(two.a).count("ran") == slots + 1
    assert two.since(two.b) == []


@cell("two.loading_ready.request_b")
def test_two_loading_ready_request_b(shared_server, slots):
    two = loading_ready(shared_server("load_guard"))

    assert answer_of(two.b.infer("new")).text == "new"

    two.show(a=Standing("loading", INFER), b=READY)
    assert two.since(two.a) == []
    assert two.since(two.b) == REQUEST
    two.finish(two.a)
    two.show(a=READY, b=READY)


@cell("two.loading_ready.reconfigure_a")
def test_two_loading_ready_reconfigure_a(server, slots):
    two = loading_ready(server)
    call, replacement = reconfigure(two.a)
    two.wait(a=Standing("loading", INFER, LOAD), b=READY)
    assert steps(replacement) == []

    two.finish(two.a)
    assert call.ok()["loaded"] is True
    two.show(a=READY, b=READY)
    assert two.since(two.a) == [*rest_of_load(slots), *teardown_steps(slots)]
    assert steps(replacement) == pool_steps(slots)
    assert replacement.events("load")[0].t > last(two.a.checkpoint, "ran")
    assert answer_of(two.a.infer("new")).revision == "v2"
    assert two.since(two.b) == []


@cell("two.loading_ready.unload_a")
def test_two_loading_ready_unload_a(server, slots):
    two = loading_ready(server)
    unload = two.a.unload()
    two.wait(a=Standing("loading", INFER, UNLOAD), b=READY)

    two.finish(two.a)
    assert unload.ok()["loaded"] is False
    two.show(a=UNLOADED, b=READY)
    assert two.since(two.a) == [*rest_of_load(slots), *teardown_steps(slots)]
    assert two.since(two.b) == []


@cell("two.loading_ready.unload_ab")
def test_two_loading_ready_unload_ab(server, slots):
    two = loading_ready(server)
    bulk = server.bulk_unload(two.a, two.b)
    two.wait(a=Standing("loading", INFER, BULK), b=UNLOADED)
    assert two.since(two.a) == []
    assert two.since(two.b) == teardown_steps(slots)

    two.finish(two.a)
    assert bulk.ok() == {"unloaded": [two.a.id, two.b.id], "not_found": []}
    two.show(a=UNLOADED, b=UNLOADED)
    assert two.since(two.a) == [*rest_of_load(slots), *teardown_steps(slots)]
