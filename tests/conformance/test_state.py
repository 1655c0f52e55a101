"""The cells `state.*`: what a model can be, and what it can become."""

import pytest

from conformance_evidence import error_of, first, last, nothing_left_open, refusal, steps
from conformance_plugin import cell
from conformance_server import LOAD, answer_of
from conformance_situations import cold_model, last_of_load, occupy
from conformance_standing import CAPACITY, comes_to, seen, standing

DESCRIBED = {
    "busy_timeout_ms": 1234,
    "pinned": True,
    "session_options": {"capacity": 4},
    "voice_presets": {"narrator": {"voice": "anna"}},
}
"""Fields of a registration that `standing` does not look at."""


@cell("state.unloaded")
def test_state_unloaded(server, slots):
    model = server.unregistered_model(aliases=[f"{slots} names"], **DESCRIBED)
    model.checkpoint.set("voices", "anna")
    model.checkpoint.set("languages", "en de")
    model.register().ok()
    loaded = model.listed()
    registered = model.registration()
    model.unload().ok()

    unloaded = {"loaded": False, "max_parallel_slots": None}
    assert model.listed() == {**loaded, **unloaded}  # all of the metadata is there
    assert (loaded["aliases"], loaded["voices"], loaded["languages"]) == (
        [f"{slots} names"],
        ["anna", "narrator"],
        ["en", "de"],
    )
    assert model.registration() == registered
    assert registered.items() >= DESCRIBED.items()
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

    registered = model.registration()
    smaller = model.replacement("v2")
    smaller.set("capacity", str(slots))

    refused = [
        model.register(task="song"),
        model.register(path="/nowhere"),
        model.register(family="unheard of"),
        model.register(slots=CAPACITY + 1, mode="streaming"),
        model.register(slots=slots + 1, mode="streaming", path=str(smaller.path)),
    ]

    assert [refusal(call) for call in refused] == [
        (400, None, param) for param in ("task", "path", "family", "slots", "slots")
    ]
    assert seen(model) == standing("unloaded", slots=slots)
    assert (model.listed(), model.registration()) == (before, registered)
    nothing_left_open(smaller)
    assert answer_of(model.infer("as it was")).revision == "v1"
    assert seen(model) == standing("ready", slots=slots)


def begin(operation, server, model):
    """Begin a load of a model that is not loaded: by a request, as it is registered, or by a registration of it."""
    match operation:
        case "request":
            return model.infer("cold")
        case "load":
            return server.client.start("POST", LOAD, json={"id": model.id})
        case _:
            return model.register()


def subject(operation, server):
    """A model to `begin` with: one whose id is known and that is not loaded, or else one with a new id."""
    return server.unregistered_model() if operation == "new id" else cold_model(server)


BEGINNINGS = ["request", "load", "known id", "new id"]


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
@pytest.mark.parametrize("step", ["load", "open", "clone"])
@pytest.mark.parametrize("operation", BEGINNINGS)
def test_state_loading_on_behalf_of(server, slots, operation, step):
    """Whoever began the load holds the lease that it runs under, and no step of it can be seen."""
    model = subject(operation, server)
    if step == "clone" and slots == 1:
        step = "open"
    leases = ["infer" if operation == "request" else "load"]
    with model.checkpoint.held(step):
        call = begin(operation, server, model)
        model.checkpoint.wait_for(step)
        assert seen(model) == standing("loading", slots=slots, leases=leases)

    if operation == "request":
        assert answer_of(call).text == "cold"
    else:
        assert call.ok() == {"id": model.id, "loaded": True}
    assert seen(model) == standing("ready", slots=slots)
    served = ["prepare", "run", "ran"] if operation == "request" else []
    assert steps(model.checkpoint) == ["load", "loaded", "open", *["clone"] * (slots - 1), *served]


@cell("state.loading")
@pytest.mark.parametrize("step", ["load", "open", "clone"])
@pytest.mark.parametrize("operation", BEGINNINGS)
def test_state_loading_ends_unloaded_after_a_failure(server, slots, operation, step):
    model = subject(operation, server)
    if step == "clone" and slots == 1:
        step = "open"
    model.checkpoint.fail(step)
    if slots > 2 and step == "clone":
        model.checkpoint.fail(step, "2 RuntimeError")  # a part of the pool is there

    failed = begin(operation, server, model)

    assert refusal(failed) == (500, "load_failed", None)
    message = error_of(failed)["message"]
    assert seen(model) == standing("unloaded", slots=slots, last_error=message)
    nothing_left_open(model.checkpoint)
    assert steps(model.checkpoint, "prepare", "run") == []
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
@pytest.mark.parametrize("operation", ["unload", "register"])
def test_state_ready_until_the_last_lease_is_back(server, slots, operation):
    model = server.new_model()
    replacement = model.replacement("v2")
    for number in range(slots):
        model.checkpoint.hold("run", f"earlier {number}")
    calls = occupy(model, slots)
    manager = model.unload() if operation == "unload" else model.register(path=str(replacement.path))
    queue = ["unload" if operation == "unload" else "load"]
    for busy in range(slots, 0, -1):  # the lease of the highest slot comes back first
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * busy, queue=queue))
        assert steps(model.checkpoint, "destroy") == replacement.events() == []
        model.checkpoint.release("run", text_in_slot(model, busy - 1))

    assert {answer_of(call).revision for call in calls} == {"v1"}
    assert manager.ok()["loaded"] is (operation == "register")
    assert last(model.checkpoint, "ran") < first(model.checkpoint, "destroy")
    assert seen(model) == standing("ready" if operation == "register" else "unloaded", slots=slots)


