"""The cells `two.unloading_ready.*`: A's unload is held in its teardown, B is ready and idle."""

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


def unloading_ready(server):
    """The situation; its `manager` is A's unload."""
    two = TwoModels(server)
    two.a.checkpoint.hold("destroy")
    two.manager = two.a.unload()
    two.a.checkpoint.wait_for("destroy")
    two.show(a=Standing("unloading", UNLOAD), b=READY)
    return two.begin()


def rest_of_teardown(slots):
    """What A's engine announces once the teardown goes on."""
    return teardown_steps(slots)[1:]


@cell("two.unloading_ready.request_a")
def test_two_unloading_ready_request_a(server, slots):
    two = unloading_ready(server)
    request = two.a.infer("new")
    two.wait(a=Standing("unloading", UNLOAD, INFER), b=READY)

    two.finish(two.a)
    assert two.manager.ok()["loaded"] is False
    assert answer_of(request).text == "new"
    two.show(a=READY, b=READY)
    assert two.since(two.a) == [*rest_of_teardown(slots), *pool_steps(slots), *REQUEST]
    assert two.since(two.b) == []


@cell("two.unloading_ready.request_b")
def test_two_unloading_ready_request_b(server, slots):
    two = unloading_ready(server)

    assert answer_of(two.b.infer("new")).text == "new"

    two.show(a=Standing("unloading", UNLOAD), b=READY)
    assert two.since(two.a) == []
    assert two.since(two.b) == REQUEST
    two.finish(two.a)
    assert two.manager.ok()["loaded"] is False
    two.show(a=UNLOADED, b=READY)


@cell("two.unloading_ready.reconfigure_a")
def test_two_unloading_ready_reconfigure_a(server, slots):
    two = unloading_ready(server)
    call, replacement = reconfigure(two.a)
    two.wait(a=Standing("unloading", UNLOAD, LOAD), b=READY)
    assert steps(replacement) == []

    two.finish(two.a)
    assert two.manager.ok()["loaded"] is False
    assert call.ok()["loaded"] is True
    two.show(a=READY, b=READY)
    assert two.since(two.a) == rest_of_teardown(slots)
    assert steps(replacement) == pool_steps(slots)
    assert replacement.events("load")[0].t > last(two.a.checkpoint, "closed")
    assert answer_of(two.a.infer("new")).revision == "v2"
    assert two.since(two.b) == []


@cell("two.unloading_ready.unload_a")
def test_two_unloading_ready_unload_a(server, slots):
    two = unloading_ready(server)
    unload = two.a.unload()
    two.wait(a=Standing("unloading", UNLOAD, UNLOAD), b=READY)

    two.finish(two.a)
    assert two.manager.ok()["loaded"] is False
    assert unload.ok()["loaded"] is False
    two.show(a=UNLOADED, b=READY)
    assert two.since(two.a) == rest_of_teardown(slots)  # one teardown
    assert two.since(two.b) == []


@cell("two.unloading_ready.unload_ab")
def test_two_unloading_ready_unload_ab(server, slots):
    two = unloading_ready(server)
    bulk = server.bulk_unload(two.a, two.b)
    two.wait(a=Standing("unloading", UNLOAD, BULK), b=UNLOADED)
    assert two.since(two.a) == []
    assert two.since(two.b) == teardown_steps(slots)

    two.finish(two.a)
    assert two.manager.ok()["loaded"] is False
    assert bulk.ok() == {"unloaded": [two.a.id, two.b.id], "not_found": []}
    two.show(a=UNLOADED, b=UNLOADED)
    assert two.since(two.a) == rest_of_teardown(slots)
