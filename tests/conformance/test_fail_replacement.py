"""The cells `fail.*` about replacing a model: refused whole before the commit, kept as registered after it."""

import pytest

from conformance_client import eventually
from conformance_evidence import at_work, error_of, nothing_left_open, refusal, steps
from conformance_plugin import cell
from conformance_server import answer_of
from conformance_situations import NO_MEMORY_HAS_SO_MUCH
from conformance_standing import CAPACITY, comes_to, last_error, seen, standing

BEYOND_CAPACITY = 5
PROBE_LIMIT_MS = 1000
"""How long a load or a probe may take in a test that lets one hang."""

PROBED = {
    "session options": {"session_options": {"capacity": CAPACITY}},
    "task": {"task": "asr"},
    "mode": {"mode": "streaming"},
}
"""Changes of what a session is opened with, over the same weights: each needs a probe."""


def registration_of(server, model):
    """What the model is registered as, whole."""
    return server.client.call("GET", f"/v1/ui/models/{model.id}").json()


def ran_in(model, text):
    """Run a request: the session and the process that it ran in."""
    answer = answer_of(model.infer(text))
    (event,) = model.checkpoint.events("run", text)
    return answer.revision, answer.session, event.pid


@cell("fail.unsupported_capacity")
def test_fail_unsupported_capacity(server, slots):
    model = server.new_model()
    before, earlier = seen(model), steps(model.checkpoint)

    refused = model.register(slots=BEYOND_CAPACITY)

    assert refusal(refused) == (400, None, "slots")
    assert error_of(refused)["type"] == "invalid_request_error"
    assert seen(model) == before
    assert steps(model.checkpoint) == earlier  # neither a teardown nor a load
    at_work(model)
    other = slots % 4 + 1
    model.register(slots=other).ok()
    assert seen(model) == standing("ready", slots=other)
    at_work(model)


