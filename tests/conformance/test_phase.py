"""The cells `phase.*`: what a request owns while it waits, while it runs, and while its answer is under way."""

import pytest

from conformance_binding import ASKED, KINDS, ask, assert_bound, rebindable
from conformance_evidence import assert_unloaded, first, last, loaded, refusal, steps, wait_that_ends
from conformance_plugin import cell
from conformance_server import answer_of, most_of_the_memory
from conformance_situations import cold_model, occupy
from conformance_standing import comes_to, seen, seen_together, standing


@cell("phase.queued")
def test_phase_queued(server, slots):
    model = server.new_model()
    replacement = model.replacement("v2")
    with model.checkpoint.held("run"):
        earlier = occupy(model, slots)
        manager = model.register(path=str(replacement.path))
        model.wait_queue("load")
        queued = model.infer("queued")
        model.wait_queue("load", "infer")
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["load", "infer"])
        assert steps(model.checkpoint, "prepare")[slots:] == []  # no session is its own
    for call in earlier:
        assert answer_of(call).revision == "v1"
    assert manager.ok() == loaded(model)
    assert answer_of(queued).revision == "v2"  # it was bound to nothing while it waited
    assert seen(model) == standing("ready", slots=slots)


@cell("phase.queued")
def test_phase_queued_in_the_order_of_arrival(server, slots):
    model = server.new_model()
    texts = [f"queued {number}" for number in range(3)]
    with model.checkpoint.held("run"):
        earlier = occupy(model, slots)
        queued = []
        for number, text in enumerate(texts, start=1):
            queued.append(model.infer(text))
            model.wait_queue(*["infer"] * number)
        for text in [*(f"earlier {number}" for number in range(1, slots)), *texts]:
            model.checkpoint.hold("run", text)
    # One slot comes free, again and again, and each time it is the next one's.
    for number, text in enumerate(texts, start=1):
        model.checkpoint.wait_for("run", text=text)
        left = ["infer"] * (len(texts) - number)
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=left))
        assert model.runs()[slots:] == texts[:number]
        assert model.checkpoint.events("prepare", text)[0].session == model.checkpoint.events("run", text)[0].session
        model.checkpoint.release("run", text)
    model.unhold()
    for call in (*earlier, *queued):
        call.ok()
    assert seen(model) == standing("ready", slots=slots)


@cell("phase.queued")
@pytest.mark.parametrize("kind", KINDS)
def test_phase_queued_is_bound_to_no_configuration(server, slots, kind):
    """Queued while the old model still works, and admitted under the registration that came in between."""
    model, replacement, registration = rebindable(server)
    with model.checkpoint.held("run"):
        earlier = occupy(model, slots)
        manager = model.register(**registration)
        model.wait_queue("load")
        queued = ask(model, kind)
        queue = ["load", *["infer"] * len(ASKED)]
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=queue))
        assert len(model.checkpoint.events("prepare")) == slots

    assert {answer_of(call).revision for call in earlier} == {"v1"}
    assert manager.ok() == loaded(model)
    assert_bound(queued, replacement, new=True)
    comes_to(model, standing("ready", slots=slots))


@cell("phase.queued")
def test_phase_queued_ends_with_its_timeout(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        earlier = occupy(model, slots)
        patient = model.infer("patient")
        model.wait_queue("infer")
        wait_that_ends(lambda bound_ms: model.infer("bounded", busy_timeout_ms=bound_ms))
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"])
    for call in (*earlier, patient):
        call.ok()
    assert "bounded" not in model.runs()
    assert seen(model) == standing("ready", slots=slots)


@cell("phase.queued")
def test_phase_queued_ends_with_its_client(server, slots):
    """`exceeds`: an inference request leaves the queue at once, and a manager goes on."""
    model = server.new_model()
    with model.checkpoint.held("run"):
        earlier = occupy(model, slots)
        leaving = model.open_infer("leaving")
        model.wait_queue("infer")
        manager = server.client.open("POST", "/v1/models/unload", json={"id": model.id})
        model.wait_queue("infer", "unload")
        later = model.infer("later")
        model.wait_queue("infer", "unload", "infer")
        leaving.cut()
        model.wait_queue("unload", "infer")  # while all slots are still taken
        manager.cut()
        model.checkpoint.hold("destroy")
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["unload", "infer"])
    for call in earlier:
        call.ok()
    model.wait_state("unloading")  # the manager went on
    model.checkpoint.release("destroy")
    assert answer_of(later).text == "later"
    assert "leaving" not in model.runs()
    assert seen(model) == standing("ready", slots=slots)


