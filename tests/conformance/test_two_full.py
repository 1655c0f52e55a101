"""The cells `two.full_ready.*`: A runs a request in each slot and one is queued, B is ready and idle."""

from conformance_evidence import last, steps, wait_that_ends
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


def full_ready(server, slots):
    two = TwoModels(server)
    two.run_older(two.a, slots)
    two.queue_older(two.a)
    return two.begin()


def assert_older_went_first(two, slots):
    """All of A's older requests have run, the queued one too, and only then was its pool torn down."""
    since = two.since(two.a)
    assert sorted(since[: slots + 3]) == sorted(["ran"] * slots + REQUEST)
    assert since[slots + 3 :] == teardown_steps(slots)


@cell("two.full_ready.request_a")
def test_two_full_ready_request_a(server, slots):
    two = full_ready(server, slots)
    request = two.a.infer("new")
    two.wait(a=Standing("ready", INFER * slots, INFER * 2), b=READY)

    two.finish_first(two.a, 1)  # one slot, so that those who are queued run one after the other
    assert answer_of(request).text == "new"
    assert two.a.runs()[slots:] == ["queued", "new"]
    two.show(a=Standing("ready", INFER * (slots - 1)), b=READY)
    two.finish(two.a)
    two.show(a=READY, b=READY)
    assert two.since(two.b) == []


@cell("two.full_ready.request_a")
def test_two_full_ready_request_a_whose_wait_ends_first(server, slots):
    two = full_ready(server, slots)

    wait_that_ends(lambda bound_ms: two.a.infer("new", busy_timeout_ms=bound_ms))

    two.show(a=Standing("ready", INFER * slots, INFER), b=READY)
    two.finish(two.a)
    two.show(a=READY, b=READY)
    assert "new" not in two.a.runs()
    assert two.since(two.b) == []


@cell("two.full_ready.request_b")
def test_two_full_ready_request_b(server, slots):
    two = full_ready(server, slots)

    assert answer_of(two.b.infer("new")).text == "new"

    two.show(a=Standing("ready", INFER * slots, INFER), b=READY)
    assert two.since(two.a) == []
    assert two.since(two.b) == REQUEST
    two.finish(two.a)
    two.show(a=READY, b=READY)


@cell("two.full_ready.reconfigure_a")
def test_two_full_ready_reconfigure_a(server, slots):
    two = full_ready(server, slots)
    call, replacement = reconfigure(two.a)
    two.wait(a=Standing("ready", INFER * slots, INFER + LOAD), b=READY)

    two.finish(two.a)
    assert call.ok()["loaded"] is True
    two.show(a=READY, b=READY)
    assert_older_went_first(two, slots)
    assert steps(replacement) == pool_steps(slots)
    assert replacement.events("load")[0].t > last(two.a.checkpoint, "ran")
    assert answer_of(two.a.infer("new")).revision == "v2"
    assert two.since(two.b) == []


@cell("two.full_ready.unload_a")
def test_two_full_ready_unload_a(server, slots):
    two = full_ready(server, slots)
    unload = two.a.unload()
    two.wait(a=Standing("ready", INFER * slots, INFER + UNLOAD), b=READY)

    two.finish(two.a)
    assert unload.ok()["loaded"] is False
    two.show(a=UNLOADED, b=READY)
    assert_older_went_first(two, slots)
    assert two.since(two.b) == []


@cell("two.full_ready.unload_ab")
def test_two_full_ready_unload_ab(server, slots):
    two = full_ready(server, slots)
    bulk = server.bulk_unload(two.a, two.b)
    two.wait(a=Standing("ready", INFER * slots, INFER + BULK), b=UNLOADED)
    assert two.since(two.b) == teardown_steps(slots)

    two.finish(two.a)
    assert bulk.ok() == {"unloaded": [two.a.id, two.b.id], "not_found": []}
    two.show(a=UNLOADED, b=UNLOADED)
    assert_older_went_first(two, slots)
