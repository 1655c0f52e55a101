"""The cells `two.both_busy.*`: each slot of A and of B has a request; all of them wait for a first load, or all run.

Each model can be let go of while the other stays as it is.
"""

import pytest

from conformance_evidence import last, steps
from conformance_plugin import cell
from conformance_server import answer_of, most_of_the_memory
from conformance_two import (
    BULK,
    INFER,
    LOAD,
    READY,
    UNLOAD,
    UNLOADED,
    Standing,
    TwoModels,
    pool_steps,
    reconfigure,
    teardown_steps,
)

both = pytest.mark.parametrize("state", ["loading", "ready"])


def both_busy(server, slots, state):
    loading = state == "loading"
    two = TwoModels(server, a_loaded=not loading)
    if loading:
        two.b.unload().ok()
    begin = two.load_older if loading else two.run_older
    for model in (two.a, two.b):
        begin(model, slots)
    return two.begin()


def assert_drained(two, model, slots):
    """The model has ended its older work, and only then its pool was torn down, once."""
    since = two.since(model)
    assert since[-len(teardown_steps(slots)) :] == teardown_steps(slots)
    assert since.count("ran") == slots
    assert since.count("destroy") == slots + 1
    assert "load" not in since  # it was loaded once


@both
@cell("two.both_busy.request_a")
def test_two_both_busy_request_a(server, slots, state):
    two = both_busy(server, slots, state)
    request = two.a.infer("new")
    two.wait(a=Standing(state, INFER * slots, INFER), b=Standing(state, INFER * slots))

    two.finish(two.a)
    assert answer_of(request).text == "new"
    two.show(a=READY, b=Standing(state, INFER * slots))
    assert two.since(two.a)[-1] == "ran"
    assert "load" not in two.since(two.a)
    assert two.since(two.b) == []
    two.finish(two.b)
    two.show(a=READY, b=READY)


@both
@cell("two.both_busy.request_b")
def test_two_both_busy_request_b(server, slots, state):
    two = both_busy(server, slots, state)
    request = two.b.infer("new")
    two.wait(a=Standing(state, INFER * slots), b=Standing(state, INFER * slots, INFER))

    two.finish(two.b)
    assert answer_of(request).text == "new"
    two.show(a=Standing(state, INFER * slots), b=READY)
    assert two.since(two.b)[-1] == "ran"
    assert "load" not in two.since(two.b)
    assert two.since(two.a) == []
    two.finish(two.a)
    two.show(a=READY, b=READY)


@cell("two.both_busy.request_b")
def test_two_both_busy_request_b_behind_the_guard_of_cold_loads(shared_server, slots):
    two = TwoModels(shared_server("load_guard"), a_loaded=False, claimed_bytes=most_of_the_memory())
    two.b.unload().ok()
    two.load_older(two.a, 1)
    two.begin()
    request = two.b.infer("new")
    two.wait(a=Standing("loading", INFER), b=Standing("loading", INFER))
    assert two.since(two.b) == []  # its load is to come after that of A

    two.finish(two.a)
    assert answer_of(request).text == "new"
    two.show(a=READY, b=READY)
    loaded = two.a.checkpoint.events(pool_steps(slots)[-1])[-1]
    assert two.b.checkpoint.events("load")[-1].t > loaded.t


@both
@cell("two.both_busy.reconfigure_a")
def test_two_both_busy_reconfigure_a(server, slots, state):
    two = both_busy(server, slots, state)
    call, replacement = reconfigure(two.a)
    two.wait(a=Standing(state, INFER * slots, LOAD), b=Standing(state, INFER * slots))
    assert steps(replacement) == []

    two.finish(two.a)
    assert call.ok()["loaded"] is True
    two.show(a=READY, b=Standing(state, INFER * slots))
    assert_drained(two, two.a, slots)
    assert steps(replacement) == pool_steps(slots)
    assert replacement.events("load")[0].t > last(two.a.checkpoint, "ran")
    assert answer_of(two.a.infer("new")).revision == "v2"
    assert two.since(two.b) == []
    two.finish(two.b)
    two.show(a=READY, b=READY)


@both
@cell("two.both_busy.unload_a")
def test_two_both_busy_unload_a(server, slots, state):
    two = both_busy(server, slots, state)
    unload = two.a.unload()
    two.wait(a=Standing(state, INFER * slots, UNLOAD), b=Standing(state, INFER * slots))

    two.finish(two.a)
    assert unload.ok()["loaded"] is False
    two.show(a=UNLOADED, b=Standing(state, INFER * slots))
    assert_drained(two, two.a, slots)
    assert two.since(two.b) == []
    two.finish(two.b)
    two.show(a=UNLOADED, b=READY)


@both
@cell("two.both_busy.unload_ab")
def test_two_both_busy_unload_ab(server, slots, state):
    two = both_busy(server, slots, state)
    bulk = server.bulk_unload(two.a, two.b)
    barrier = Standing(state, INFER * slots, BULK)
    two.wait(a=barrier, b=barrier)

    two.finish(two.b)  # the one that was named last is not kept waiting by the other
    two.wait(a=barrier, b=UNLOADED)
    two.finish(two.a)
    assert bulk.ok() == {"unloaded": [two.a.id, two.b.id], "not_found": []}
    two.show(a=UNLOADED, b=UNLOADED)
    assert_drained(two, two.a, slots)
    assert_drained(two, two.b, slots)