@cell("phase.admitted")
def test_phase_admitted(server, slots):
    model = server.new_model(loaded=False)
    with model.checkpoint.held("load"):
        cold = [model.infer(f"cold {number}") for number in range(slots)]
        model.wait_listed(active_slots=slots)
        behind = model.infer("behind")
        model.wait_queue("infer")
        model.checkpoint.wait_for("load", 2)
        assert seen(model) == standing("loading", slots=slots, leases=["infer"] * slots, queue=["infer"])
        assert steps(model.checkpoint, "prepare", "run") == []  # they are active, and no inference has begun
    for call in (*cold, behind):
        call.ok()
    assert len(steps(model.checkpoint, "load")) == 2  # one initialiser for them all
    order = steps(model.checkpoint)
    published = max(at for at, step in enumerate(order) if step in {"open", "clone"})
    assert all(at > published for at, step in enumerate(order) if step in {"prepare", "run"})
    assert seen(model) == standing("ready", slots=slots)


@cell("phase.admitted")
def test_phase_admitted_while_guarded_loads_take_turns(shared_server, slots):
    server = shared_server("load_guard")
    a, b = (cold_model(server, claimed_bytes=most_of_the_memory()) for _ in range(2))
    with a.checkpoint.held("load"):
        first = a.infer("first")
        a.checkpoint.wait_for("load")
        second = b.infer("second")
        b.wait_state("loading")
        assert seen_together(server, a, b) == [
            standing("loading", slots=slots, leases=["infer"]),
            standing("loading", slots=slots, leases=["infer"]),  # active, though its load has not begun
        ]
        assert b.checkpoint.events() == []
    assert [answer_of(call).text for call in (first, second)] == ["first", "second"]
    assert b.checkpoint.wait_for("load").t > a.checkpoint.wait_for("loaded").t
    assert seen_together(server, a, b) == [standing("ready", slots=slots), standing("ready", slots=slots)]


@cell("phase.executing")
@pytest.mark.parametrize("step", ["prepare", "run"])
def test_phase_executing(server, slots, step):
    model = server.new_model()
    replacement = model.replacement("v2")
    with model.checkpoint.held(step):
        calls = [model.infer(f"own {number}") for number in range(slots)]
        for number in range(slots):
            model.checkpoint.wait_for(step, text=f"own {number}")
        sessions = [event.session for event in model.checkpoint.events(step)]
        assert len(set(sessions)) == slots  # a session for each
        manager = model.register(path=str(replacement.path))
        model.wait_queue("load")
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["load"])
    answers = [answer_of(call) for call in calls]
    assert {(it.revision, it.session) for it in answers} == {("v1", session) for session in sessions}
    assert manager.ok() == loaded(model)
    assert last(model.checkpoint, "ran") < first(model.checkpoint, "destroy")
    assert answer_of(model.infer("after")).revision == "v2"
    assert seen(model) == standing("ready", slots=slots)


@cell("phase.executing")
def test_phase_executing_is_never_interrupted_by_a_busy_timeout(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = [model.infer(f"own {number}", busy_timeout_ms=20) for number in range(slots)]
        for number in range(slots):
            model.checkpoint.wait_for("run", text=f"own {number}")
        barrier = model.unload()
        model.wait_queue("unload")
        assert refusal(model.infer("too late", busy_timeout_ms=20)) == (503, "server_busy", None)
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["unload"])
    assert [answer_of(call).text for call in running] == [f"own {number}" for number in range(slots)]
    assert_unloaded(model, barrier)
    assert seen(model) == standing("unloaded", slots=slots)


@cell("phase.executing")
def test_phase_executing_in_one_session_at_a_time(server, slots):
    """The controlled session refuses two calls at once: had a slot been lent twice, these would not be answered."""
    model = server.new_model()
    calls = [model.infer(f"many {number}") for number in range(4 * slots)]

    assert [answer_of(call).text for call in calls] == [f"many {number}" for number in range(4 * slots)]
    open_in = set()
    for event in model.checkpoint.events():
        if event.step == "run":
            assert event.session not in open_in
            open_in.add(event.session)
        elif event.step == "ran":
            open_in.remove(event.session)
    assert seen(model) == standing("ready", slots=slots)


