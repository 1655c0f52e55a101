"""The cells `state.*`: what a model can be, and what it can become."""

import pytest

from conformance_evidence import steps
from conformance_plugin import cell
from conformance_server import LOAD, answer_of
from conformance_situations import occupy
from conformance_standing import CAPACITY, last_error, seen, standing


@cell("state.unloaded")
def test_state_unloaded(server, slots):
    model = server.new_model(loaded=False)
    entry = model.listed()
    assert (entry["family"], entry["task"], entry["mode"]) == ("controlled", "tts", "offline")  # the metadata is there
    assert seen(model) == standing("unloaded", slots=slots)
    assert len(steps(model.checkpoint, "loaded")) == len(steps(model.checkpoint, "closed")) == 1  # the weights are not
    assert len(steps(model.checkpoint, "open", "clone")) == len(steps(model.checkpoint, "session_closed")) == slots

    assert answer_of(model.infer("next")).text == "next"  # the next inference loads it

    assert seen(model) == standing("ready", slots=slots)
    assert len(steps(model.checkpoint, "load")) == 2


@cell("state.unloaded")
def test_state_unloaded_until_an_explicit_load(server, slots):
    model = server.new_model(loaded=False)

    answer = server.client.call("POST", LOAD, json={"id": model.id})

    assert (answer.status_code, answer.json()) == (200, {"id": model.id, "loaded": True})
    assert seen(model) == standing("ready", slots=slots)
    assert steps(model.checkpoint, "run") == []


@cell("state.unloaded")
def test_state_unloaded_outlives_a_refused_replacement(server, slots):
    model = server.new_model(loaded=False)
    before = model.listed()

    refused = [
        model.register(task="song").result(),
        model.register(path="/nowhere").result(),
        model.register(family="unheard of").result(),
        model.register(slots=CAPACITY + 1).result(),
    ]

    assert [answer.status_code for answer in refused] == [400] * 4
    assert seen(model) == standing("unloaded", slots=slots)
    assert model.listed() == before
    assert answer_of(model.infer("as it was")).revision == "v1"
    assert seen(model) == standing("ready", slots=slots)


@cell("state.loading")
def test_state_loading(server, slots):
    model = server.new_model(loaded=False)
    last_step = "clone" if slots > 1 else "open"
    opened = len(steps(model.checkpoint, last_step))
    with model.checkpoint.held(last_step), model.checkpoint.held("run"):
        calls = [model.infer(f"cold {number}") for number in range(slots)]
        model.checkpoint.wait_for(last_step, opened + 1)
        model.wait_listed(active_slots=slots)
        # All weights and the primary are there, and still nothing is published.
        assert seen(model) == standing("loading", slots=slots, leases=["infer"] * slots)
        assert steps(model.checkpoint, "run", "prepare") == []
        assert len(steps(model.checkpoint, "load")) == 2  # one initialiser for them all
        model.checkpoint.release(last_step)
        model.checkpoint.wait_for("run", slots)
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots)
    assert len({answer_of(call).session for call in calls}) == slots
    assert len(steps(model.checkpoint, "open", "clone")) == 2 * slots
    assert seen(model) == standing("ready", slots=slots)


@cell("state.loading")
def test_state_loading_for_a_registration(server, slots):
    model = server.unregistered_model()
    with model.checkpoint.held("open"):
        registration = model.register()
        model.checkpoint.wait_for("open")
        assert seen(model) == standing("loading", slots=slots, leases=["load"])
    assert registration.ok()["loaded"] is True
    assert seen(model) == standing("ready", slots=slots)


@cell("state.loading")
@pytest.mark.parametrize("step", ["load", "open", "clone"])
def test_state_loading_ends_unloaded_after_a_failure(server, slots, step):
    if step == "clone" and slots == 1:
        step = "open"
    model = server.new_model(loaded=False)
    model.checkpoint.fail(step)
    if slots > 2 and step == "clone":
        model.checkpoint.fail(step, "2 RuntimeError")  # a part of the pool is there

    failed = model.infer("badly").result()

    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "load_failed")
    assert seen(model) == standing("unloaded", slots=slots, last_error=last_error(model))
    assert len(steps(model.checkpoint, "loaded")) == len(steps(model.checkpoint, "closed"))
    model.checkpoint.unset(f"{step}.fail")
    assert answer_of(model.infer("well")).text == "well"
    assert seen(model) == standing("ready", slots=slots)


@cell("state.ready")
def test_state_ready(server, slots):
    model = server.new_model()
    assert seen(model) == standing("ready", slots=slots)  # spare slots alone
    kinds = ["run", "stream", "batch"]
    with model.checkpoint.held("run"), model.checkpoint.held("stream", "streamed"):
        opened = {"run": model.open_infer, "stream": model.open_stream, "batch": model.open_batch}
        calls = []
        for number in range(slots):
            kind = kinds[number % 3]
            calls.append(opened[kind](f"{kind} {number}"))
            model.checkpoint.wait_for("run", text=f"{kind} {number}")
            assert seen(model) == standing("ready", slots=slots, leases=["infer"] * (number + 1))
        waiting = model.infer("waiting")
        model.wait_queue("infer")
        unload = model.unload()
        model.wait_queue("infer", "unload")  # a manager that comes next waits
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer", "unload"])
        assert steps(model.checkpoint, "destroy") == []
        model.checkpoint.hold("destroy")
    for call in calls:
        assert call.head().status == 200
        call.read()
    waiting.ok()
    model.wait_state("unloading")  # it took hold when all had drained
    assert seen(model) == standing("unloading", slots=slots, leases=["unload"])
    model.checkpoint.release("destroy")
    assert unload.ok()["loaded"] is False
    order = steps(model.checkpoint, "ran", "destroy")
    assert order == ["ran"] * (slots + 1) + ["destroy"] * (slots + 1)  # the sessions, then the weights