def text_in_slot(model, slot):
    """The request that runs in a slot: slots get their sessions in the order in which these are opened."""
    sessions = [event.session for event in model.checkpoint.events() if event.step in {"open", "clone"}]
    return next(event.request for event in model.checkpoint.events("run") if event.session == sessions[slot])


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
def test_state_reconfiguring_in_the_order_of_the_queue(server, slots):
    model = server.new_model()
    replacement = model.replacement("v2")
    with model.checkpoint.held("run"):
        earlier = occupy(model, slots)
        before = model.infer("before")
        model.wait_queue("infer")
        manager = model.register(path=str(replacement.path))
        model.wait_queue("infer", "load")
        behind = model.infer("behind")
        queue = ["infer", "load", "infer"]
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=queue))
        replacement.hold(last_of_load(slots))
    replacement.wait_for(last_of_load(slots))
    comes_to(model, standing("reconfiguring", slots=slots, leases=["load"], queue=["infer"]))
    replacement.release(last_of_load(slots))

    assert {answer_of(call).revision for call in (*earlier, before)} == {"v1"}
    assert manager.ok() == {"id": model.id, "loaded": True}
    assert answer_of(behind).revision == "v2"
    assert seen(model) == standing("ready", slots=slots)


@cell("state.reconfiguring")
def test_state_reconfiguring_commits_the_whole_metadata_before_it_loads(server, slots):
    model = server.unregistered_model(aliases=[f"{slots} old names"], **{**DESCRIBED, "pinned": False})
    model.checkpoint.set("voices", "anna")
    model.register().ok()
    old = model.listed(), model.registration()
    replacement = model.replacement("v2")
    replacement.set("voices", "bert")
    changed = {
        "path": str(replacement.path),
        "mode": "streaming",
        "busy_timeout_ms": 4321,
        "pinned": True,
        "voice_presets": {"narrator": {"voice": "bert"}},
        "aliases": [f"{slots} new names"],
    }
    with model.checkpoint.held("destroy"), replacement.held(last_of_load(slots)):
        manager = model.register(**changed)
        model.checkpoint.wait_for("destroy")  # the old pool goes first
        comes_to(model, standing("reconfiguring", slots=slots, leases=["load"]))
        unloaded = {"loaded": False, "max_parallel_slots": None}
        assert (model.listed(), model.registration()) == ({**old[0], **unloaded}, old[1])
        model.checkpoint.release("destroy")
        replacement.wait_for(last_of_load(slots))
        assert seen(model) == standing("reconfiguring", slots=slots, leases=["load"], mode="streaming")
        committed = model.listed(), model.registration()
        assert len(steps(model.checkpoint, "closed")) == 1

    assert committed[1].items() >= changed.items()
    assert (committed[0]["aliases"], committed[0]["voices"]) == (changed["aliases"], ["bert", "narrator"])
    assert manager.ok() == {"id": model.id, "loaded": True}
    assert seen(model) == standing("ready", slots=slots, mode="streaming")
    assert model.listed() == {**committed[0], "loaded": True, "max_parallel_slots": CAPACITY}
    assert model.registration() == committed[1]


@cell("state.reconfiguring")
def test_state_reconfiguring_that_fails_before_the_commit_leaves_the_old_state(server, slots):
    model = server.new_model()
    replacement = model.replacement("v2")
    replacement.set("capacity", str(slots))
    before = model.listed(), model.registration()

    refused = model.register(path=str(replacement.path), slots=slots + 1, mode="streaming")

    assert refusal(refused) == (400, None, "slots")
    assert seen(model) == standing("ready", slots=slots)
    assert (model.listed(), model.registration()) == before
    assert steps(model.checkpoint, "destroy") == []
    assert answer_of(model.infer("old")).revision == "v1"
    assert len(replacement.events("loaded")) == len(replacement.events("closed"))


@cell("state.reconfiguring")
def test_state_reconfiguring_that_fails_after_the_commit_leaves_the_new_metadata_unloaded(server):
    model = server.new_model()
    replacement = model.replacement("v2")
    replacement.fail("load")

    changed = {"path": str(replacement.path), "slots": 1, "mode": "streaming", "busy_timeout_ms": 4321}
    failed = model.register(**changed)

    assert refusal(failed) == (500, "load_failed", None)
    message = error_of(failed)["message"]
    assert seen(model) == standing("unloaded", slots=1, mode="streaming", last_error=message)
    assert model.registration().items() >= changed.items()
    assert len(steps(model.checkpoint, "closed")) == 1  # the old weights have gone
    nothing_left_open(replacement)
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