@cell("phase.deferred")
def test_phase_deferred(server, slots):
    model = server.new_model()
    for step in ("prepare", "stream"):
        model.checkpoint.hold(step, "streamed")
    stream = model.open_stream("streamed")
    model.checkpoint.wait_for("prepare", text="streamed")
    assert seen(model) == standing("ready", slots=slots, leases=["infer"])  # before there is an answer at all
    manager = model.unload()
    model.wait_queue("unload")
    model.checkpoint.release("prepare", "streamed")
    assert stream.head().status == 200
    model.checkpoint.wait_for("stream", text="streamed")
    assert seen(model) == standing("ready", slots=slots, leases=["infer"], queue=["unload"])  # from then to the end
    model.checkpoint.release("stream", "streamed")
    *deltas, done = stream.events()

    assert [it["type"] for it in deltas] == ["task.delta"] * len(deltas)
    assert done["type"] == "task.done"
    assert_unloaded(model, manager)
    order = steps(model.checkpoint, "ran", "reset", "destroy")
    assert order[:3] == ["ran", "reset", "destroy"]  # the manager had the model once the session was fit again
    assert seen(model) == standing("unloaded", slots=slots)


@cell("phase.deferred")
def test_phase_deferred_batch(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run", "second"):
        batch = model.open_batch("first", "second")
        model.checkpoint.wait_for("run", text="second")
        manager = model.unload()
        model.wait_queue("unload")
        one_slot = standing("ready", slots=slots, leases=["infer"], queue=["unload"])
        assert seen(model) == one_slot  # for the whole batch
    events = list(batch.events())
    assert [it["type"] for it in events] == ["task.batch.result", "task.batch.result", "task.batch.done"]
    assert [it["index"] for it in events[:-1]] == [0, 1]
    assert_unloaded(model, manager)
    assert steps(model.checkpoint, "ran", "destroy")[:3] == ["ran", "ran", "destroy"]
    assert seen(model) == standing("unloaded", slots=slots)


@cell("phase.deferred")
@pytest.mark.parametrize("kind", ["stream", "batch"])
def test_phase_deferred_ends_with_a_failure(server, slots, kind):
    model = server.new_model()
    if kind == "stream":
        model.checkpoint.hold("stream")
        model.checkpoint.fail("stream")
        call = model.open_stream("first")
        model.checkpoint.wait_for("stream")
    else:
        model.checkpoint.hold("run", "second")
        model.checkpoint.set("run.fail.second")
        call = model.open_batch("first", "second")
        model.checkpoint.wait_for("run", text="second")
    manager = model.unload()
    model.wait_queue("unload")
    assert seen(model) == standing("ready", slots=slots, leases=["infer"], queue=["unload"])
    model.unhold()

    assert list(call.events())[-1]["type"] == "error"
    assert_unloaded(model, manager)  # the one lease came back, once
    assert seen(model) == standing("unloaded", slots=slots)
    for failing in model.checkpoint.path.glob("*.fail*"):
        failing.unlink()
    assert list(model.open_stream("second").events())[-1]["type"] == "task.done"
    assert answer_of(model.infer("third")).text == "third"


@cell("phase.deferred")
@pytest.mark.parametrize("kind", ["stream", "batch"])
def test_phase_deferred_ends_when_it_is_dropped_unstarted(server, slots, kind):
    model = server.new_model()
    with model.checkpoint.held("prepare"):
        call = model.open_stream("dropped") if kind == "stream" else model.open_batch("dropped", "too")
        model.checkpoint.wait_for("prepare")
        manager = model.unload()
        model.wait_queue("unload")
        call.cut(reset=True)  # there was no byte of an answer
        at_work = standing("ready", slots=slots, leases=["infer"], queue=["unload"])
        assert seen(model) == at_work  # the engine is
    assert_unloaded(model, manager)
    assert seen(model) == standing("unloaded", slots=slots)
    assert answer_of(model.infer("next")).text == "next"


@cell("phase.deferred")
def test_phase_deferred_session_is_reset_before_its_next_use(server, slots):
    model = server.new_model()
    for number in range(slots - 1):  # one slot is left, so that all use the same session
        model.checkpoint.hold("run", f"earlier {number}")
    earlier = occupy(model, slots - 1)
    assert list(model.open_stream("first").events())[-1]["type"] == "task.done"
    with model.checkpoint.held("stream"):
        left = model.open_stream("left")
        model.checkpoint.wait_for("stream", text="left")
        left.cut(reset=True)
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots)  # until the engine is quiescent
        following = model.infer("next")
        model.wait_queue("infer")
    session = answer_of(following).session

    its_own = [it.step for it in model.checkpoint.events() if it.session == session]
    assert [step for step in its_own if step in {"run", "ran", "reset"}] == [
        *("run", "ran", "reset"),
        *("run", "ran", "reset"),
        *("run", "ran"),
    ]
    model.unhold()
    for call in earlier:
        call.ok()
    assert seen(model) == standing("ready", slots=slots)
