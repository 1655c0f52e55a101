"""The cells `two.unloaded_ready.*`: A is registered and not loaded, B is ready and idle."""

from conformance_evidence import steps
from conformance_plugin import cell
from conformance_server import answer_of
from conformance_two import BULK, INFER, LOAD, READY, REQUEST, UNLOADED, Standing, TwoModels, pool_steps, teardown_steps


def unloaded_ready(server):
    return TwoModels(server, a_loaded=False)


@cell("two.unloaded_ready.request_a")
def test_two_unloaded_ready_request_a(server, slots):
    two = unloaded_ready(server)
    with two.a.checkpoint.held("load"):
        request = two.a.infer("new")
        two.wait(a=Standing("loading", INFER), b=READY)

    assert answer_of(request).text == "new"
    two.show(a=READY, b=READY)
    assert two.since(two.a) == [*pool_steps(slots), *REQUEST]
    assert two.since(two.b) == []


@cell("two.unloaded_ready.request_b")
def test_two_unloaded_ready_request_b(server, slots):
    two = unloaded_ready(server)
    with two.b.checkpoint.held("run"):
        request = two.b.infer("new")
        two.wait(a=UNLOADED, b=Standing("ready", INFER))

    assert answer_of(request).text == "new"
    two.show(a=UNLOADED, b=READY)
    assert two.since(two.a) == []
    assert two.since(two.b) == REQUEST


@cell("two.unloaded_ready.reconfigure_a")
def test_two_unloaded_ready_reconfigure_a(server, slots):
    two = unloaded_ready(server)
    replacement = two.a.replacement("v2")
    # Weights for several slots are tried before the state says so, and clones are made after that.
    with replacement.held("load" if slots == 1 else "clone"):
        call = two.a.register(path=str(replacement.path))
        two.wait(a=Standing("loading", LOAD), b=READY)

    assert call.ok()["loaded"] is True
    two.show(a=READY, b=READY)
    assert steps(replacement) == pool_steps(slots)
    assert answer_of(two.a.infer("new")).revision == "v2"
    assert two.since(two.a) == []
    assert two.since(two.b) == []


@cell("two.unloaded_ready.unload_a")
def test_two_unloaded_ready_unload_a(server, slots):
    two = unloaded_ready(server)

    assert two.a.unload().ok()["loaded"] is False

    two.show(a=UNLOADED, b=READY)
    assert two.since(two.a) == []
    assert two.since(two.b) == []


@cell("two.unloaded_ready.unload_ab")
def test_two_unloaded_ready_unload_ab(server, slots):
    two = unloaded_ready(server)
    with two.b.checkpoint.held("destroy"):
        bulk = server.bulk_unload(two.a, two.b)
        two.wait(a=UNLOADED, b=Standing("unloading", BULK))  # A's barrier has come and gone

    assert bulk.ok() == {"unloaded": [two.a.id, two.b.id], "not_found": []}
    two.show(a=UNLOADED, b=UNLOADED)
    assert two.since(two.a) == []
    assert two.since(two.b) == teardown_steps(slots)