@cell("state.ready")
def test_state_ready_with_a_stream_and_a_batch_open(server, slots):
    for open_it in ("open_stream", "open_batch"):
        model = server.new_model()
        model.checkpoint.hold("run" if open_it == "open_batch" else "stream")
        call = getattr(model, open_it)("deferred")
        model.checkpoint.wait_for("run" if open_it == "open_batch" else "stream")
        replacement = model.replacement("v2")
        replacement.hold("load")
        manager = model.register(path=str(replacement.path))
        model.wait_queue("load")
        assert seen(model) == standing("ready", slots=slots, leases=["infer"], queue=["load"])
        model.unhold()
        replacement.hold("load")
        call.read()
        model.wait_state("reconfiguring")
        replacement.release("load")
        assert manager.ok()["loaded"] is True
        assert seen(model) == standing("ready", slots=slots)
        assert steps(model.checkpoint)[-1] == "closed"  # the old pool has gone


@cell("state.reconfiguring")
def test_state_reconfiguring(server, slots):
    model = server.new_model()
    replacement = model.replacement("v2")
    replacement.hold("load")
    probed = slots > 1  # the capacity of several slots is asked for before anything is torn down
    with model.checkpoint.held("run"):
        (earlier,) = occupy(model, 1)
        manager = model.register(path=str(replacement.path))
        model.wait_queue("load")  # it waits its turn
        assert seen(model) == standing("ready", slots=slots, leases=["infer"], queue=["load"])
        assert replacement.events() == []
    earlier.ok()
    replacement.wait_for("load")
    assert seen(model) == standing("reconfiguring", slots=slots, leases=["load"], capacity=CAPACITY if probed else None)
    assert len(steps(model.checkpoint, "destroy")) == (0 if probed else 2)  # the old pool stays until the check is over
    replacement.release("load")
    assert manager.ok() == {"id": model.id, "loaded": True}
    assert seen(model) == standing("ready", slots=slots)
    assert answer_of(model.infer("new")).revision == "v2"
    assert len(steps(model.checkpoint, "session_closed")) == slots
    assert len(steps(model.checkpoint, "closed")) == 1


@cell("state.reconfiguring")
def test_state_reconfiguring_commits_the_whole_metadata_before_it_loads(server, slots):
    model = server.new_model()
    model.checkpoint.hold("open")  # the replacement's: another mode over the same folder
    opened = len(steps(model.checkpoint, "open"))
    manager = model.register(mode="streaming", slots=1, busy_timeout_ms=1234)
    model.checkpoint.wait_for("open", opened + 1)

    assert seen(model) == standing("reconfiguring", slots=1, leases=["load"], mode="streaming")
    assert len(steps(model.checkpoint, "closed")) == 1

    model.checkpoint.release("open")
    assert manager.ok()["loaded"] is True
    assert seen(model) == standing("ready", slots=1, mode="streaming")


@cell("state.reconfiguring")
def test_state_reconfiguring_that_fails_before_the_commit_leaves_the_old_state(server, slots):
    model = server.new_model()
    replacement = model.replacement("v2")
    replacement.set("capacity", str(slots))

    refused = model.register(path=str(replacement.path), slots=slots + 1).result()

    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "slots")
    assert seen(model) == standing("ready", slots=slots)
    assert steps(model.checkpoint, "destroy") == []
    assert answer_of(model.infer("old")).revision == "v1"
    assert len(replacement.events("loaded")) == len(replacement.events("closed"))


@cell("state.reconfiguring")
def test_state_reconfiguring_that_fails_after_the_commit_leaves_the_new_metadata_unloaded(server):
    model = server.new_model()
    replacement = model.replacement("v2")
    replacement.fail("load")

    failed = model.register(path=str(replacement.path), slots=1, mode="streaming").result()

    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "load_failed")
    assert seen(model) == standing("unloaded", slots=1, mode="streaming", last_error=last_error(model))
    assert len(steps(model.checkpoint, "closed")) == 1  # the old weights have gone
    replacement.unset("load.fail")
    assert answer_of(model.infer("retry")).revision == "v2"
    assert seen(model) == standing("ready", slots=1, mode="streaming")


@cell("state.unloading")
def test_state_unloading(server, slots):
    model = server.new_model()
    with model.checkpoint.held("destroy"):
        unload = model.unload()
        model.checkpoint.wait_for("destroy")
        # Not loaded any more, and the first session has not even gone.
        assert seen(model) == standing("unloading", slots=slots, leases=["unload"])
        assert steps(model.checkpoint, "session_closed", "closed") == []
        behind = model.infer("behind")
        model.wait_queue("infer")  # the lease is exclusive
        assert seen(model) == standing("unloading", slots=slots, leases=["unload"], queue=["infer"])
        behind_it = model.unload()
        model.wait_queue("infer", "unload")
    assert unload.ok()["loaded"] is False
    assert answer_of(behind).text == "behind"
    assert behind_it.ok()["loaded"] is False
    assert seen(model) == standing("unloaded", slots=slots)
    order = steps(model.checkpoint, "session_closed", "closed", "load")
    assert order == ["load", *(["session_closed"] * slots), "closed"] * 2  # torn down before it was loaded again
