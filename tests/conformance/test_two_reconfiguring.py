"""The cells `two.reconfiguring_running.*`: A is held in the teardown of its old pool, B runs one request."""

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

B_RUNS = Standing("ready", INFER)


def reconfiguring_running(server):
    """The situation; its `manager` is A's reconfiguration, and `replacement` the checkpoint of that."""
    two = TwoModels(server)
    two.run_older(two.b, 1)
    two.a.checkpoint.hold("destroy")
    two.manager, two.replacement = reconfigure(two.a)
    two.a.checkpoint.wait_for("destroy")
    two.show(a=Standing("reconfiguring", LOAD), b=B_RUNS)
    return two.begin()


@cell("two.reconfiguring_running.request_a")
def test_two_reconfiguring_running_request_a(server, slots):
    two = reconfiguring_running(server)
    request = two.a.infer("new")
    two.wait(a=Standing("reconfiguring", LOAD, INFER), b=B_RUNS)

    two.finish(two.a)
    assert two.manager.ok()["loaded"] is True
    answer = answer_of(request)
    assert (answer.revision, answer.text) == ("v2", "new")
    two.show(a=READY, b=B_RUNS)
    assert steps(two.replacement) == [*pool_steps(slots), *REQUEST]
    assert two.since(two.b) == []


@cell("two.reconfiguring_running.request_b")
def test_two_reconfiguring_running_request_b(server, slots):
    two = reconfiguring_running(server)
    a = Standing("reconfiguring", LOAD)
    if slots > 1:
        assert answer_of(two.b.infer("spare")).text == "spare"
        two.show(a=a, b=B_RUNS)
        two.run_older(two.b, slots)  # "older 0" runs already
    request = two.b.infer("new")
    two.wait(a=a, b=Standing("ready", INFER * slots, INFER))

    two.finish(two.b)
    assert answer_of(request).text == "new"
    two.show(a=a, b=READY)
    two.finish(two.a)
    assert two.manager.ok()["loaded"] is True
    two.show(a=READY, b=READY)


@cell("two.reconfiguring_running.reconfigure_a")
def test_two_reconfiguring_running_reconfigure_a(server, slots):
    two = reconfiguring_running(server)
    call, newest = reconfigure(two.a, "v3")
    two.wait(a=Standing("reconfiguring", LOAD, LOAD), b=B_RUNS)
    assert steps(newest) == []

    two.finish(two.a)
    assert two.manager.ok()["loaded"] is True
    assert call.ok()["loaded"] is True
    two.show(a=READY, b=B_RUNS)
    assert steps(two.replacement) == [*pool_steps(slots), *teardown_steps(slots)]
    assert steps(newest) == pool_steps(slots)
    built = pool_steps(slots)[-1]
    assert newest.events("load")[0].t > last(two.replacement, built)  # the first was whole before the second began
    assert answer_of(two.a.infer("new")).revision == "v3"
    assert two.since(two.b) == []


@cell("two.reconfiguring_running.unload_a")
def test_two_reconfiguring_running_unload_a(server, slots):
    two = reconfiguring_running(server)
    unload = two.a.unload()
    two.wait(a=Standing("reconfiguring", LOAD, UNLOAD), b=B_RUNS)

    two.finish(two.a)
    assert two.manager.ok()["loaded"] is True
    assert unload.ok()["loaded"] is False
    two.show(a=UNLOADED, b=B_RUNS)
    assert steps(two.replacement) == [*pool_steps(slots), *teardown_steps(slots)]
    assert two.since(two.b) == []


@cell("two.reconfiguring_running.unload_ab")
def test_two_reconfiguring_running_unload_ab(server, slots):
    two = reconfiguring_running(server)
    bulk = server.bulk_unload(two.a, two.b)
    two.wait(a=Standing("reconfiguring", LOAD, BULK), b=Standing("ready", INFER, BULK))

    two.finish(two.b)
    two.wait(a=Standing("reconfiguring", LOAD, BULK), b=UNLOADED)
    two.finish(two.a)
    assert two.manager.ok()["loaded"] is True
    assert bulk.ok() == {"unloaded": [two.a.id, two.b.id], "not_found": []}
    two.show(a=UNLOADED, b=UNLOADED)
    assert steps(two.replacement) == [*pool_steps(slots), *teardown_steps(slots)]
    assert two.since(two.b) == ["ran", *teardown_steps(slots)]