@cell("fail.unsupported_capacity")
def test_fail_unsupported_capacity_behind_running_work(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        earlier = [model.infer(f"earlier {number}") for number in range(slots)]
        model.wait_listed(active_slots=slots)
        refused = model.register(slots=BEYOND_CAPACITY)
        model.wait_queue("load")
        later = model.infer("later")
        model.wait_queue("load", "infer")

    assert refusal(refused) == (400, None, "slots")
    assert {answer_of(call).text for call in earlier} == {f"earlier {number}" for number in range(slots)}
    assert answer_of(later).revision == "v1"
    assert steps(model.checkpoint).count("load") == 1
    comes_to(model, standing("ready", slots=slots))


@cell("fail.unsupported_capacity")
def test_fail_unsupported_capacity_of_a_model_that_is_not_loaded(server, slots):
    model = server.new_model(loaded=False)
    assert refusal(model.register(slots=BEYOND_CAPACITY)) == (400, None, "slots")

    assert seen(model) == standing("unloaded", slots=slots)
    nothing_left_open(model.checkpoint)
    at_work(model)


@cell("fail.capacity_probe")
def test_fail_capacity_probe(server, slots):
    """Unchanged inputs of a session: the live pool's capacity counts, whatever the files say by now."""
    model = server.new_model()
    model.checkpoint.set("capacity", "16")
    before, earlier = seen(model), steps(model.checkpoint)

    assert refusal(model.register(slots=BEYOND_CAPACITY)) == (400, None, "slots")

    assert steps(model.checkpoint) == earlier  # no session was opened to learn that
    assert seen(model) == before
    at_work(model)


@cell("fail.capacity_probe")
def test_fail_capacity_probe_over_the_loaded_weights(server, slots, isolation):
    model = server.new_model()
    before, earlier = seen(model), steps(model.checkpoint)

    assert refusal(model.register(session_options={"capacity": 1})) == (400, None, "slots")

    probe = steps(model.checkpoint)[len(earlier) :]
    if isolation == "thread":
        assert probe == ["open", "destroy", "session_closed"]
    else:
        assert probe == ["load", "loaded", "open", "destroy", "session_closed", "destroy", "closed"]
    assert seen(model) == before
    at_work(model)

    earlier = steps(model.checkpoint)
    model.register(session_options={"capacity": slots}).ok()
    rest = steps(model.checkpoint)[len(earlier) :]
    if isolation == "thread":
        probe, rest = rest[:3], rest[3:]
        assert probe == ["open", "destroy", "session_closed"]  # then the old pool goes, and the new one comes
        assert rest.index("closed") < rest.index("load")
    else:
        # A probe could take the pool's process with it, so the weights are loaded once more in a process of their own,
        # which becomes the new pool.
        assert rest[:3] == ["load", "loaded", "open"]
        assert rest.count("load") == 1
        assert rest.index("closed") < rest.index("clone")
    assert seen(model) == standing("ready", slots=slots, capacity=slots)


@cell("fail.capacity_probe")
@pytest.mark.parametrize("changed", ["task", "mode"])
def test_fail_capacity_probe_of_another_task_or_mode(server, slots, isolation, changed):
    """The live pool's capacity does not count: the probe is opened as the new registration says."""
    model = server.new_model()
    before, registered = seen(model), registration_of(server, model)
    model.checkpoint.set("capacity", "1")  # of every session that is opened from now on
    worker = ran_in(model, "before")

    refused = model.register(**PROBED[changed])

    assert refusal(refused) == (400, None, "slots")
    assert error_of(refused)["type"] == "invalid_request_error"
    assert seen(model) == before
    assert registration_of(server, model) == registered
    assert ran_in(model, "after") == worker

    model.checkpoint.set("capacity", str(slots))
    model.register(**PROBED[changed]).ok()
    assert registration_of(server, model) == {**registered, **PROBED[changed]}
    assert model.status()["max_parallel_slots"] == slots
    # The probes came first, and only then the old pool went, and the new one came.
    events = [(it.step, it.session) for it in model.checkpoint.events()]
    gone = events.index(("destroy", worker[1]))
    assert [step for step, _ in events[:gone]].count("open") == 3
    # In a worker process what was probed became the new pool; in a thread that is opened anew.
    assert [step for step, _ in events[gone:]].count("open") == (isolation == "thread")


@cell("fail.capacity_probe")
@pytest.mark.parametrize("changed", PROBED)
@pytest.mark.parametrize(("file", "code"), [("open.fail", "load_failed"), ("session.null", "load_failed")])
def test_fail_capacity_probe_that_fails(server, slots, changed, file, code):
    model = server.new_model()
    worker = ran_in(model, "before")
    before, registered = seen(model), registration_of(server, model)
    model.checkpoint.set(file)

    assert refusal(model.register(**PROBED[changed])) == (500, code, None)

    assert seen(model) == before
    assert registration_of(server, model) == registered
    model.checkpoint.unset(file)
    assert ran_in(model, "after") == worker


def arm(checkpoint, step, fault, isolation):
    """Have a step of a probe crash or hang, as far as its isolation lets a server outlive that.

    In the server's own process nothing outlives a crash, so there the engine raises what ends its thread; and what
    hangs there cannot be ended, so it is held, and fails once it is let go.
    """
    if isolation == "process":
        checkpoint.set(f"{step}.{fault}")
        return
    checkpoint.fail(step, "SystemExit" if fault == "crash" else "RuntimeError")
    if fault == "hang":
        checkpoint.hold(step)


def disarm(checkpoint, step, fault, isolation):
    """Let go of a step that is held: it fails now."""
    if (fault, isolation) == ("hang", "thread"):
        checkpoint.release(step)


@cell("fail.capacity_probe")
@pytest.mark.parametrize("changed", PROBED)
@pytest.mark.parametrize("fault", ["crash", "hang"])
def test_fail_capacity_probe_that_crashes_or_hangs(server, slots, isolation, changed, fault):
    """Over the loaded weights: the pool that works there is not touched by what becomes of the probe."""
    model = server.new_model()
    worker = ran_in(model, "before")
    registered, earlier = registration_of(server, model), len(model.checkpoint.events("destroy"))
    arm(model.checkpoint, "open", fault, isolation)

    refused = model.register(**PROBED[changed], load_timeout_ms=PROBE_LIMIT_MS)

    assert refusal(refused)[0] in (500, 503, 504)
    disarm(model.checkpoint, "open", fault, isolation)
    eventually(model.status, lambda it: not it["leases"], "the manager's lease released")
    assert seen(model) == standing("ready", slots=slots, last_error=model.status()["last_error"])
    assert registration_of(server, model) == registered
    assert len(model.checkpoint.events("destroy")) == earlier
    model.checkpoint.unset(f"open.{fault}" if isolation == "process" else "open.fail")
    assert ran_in(model, "after") == worker
    assert model.unload().ok()["loaded"] is False
    at_work(model)


@cell("fail.capacity_probe")
@pytest.mark.parametrize("step", ["load", "open"])
@pytest.mark.parametrize("fault", ["crash", "hang"])
def test_fail_capacity_probe_of_another_checkpoint_that_crashes_or_hangs(server, slots, isolation, step, fault):
    model = server.new_model()
    worker, v2 = ran_in(model, "before"), model.replacement("v2")
    registered, earlier = registration_of(server, model), steps(model.checkpoint)
    arm(v2, step, fault, isolation)

    refused = model.register(path=str(v2.path), load_timeout_ms=PROBE_LIMIT_MS)

    assert refusal(refused)[0] in (500, 503, 504)
    disarm(v2, step, fault, isolation)
    eventually(model.status, lambda it: not it["leases"], "the manager's lease released")
    assert seen(model) == standing("ready", slots=slots, last_error=model.status()["last_error"])
    assert registration_of(server, model) == registered
    assert steps(model.checkpoint) == earlier
    assert ran_in(model, "after") == worker
    assert model.unload().ok()["loaded"] is False


@cell("fail.capacity_probe")
def test_fail_capacity_probe_of_another_checkpoint(server, slots):
    model = server.new_model()
    before, v2 = seen(model), model.replacement("v2")
    v2.set("capacity", "1")
    with v2.held("open"):
        refused = model.register(path=str(v2.path))
        v2.wait_for("open")
        assert seen(model) == standing("reconfiguring", slots=slots, leases=["load"], capacity=CAPACITY)
        assert "destroy" not in steps(model.checkpoint)  # both weights are there

    assert refusal(refused) == (400, None, "slots")
    assert seen(model) == before
    nothing_left_open(v2)
    at_work(model)

    v2.set("capacity", "4")
    model.register(path=str(v2.path)).ok()
    loads, torn_down = v2.events("load"), model.checkpoint.events("destroy")
    assert len(loads) == 2  # what the probe had loaded became the pool
    assert loads[-1].t < v2.events("open")[-1].t < torn_down[0].t < v2.events("clone")[0].t
    at_work(model, "v2")


@cell("fail.capacity_probe")
@pytest.mark.parametrize("step", ["load", "open"])
def test_fail_capacity_probe_of_another_checkpoint_that_fails(server, slots, step):
    model = server.new_model()
    before, v2 = seen(model), model.replacement("v2")
    v2.fail(step)

    assert refusal(model.register(path=str(v2.path))) == (500, "load_failed", None)

    assert seen(model) == before
    nothing_left_open(v2)
    at_work(model)


@cell("fail.capacity_probe")
def test_fail_capacity_probe_evicts_nobody(fresh_server, slots):
    server = fresh_server("residency_limit_2", min_free_memory_mb=1)
    model, other = server.new_model(), server.new_model()
    before, v2 = seen(model), model.replacement("v2")
    v2.set("bytes", NO_MEMORY_HAS_SO_MUCH)

    assert refusal(model.register(path=str(v2.path))) == (503, "insufficient_memory", None)
    assert seen(model) == before
    assert v2.events() == []
    assert seen(other) == standing("ready", slots=slots)

    v2.unset("bytes")
    model.register(path=str(v2.path)).ok()
    at_work(model, "v2")
    assert seen(other) == standing("ready", slots=slots)
    assert "destroy" not in steps(other.checkpoint)


@cell("fail.post_commit_load")
def test_fail_post_commit_load(server, slots):
    model = server.new_model()
    v2, count = model.replacement("v2"), 3 if slots == 4 else slots + 1
    v2.fail("clone")  # the probe succeeds before

    assert refusal(model.register(path=str(v2.path), slots=count)) == (500, "load_failed", None)

    assert model.checkpoint.events("closed")[0].t < v2.events("clone")[0].t
    assert seen(model) == standing("unloaded", slots=count, last_error=last_error(model))
    nothing_left_open(v2)
    v2.unset("clone.fail")
    at_work(model, "v2")  # the next request tries again
    assert seen(model) == standing("ready", slots=count)  # with no error any more
    assert steps(model.checkpoint).count("load") == 1  # and what was before does not come back


@cell("fail.post_commit_load")
def test_fail_post_commit_load_without_a_probe(server, slots):
    model = server.new_model()
    v2 = model.replacement("v2")
    v2.fail("load")

    assert refusal(model.register(path=str(v2.path), slots=1)) == (500, "load_failed", None)

    assert model.checkpoint.events("closed")[0].t < v2.events("load")[0].t
    assert seen(model) == standing("unloaded", slots=1, last_error=last_error(model))
    assert "loaded" not in steps(v2)
    assert refusal(model.infer("too early")) == (500, "load_failed", None)
    v2.unset("load.fail")
    at_work(model, "v2")
    assert seen(model) == standing("ready", slots=1)
    assert steps(model.checkpoint).count("load") == 1


@cell("fail.post_commit_load")
@pytest.mark.parametrize("step", ["inspect", "load", "open", "clone"])
def test_fail_post_commit_load_side_by_side_keeps_the_old_pool(server, slots, step):
    model = server.new_model()
    before, earlier, v2 = seen(model), steps(model.checkpoint), model.replacement("v2")
    v2.fail(step)

    refused = model.register(path=str(v2.path), slots=max(2, slots), strategy="side_by_side")

    assert refusal(refused)[0] == 500
    assert seen(model) == before
    assert steps(model.checkpoint) == earlier
    nothing_left_open(v2)
    at_work(model)
