"""The cells `two.both_busy.*`: each slot of A and of B has a request, which waits for a first load or runs.

Each model can be let go of while the other stays as it is.
"""

import itertools

import pytest

from conformance_evidence import last, steps
from conformance_plugin import cell
from conformance_server import answer_of, most_of_the_memory
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

STATES = ["loading", "ready"]
both = pytest.mark.parametrize(
    "states", list(itertools.product(STATES, repeat=2)), ids=lambda it: f"A {it[0]}, B {it[1]}"
)
"""Both load, both run, or one loads while the other runs."""


def both_busy(server, slots, states):
    two = TwoModels(server, a_loaded=states[0] == "ready")
    if states[1] == "loading":
        two.b.unload().ok()
    for model, state in zip((two.a, two.b), states, strict=True):
        begin = two.load_older if state == "loading" else two.run_older
        begin(model, slots)
    two.show(a=Standing(states[0], INFER * slots), b=Standing(states[1], INFER * slots))
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
def test_two_both_busy_request_a(server, slots, states):
    two = both_busy(server, slots, states)
    request = two.a.infer("new")
    two.wait(a=Standing(states[0], INFER * slots, INFER), b=Standing(states[1], INFER * slots))

    two.finish(two.a)
    assert answer_of(request).text == "new"
    two.show(a=READY, b=Standing(states[1], INFER * slots))
    assert two.since(two.a)[-1] == "ran"
    assert "load" not in two.since(two.a)
    assert two.since(two.b) == []
    two.finish(two.b)
    two.show(a=READY, b=READY)


@both
@cell("two.both_busy.request_b")
def test_two_both_busy_request_b(server, slots, states):
    two = both_busy(server, slots, states)
    request = two.b.infer("new")
    two.wait(a=Standing(states[0], INFER * slots), b=Standing(states[1], INFER * slots, INFER))

    two.finish(two.b)
    assert answer_of(request).text == "new"
    two.show(a=Standing(states[0], INFER * slots), b=READY)
    assert two.since(two.b)[-1] == "ran"
    assert "load" not in two.since(two.b)
    assert two.since(two.a) == []
    two.finish(two.a)
    two.show(a=READY, b=READY)


def assert_behind_the_guard(server, slots, first, second):
    """A request of the second, cold model waits for the first model's load, beside which there is no memory for it."""
    two = TwoModels(server, a_loaded=False, claimed_bytes=most_of_the_memory())
    two.b.unload().ok()
    loading, waiting = getattr(two, first), getattr(two, second)
    two.load_older(loading, 1)
    two.begin()
    request = waiting.infer("new")
    two.wait(a=Standing("loading", INFER), b=Standing("loading", INFER))
    assert two.since(waiting) == []  # its load is to come after that of the other

    two.finish(loading)
    assert answer_of(request).text == "new"
    two.show(a=READY, b=READY)
    assert two.since(waiting) == [*pool_steps(slots), *REQUEST]
    assert waiting.checkpoint.events("load")[-1].t > last(loading.checkpoint, pool_steps(slots)[-1])


@cell("two.both_busy.request_a")
def test_two_both_busy_request_a_behind_the_guard_of_cold_loads(shared_server, slots):
    assert_behind_the_guard(shared_server("load_guard"), slots, first="b", second="a")


@cell("two.both_busy.request_b")
def test_two_both_busy_request_b_behind_the_guard_of_cold_loads(shared_server, slots):
    assert_behind_the_guard(shared_server("load_guard"), slots, first="a", second="b")


@both
@cell("two.both_busy.reconfigure_a")
def test_two_both_busy_reconfigure_a(server, slots, states):
    two = both_busy(server, slots, states)
    call, replacement = reconfigure(two.a)
    two.wait(a=Standing(states[0], INFER * slots, LOAD), b=Standing(states[1], INFER * slots))
    assert steps(replacement) == []

    two.finish(two.a)
    assert call.ok()["loaded"] is True
    two.show(a=READY, b=Standing(states[1], INFER * slots))
    assert_drained(two, two.a, slots)
    assert steps(replacement) == pool_steps(slots)
    assert replacement.events("load")[0].t > last(two.a.checkpoint, "ran")
    assert answer_of(two.a.infer("new")).revision == "v2"
    assert two.since(two.b) == []
    two.finish(two.b)
    two.show(a=READY, b=READY)


@both
@cell("two.both_busy.unload_a")
def test_two_both_busy_unload_a(server, slots, states):
    two = both_busy(server, slots, states)
    unload = two.a.unload()
    two.wait(a=Standing(states[0], INFER * slots, UNLOAD), b=Standing(states[1], INFER * slots))

    two.finish(two.a)
    assert unload.ok()["loaded"] is False
    two.show(a=UNLOADED, b=Standing(states[1], INFER * slots))
    assert_drained(two, two.a, slots)
    assert two.since(two.b) == []
    two.finish(two.b)
    two.show(a=UNLOADED, b=READY)


@both
@cell("two.both_busy.unload_ab")
def test_two_both_busy_unload_ab(server, slots, states):
    two = both_busy(server, slots, states)
    bulk = server.bulk_unload(two.a, two.b)
    barrier_a, barrier_b = (Standing(state, INFER * slots, BULK) for state in states)
    two.wait(a=barrier_a, b=barrier_b)
    assert (two.since(two.a), two.since(two.b)) == ([], [])

    two.finish(two.b)  # the one that was named last is not kept waiting by the other
    two.wait(a=barrier_a, b=UNLOADED)
    assert_drained(two, two.b, slots)
    assert two.since(two.a) == []
    two.finish(two.a)
    assert bulk.ok() == {"unloaded": [two.a.id, two.b.id], "not_found": []}
    two.show(a=UNLOADED, b=UNLOADED)
    assert_drained(two, two.a, slots)
