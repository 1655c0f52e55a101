"""The cells `fail.*` about loads: those that fail, and those for which there is no room."""

import pytest

from conformance_evidence import at_work, nothing_left_open, refusal, steps
from conformance_plugin import cell
from conformance_server import answer_of
from conformance_situations import NO_MEMORY_HAS_SO_MUCH
from conformance_standing import comes_to, last_error, seen, standing


@cell("fail.initial_load")
@pytest.mark.parametrize(
    "file", ["load.fail", "open.fail", "session.null", "clone.fail", "clone.null", "clone.differs"]
)
def test_fail_initial_load(server, slots, file):
    count = max(2, slots) if file.startswith("clone") else slots  # one slot has no clone
    model = server.new_model(loaded=False, slots=count)
    earlier = len(model.checkpoint.events())
    text = "sample_rate" if file == "clone.differs" else ""
    with model.checkpoint.held("load"):
        admitted = [model.infer(f"admitted {number}") for number in range(count)]
        model.wait_listed(active_slots=count)
        queued = model.infer("queued")
        model.wait_listed(active_slots=count, queued_requests=1)
        model.checkpoint.set(file, text)

    for call in [*admitted, queued]:
        assert refusal(call) == (500, "load_failed", None)
    assert model.runs() == []
    assert seen(model) == standing("unloaded", slots=count, last_error=last_error(model))
    nothing_left_open(model.checkpoint)
    attempts = [event.step for event in model.checkpoint.events()[earlier:]].count("load")
    assert attempts == 2  # those admitted shared one, and who was admitted then had another
    model.checkpoint.unset(file)
    at_work(model)
    assert seen(model) == standing("ready", slots=count)


@cell("fail.initial_load")
def test_fail_initial_load_lets_others_try_again(server, slots):
    model = server.new_model(loaded=False)
    model.checkpoint.fail("open")
    model.checkpoint.hold("open")
    admitted = [model.infer(f"admitted {number}") for number in range(slots)]
    model.wait_listed(active_slots=slots)
    queued = model.infer("queued")
    model.wait_queue("infer")
    model.checkpoint.wait_for("open", 2)  # the attempt is past its own step "load"
    model.checkpoint.hold("load")
    model.checkpoint.release("open")
    for call in admitted:
        assert refusal(call) == (500, "load_failed", None)
    model.wait_listed(active_slots=1, queued_requests=0, loaded=False)  # it was granted what the failed ones gave back
    model.checkpoint.unset("open.fail")
    model.checkpoint.release("load")

    assert answer_of(queued).text == "queued"
    assert model.runs() == ["queued"]
    comes_to(model, standing("ready", slots=slots))


@cell("fail.residency_memory")
def test_fail_residency_memory(fresh_server, slots):
    server = fresh_server("residency_limit_1")
    busy, wanted = server.new_model(), server.unregistered_model()
    with busy.checkpoint.held("run"):
        running = busy.infer("running")
        busy.checkpoint.wait_for("run")

        refused = wanted.register()

        assert refusal(refused) == (503, "server_busy", None)
        assert seen(wanted) == standing("unloaded", slots=slots, last_error=last_error(wanted))
        assert wanted.checkpoint.events() == []
        assert refusal(wanted.infer("not now")) == (503, "server_busy", None)
        assert seen(busy) == standing("ready", slots=slots, leases=["infer"])
    assert answer_of(running).text == "running"
    at_work(wanted)  # an idle victim makes room
    assert seen(wanted) == standing("ready", slots=slots)
    comes_to(busy, standing("unloaded", slots=slots))


@cell("fail.residency_memory")
def test_fail_residency_memory_keeps_an_eviction(fresh_server, slots):
    server = fresh_server("residency_limit_1", min_free_memory_mb=1)
    victim, wanted = server.new_model(), server.unregistered_model()
    wanted.checkpoint.set("bytes", NO_MEMORY_HAS_SO_MUCH)
    with victim.checkpoint.held("destroy"):
        refused = wanted.register()
        victim.checkpoint.wait_for("destroy")
        # Retired, and yet not gone: its memory is waited for.
        assert seen(victim) == standing("unloading", slots=slots, leases=["evict"])
        assert seen(wanted) == standing("loading", slots=slots, leases=["load"])

    assert refusal(refused) == (503, "insufficient_memory", None)
    assert seen(wanted) == standing("unloaded", slots=slots, last_error=last_error(wanted))
    assert wanted.checkpoint.events() == []
    victim.wait_state("unloaded")  # for good: the eviction is not undone
    assert steps(victim.checkpoint)[-1] == "closed"
    assert steps(victim.checkpoint).count("load") == 1


@cell("fail.residency_memory")
def test_fail_residency_memory_of_the_engine(server, slots):
    model = server.new_model(loaded=False)
    model.checkpoint.fail("load", "MemoryError")

    assert refusal(model.infer("too much")) == (503, "insufficient_memory", None)

    assert seen(model) == standing("unloaded", slots=slots, last_error=last_error(model))
    nothing_left_open(model.checkpoint)
    model.checkpoint.unset("load.fail")
    at_work(model)
    assert seen(model) == standing("ready", slots=slots)
