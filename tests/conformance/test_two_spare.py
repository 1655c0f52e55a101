"""The cells `two.spare_ready.*`: A runs requests in all slots but one, B is ready and idle."""

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


def spare_ready(server, slots):
    two = TwoModels(server)
    two.run_older(two.a, slots - 1)
    return two.begin()


def drain(two, slots, manager, *, b):
    """Let A's older requests end, the last one apart from the others: the manager waits for that one too."""
    two.wait(a=Standing("ready", INFER * (slots - 1), manager), b=b)
    two.finish_first(two.a, slots - 2)
    two.wait(a=Standing("ready", INFER, manager), b=b)
    two.finish(two.a)


@cell("two.spare_ready.request_a")
def test_two_spare_ready_request_a(server, slots):
    two = spare_ready(server, slots)

    assert answer_of(two.a.infer("new")).text == "new"

    assert two.since(two.a) == REQUEST
    sessions = {event.session for event in two.a.checkpoint.events("run")}
    assert len(sessions) == slots  # each request has one of its own
    two.show(a=Standing("ready", INFER * (slots - 1)), b=READY)
    two.finish(two.a)
    two.show(a=READY, b=READY)
    assert two.since(two.b) == []


@cell("two.spare_ready.request_a")
def test_two_spare_ready_request_a_behind_an_older_barrier(server, slots):
    two = spare_ready(server, slots)
    unload = two.a.unload()
    two.a.wait_queue("unload")
    request = two.a.infer("new")
    two.wait(a=Standing("ready", INFER * (slots - 1), UNLOAD + INFER), b=READY)
    assert two.since(two.a) == []

    two.finish(two.a)
    assert unload.ok()["loaded"] is False
    assert answer_of(request).text == "new"
    two.show(a=READY, b=READY)
    assert two.since(two.a)[slots - 1 :] == [*teardown_steps(slots), *pool_steps(slots), *REQUEST]
    assert two.since(two.b) == []


@cell("two.spare_ready.request_b")
def test_two_spare_ready_request_b(server, slots):
    two = spare_ready(server, slots)

    assert answer_of(two.b.infer("new")).text == "new"

    two.show(a=Standing("ready", INFER * (slots - 1)), b=READY)
    assert two.since(two.a) == []
    assert two.since(two.b) == REQUEST
    two.finish(two.a)
    two.show(a=READY, b=READY)


@cell("two.spare_ready.reconfigure_a")
def test_two_spare_ready_reconfigure_a(server, slots):
    two = spare_ready(server, slots)
    call, replacement = reconfigure(two.a)

    drain(two, slots, LOAD, b=READY)
    assert call.ok()["loaded"] is True
    two.show(a=READY, b=READY)
    assert two.since(two.a) == [*["ran"] * (slots - 1), *teardown_steps(slots)]
    assert steps(replacement) == pool_steps(slots)
    assert replacement.events("load")[0].t > last(two.a.checkpoint, "ran")
    assert answer_of(two.a.infer("new")).revision == "v2"
    assert two.since(two.b) == []


@cell("two.spare_ready.unload_a")
def test_two_spare_ready_unload_a(server, slots):
    two = spare_ready(server, slots)
    unload = two.a.unload()

    drain(two, slots, UNLOAD, b=READY)
    assert unload.ok()["loaded"] is False
    two.show(a=UNLOADED, b=READY)
    assert two.since(two.a) == [*["ran"] * (slots - 1), *teardown_steps(slots)]
    assert two.since(two.b) == []


@cell("two.spare_ready.unload_ab")
def test_two_spare_ready_unload_ab(server, slots):
    two = spare_ready(server, slots)
    bulk = server.bulk_unload(two.a, two.b)

    drain(two, slots, BULK, b=UNLOADED)
    assert bulk.ok() == {"unloaded": [two.a.id, two.b.id], "not_found": []}
    two.show(a=UNLOADED, b=UNLOADED)
    assert two.since(two.a) == [*["ran"] * (slots - 1), *teardown_steps(slots)]
    assert two.since(two.b) == teardown_steps(slots)
    assert last(two.b.checkpoint, "closed") < last(two.a.checkpoint, "ran")
