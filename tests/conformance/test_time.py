"""The cells `time.*`: waits that end, and clients that leave. Ages are read from the server's own status."""

import pytest

from conformance_client import eventually
from conformance_plugin import cell
from conformance_server import UNLOAD, answer_of

SHORT_MS = 200
"""A wait that is meant to end. The configuration `short_timeout` has it as its default."""
OVERDUE_MS = 1500
"""A wait that is long enough for a test to act within it, and short enough to let an occupant grow older than it."""
NOTICED_MS = 100
"""A client that left is noticed in far less."""


def busy(call):
    """Check that the call was refused as busy, and said when to come back; the refusal's words are returned."""
    response = call.result()
    assert response.status_code == 503, f"{response.status_code} {response.text}"
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("server_error", "server_busy")
    assert int(response.headers["retry-after"]) >= 1
    return error["message"]


def fill(model, count):
    """Start so many requests and wait until they run; their steps must be held."""
    calls = [model.infer(f"running {number}") for number in range(count)]
    for number in range(count):
        model.checkpoint.wait_for("run", text=f"running {number}")
    return calls


def wait_age(model, kind, place, age_ms):
    """Wait until the lease or the waiter at this place is older than that."""
    eventually(model.status, lambda it: it[kind][place]["age_ms"] > age_ms, f"an age of {age_ms} ms in {kind}")


def idle(model, *, loaded):
    """Check that nobody holds or waits for anything of the model."""
    status = model.wait_listed(active_slots=0, queued_requests=0, loaded=loaded)
    assert (status["max_parallel_slots"] is not None) == loaded
    assert {"leases": [], "queue": [], "waiting": 0}.items() <= model.status().items()


@cell("time.admission_timeout")
@pytest.mark.parametrize(
    ("ceiling", "wish"),
    [(None, {"busy_timeout_ms": SHORT_MS}), (SHORT_MS, {}), (SHORT_MS, {"busy_timeout_ms": 60_000})],
    ids=["by its own value", "by the model's", "never above the model's"],
)
def test_time_admission_timeout(server, slots, ceiling, wish):
    model = server.new_model(busy_timeout_ms=ceiling)
    with model.checkpoint.held("run"):
        running = fill(model, slots)

        busy(model.infer("too late", **wish))

        status = model.status()
        assert (status["active_slots"], status["queued_requests"], status["queue"]) == (slots, 0, [])
    assert [answer_of(call).text for call in running] == [f"running {number}" for number in range(slots)]
    assert "too late" not in model.runs()
    idle(model, loaded=True)


@cell("time.admission_timeout")
@pytest.mark.parametrize("own", [{}, {"busy_timeout_ms": 60_000}], ids=["unasked", "never above it"])
def test_time_admission_timeout_of_the_server(shared_server, slots, own):
    model = shared_server("short_timeout").new_model()
    with model.checkpoint.held("run"):
        running = fill(model, slots)

        refusals = [model.infer(f"too late {number}", **own) for number in range(2)]

        for refusal in refusals:
            busy(refusal)
        busy(model.unload(params=own))
        busy(model.register(params=own))
        assert model.status()["queue"] == []
    assert sorted(answer_of(call).text for call in running) == sorted(model.runs())
    idle(model, loaded=True)


@cell("time.admission_timeout")
@pytest.mark.parametrize("manager", ["unload", "register"])
def test_time_admission_timeout_of_a_manager(server, slots, manager):
    model = server.new_model()
    before = model.listed()
    with model.checkpoint.held("run"):
        running = fill(model, slots)

        busy(getattr(model, manager)(params={"busy_timeout_ms": SHORT_MS}))

        assert model.status()["queue"] == []
    for call in running:
        answer_of(call)
    idle(model, loaded=True)
    assert model.listed() == before
    assert [event.step for event in model.checkpoint.events()].count("load") == 1


@cell("time.admission_timeout")
def test_time_admission_timeout_frees_those_behind(server, slots):
    """An expired request or barrier leaves the order behind it as it was; a barrier no longer bars spare slots."""
    model = server.new_model()
    with model.checkpoint.held("run", "running 0"):
        running = fill(model, 1)
        barrier = model.unload(params={"busy_timeout_ms": OVERDUE_MS})
        model.wait_queue("unload")
        behind = model.infer("behind")
        model.wait_queue("unload", "infer")

        busy(barrier)

        if slots > 1:
            assert answer_of(behind).text == "behind"  # in a spare slot, while the first still runs
        else:
            model.wait_queue("infer")
    assert answer_of(running[0]).text == "running 0"
    assert answer_of(behind).text == "behind"
    assert model.runs() == ["running 0", "behind"]
    idle(model, loaded=True)


@cell("time.admission_timeout")
def test_time_admission_timeout_says_when_to_come_back(server, slots):
    """Retry-After is the time that the queue will take at the pace that was measured."""
    model = server.new_model()
    model.checkpoint.set("run.ms", "500")
    answer_of(model.infer("measured"))
    with model.checkpoint.held("run"):
        fill(model, slots)
        queued = [model.infer(f"queued {number}") for number in range(8 * slots)]
        model.wait_listed(queued_requests=len(queued))

        refusal = model.infer("too late", busy_timeout_ms=SHORT_MS)

        busy(refusal)
        assert 4 <= int(refusal.result().headers["retry-after"]) <= 7  # eight rounds, and what still runs
        model.checkpoint.unset("run.ms")


@cell("time.healthy_and_overdue")
def test_time_healthy_and_overdue(server, slots):
    model = server.new_model()
    model.checkpoint.hold("run")
    running = fill(model, 1)
    wait_age(model, "leases", 0, OVERDUE_MS)
    running += [model.infer(f"healthy {number}") for number in range(slots - 1)]
    model.wait_listed(active_slots=slots)

    waiting = model.infer("waiting", busy_timeout_ms=OVERDUE_MS)

    model.wait_queue("infer")
    model.checkpoint.set("run.hold.running 0")
    model.checkpoint.release("run")
    assert answer_of(waiting).text == "waiting"
    assert [event.request for event in model.checkpoint.events("ran")].count("running 0") == 0
    model.checkpoint.release("run", "running 0")
    for call in running:
        answer_of(call)
    idle(model, loaded=True)


@cell("time.healthy_and_overdue")
def test_time_healthy_and_overdue_with_a_manager(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = fill(model, 1)
        wait_age(model, "leases", 0, OVERDUE_MS)
        running.append(model.infer("healthy"))
        model.wait_listed(active_slots=2)

        manager = model.unload(params={"busy_timeout_ms": OVERDUE_MS})
        model.wait_queue("unload")
        later = model.infer("later")
        model.wait_queue("unload", "infer")  # it passes nobody, with slots to spare or without
        assert model.status()["active_slots"] == 2
    assert manager.ok()["loaded"] is False
    for call in running:
        answer_of(call)
    assert answer_of(later).text == "later"
    events = model.checkpoint.events()
    assert [event.step for event in events].index("closed") < events.index(model.checkpoint.events("run", "later")[0])
    idle(model, loaded=True)


@cell("time.healthy_and_overdue")
def test_time_healthy_and_overdue_when_all_are_overdue(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = fill(model, 1)
        manager = model.unload()
        model.wait_queue("unload")
        wait_age(model, "leases", 0, SHORT_MS)

        refusals = [
            model.infer("in vain", busy_timeout_ms=SHORT_MS),
            model.unload(params={"busy_timeout_ms": SHORT_MS}),
            model.register(params={"busy_timeout_ms": SHORT_MS}),
        ]

        for refusal in refusals:
            assert "has run for longer than" in busy(refusal)  # at once: not that its time had come
        assert [it["operation"] for it in model.status()["queue"]] == ["unload"]
        assert model.status()["active_slots"] == 1
    answer_of(running[0])
    assert manager.ok()["loaded"] is False
    assert model.runs() == ["running 0"]
    idle(model, loaded=False)


@cell("time.healthy_and_overdue")
def test_time_healthy_and_overdue_leaves_a_spare_slot_to_be_taken(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run", "running 0"):
        running = fill(model, 1)
        wait_age(model, "leases", 0, SHORT_MS)

        assert answer_of(model.infer("spare", busy_timeout_ms=SHORT_MS)).text == "spare"

    answer_of(running[0])


@cell("time.timeout_zero")
def test_time_timeout_zero(shared_server, slots):
    """A model's 0 replaces the server's bound; managers, targeted and bulk, wait in the same way."""
    model = shared_server("short_timeout").new_model(busy_timeout_ms=0)
    with model.checkpoint.held("run"):
        running = fill(model, slots)
        waiting = model.infer("waiting", busy_timeout_ms=0)
        model.wait_queue("infer")
        unload = model.unload()
        model.wait_queue("infer", "unload")
        wait_age(model, "queue", 1, 3 * SHORT_MS)
        assert [it["operation"] for it in model.status()["queue"]] == ["infer", "unload"]
    for call in running:
        answer_of(call)
    assert answer_of(waiting).text == "waiting"
    assert unload.ok()["loaded"] is False
    idle(model, loaded=False)


@cell("time.timeout_zero")
def test_time_timeout_zero_of_the_server(shared_server, slots):
    model = shared_server("unbounded_wait").new_model()
    with model.checkpoint.held("run"):
        running = fill(model, slots)
        waiting = model.infer("waiting")
        model.wait_queue("infer")
        wait_age(model, "queue", 0, 2 * SHORT_MS)
        busy(model.infer("bounded", busy_timeout_ms=SHORT_MS))  # a request may still ask for a bound
        assert [it["operation"] for it in model.status()["queue"]] == ["infer"]
    for call in [*running, waiting]:
        answer_of(call)
    assert "bounded" not in model.runs()


@cell("time.timeout_zero")
@pytest.mark.parametrize("everything", [False, True])
def test_time_timeout_zero_of_bulk_unloads(fresh_server, slots, everything):
    server = fresh_server("short_timeout")
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = fill(model, slots)
        bulk = server.unload_all() if everything else server.bulk_unload(model)
        model.wait_queue("bulk_unload")
        wait_age(model, "queue", 0, 3 * SHORT_MS)
        busy(model.infer("bounded"))
        assert [it["operation"] for it in model.status()["queue"]] == ["bulk_unload"]
    for call in running:
        answer_of(call)
    assert bulk.ok() == {"unloaded": [model.id], "not_found": []}
    idle(model, loaded=False)


@cell("time.timeout_zero")
@pytest.mark.parametrize("timeout_ms", [0, SHORT_MS])
def test_time_timeout_zero_bounds_neither_load_nor_run(server, slots, timeout_ms):
    """Nor does a busy timeout of any other length: it ends with the admission."""
    model = server.new_model(loaded=False)
    for step in ("load", "run"):
        model.checkpoint.hold(step)
    call = model.infer("slow", busy_timeout_ms=timeout_ms)
    model.wait_listed(active_slots=1)
    wait_age(model, "leases", 0, 2 * SHORT_MS)
    model.checkpoint.release("load")
    model.checkpoint.wait_for("run")
    wait_age(model, "leases", 0, 4 * SHORT_MS)
    model.checkpoint.release("run")
    assert answer_of(call).text == "slow"
    idle(model, loaded=True)


@cell("time.disconnect_queued")
@pytest.mark.parametrize("opened", ["open_infer", "open_stream", "open_batch"])
@pytest.mark.parametrize("reset", [False, True])
def test_time_disconnect_queued(server, slots, opened, reset):
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = fill(model, slots)
        leaving = getattr(model, opened)("left")
        model.wait_queue("infer")
        behind = model.infer("behind")
        model.wait_queue("infer", "infer")

        leaving.cut(reset=reset)

        model.wait_queue("infer")  # at once, while nothing has moved
        assert model.status()["active_slots"] == slots
    for call in [*running, behind]:
        answer_of(call)
    assert "left" not in model.runs()
    assert not model.checkpoint.events("prepare", "left")
    idle(model, loaded=True)


@cell("time.disconnect_queued")
def test_time_disconnect_queued_of_a_manager_changes_nothing(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = fill(model, slots)
        leaving = server.client.open("POST", UNLOAD, json={"id": model.id})
        model.wait_queue("unload")
        leaving.cut()
        wait_age(model, "queue", 0, NOTICED_MS)
        behind = model.infer("behind")
        model.wait_queue("unload", "infer")
    for call in [*running, behind]:
        answer_of(call)
    assert [event.step for event in model.checkpoint.events()].count("load") == 2  # what was behind it loaded again


@cell("time.disconnect_queued")
@pytest.mark.parametrize("opened", ["open_infer", "open_stream", "open_batch"])
def test_time_disconnect_queued_for_the_initialisation(server, slots, opened):
    model = server.new_model(loaded=False)
    loads = len(model.checkpoint.events("load"))
    with model.checkpoint.held("load"):
        leaving = [getattr(model, opened)("left") for _ in range(slots)]
        model.wait_listed(active_slots=slots)
        model.checkpoint.wait_for("load", loads + 1)
        wait_age(model, "leases", slots - 1, NOTICED_MS)
        for call in leaving:
            call.cut()
        unload = model.unload()
        model.wait_queue("unload")
        wait_age(model, "queue", 0, NOTICED_MS)
        assert model.status()["active_slots"] == slots  # kept until the attempt has ended
    assert unload.ok()["loaded"] is False
    assert model.runs() == []
    assert not model.checkpoint.events("prepare")
    order = [event.step for event in model.checkpoint.events()]
    assert order[-1] == "closed"
    assert order.count("load") == order.count("loaded") == loads + 1
    idle(model, loaded=False)


@cell("time.disconnect_executing")
@pytest.mark.parametrize("reset", [False, True])
def test_time_disconnect_executing(server, slots, reset):
    model = server.new_model()
    texts = ["left", *(f"healthy {number}" for number in range(slots - 1))]
    for text in texts:
        model.checkpoint.hold("run", text)
    leaving = model.open_infer("left")
    others = [model.infer(text) for text in texts[1:]]
    for text in texts:
        model.checkpoint.wait_for("run", text=text)
    behind = model.infer("behind")
    model.wait_queue("infer")

    leaving.cut(reset=reset)

    wait_age(model, "leases", 0, NOTICED_MS)
    wait_age(model, "queue", 0, NOTICED_MS)
    assert model.status()["active_slots"] == slots  # the engine works on, and keeps its slot
    assert not model.checkpoint.events("ran", "left")
    model.checkpoint.release("run", "left")
    assert answer_of(behind).text == "behind"
    events = model.checkpoint.events()
    assert events.index(model.checkpoint.events("ran", "left")[0]) < events.index(
        model.checkpoint.events("run", "behind")[0]
    )
    for text in texts[1:]:
        model.checkpoint.release("run", text)
    for call in others:
        answer_of(call)
    idle(model, loaded=True)


@cell("time.disconnect_executing")
def test_time_disconnect_executing_an_engine_that_heeds_it(server, slots):
    model = server.new_model()
    model.checkpoint.set("run.cancellable")
    texts = ["left", *(f"healthy {number}" for number in range(slots - 1))]
    for text in texts:
        model.checkpoint.hold("run", text)
    leaving = model.open_infer("left")
    others = [model.infer(text) for text in texts[1:]]
    for text in texts:
        model.checkpoint.wait_for("run", text=text)
    behind = model.infer("behind")
    model.wait_queue("infer")

    leaving.cut()

    assert answer_of(behind).text == "behind"  # nobody took the hold of the one that left
    ran, ran_behind = model.checkpoint.events("ran", "left"), model.checkpoint.events("run", "behind")
    assert ran[0].t <= ran_behind[0].t
    assert ran[0].session == ran_behind[0].session
    for text in texts[1:]:
        model.checkpoint.release("run", text)
    for call in others:
        answer_of(call)
    idle(model, loaded=True)


@cell("time.disconnect_stream")
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("heeds", [False, True])
def test_time_disconnect_stream(server, slots, reset, heeds):
    model = server.new_model()
    if heeds:
        model.checkpoint.set("run.cancellable")
    model.checkpoint.hold("stream")
    leaving = [model.open_stream(f"left {number}") for number in range(slots)]
    for call in leaving:
        assert next(call.events())["type"] == "task.delta"
    manager = model.register()
    model.wait_queue("load")
    behind = model.infer("behind")
    model.wait_queue("load", "infer")

    for call in leaving:
        call.cut(reset=reset)

    if not heeds:
        wait_age(model, "queue", 1, NOTICED_MS)
        assert model.status()["active_slots"] == slots  # the engine is not quiescent
        model.checkpoint.release("stream")
    assert manager.ok()["loaded"] is True
    last = answer_of(behind)
    events = model.checkpoint.events()
    resets = [event.session for event in events if event.step == "reset"]
    assert sorted(resets) == sorted(set(resets))  # each session once
    assert len(resets) == slots
    assert last.session in resets
    ran_behind = events.index(model.checkpoint.events("run", "behind")[0])
    assert max(index for index, event in enumerate(events) if event.step == "reset") < ran_behind
    idle(model, loaded=True)


@cell("time.disconnect_stream")
def test_time_disconnect_stream_of_a_batch(server, slots):
    model = server.new_model()
    model.checkpoint.hold("run", "second")
    leaving = [model.open_batch("first", "second", "third") for _ in range(slots)]
    for call in leaving:
        assert next(call.events())["index"] == 0
    manager = model.unload()
    model.wait_queue("unload")

    for call in leaving:
        call.cut(reset=True)

    wait_age(model, "queue", 0, NOTICED_MS)
    assert model.status()["active_slots"] == slots
    model.checkpoint.release("run", "second")
    assert manager.ok()["loaded"] is False
    assert model.runs().count("second") == slots
    idle(model, loaded=False)


@cell("time.disconnect_stream")
@pytest.mark.parametrize("opened", ["open_stream", "open_batch"])
def test_time_disconnect_stream_that_has_not_started(server, slots, opened):
    model = server.new_model()
    model.checkpoint.hold("prepare")
    leaving = [getattr(model, opened)("left") for _ in range(slots)]
    model.checkpoint.wait_for("prepare", slots)
    manager = model.unload()
    model.wait_queue("unload")
    wait_age(model, "leases", slots - 1, NOTICED_MS)

    for call in leaving:
        call.cut()

    wait_age(model, "queue", 0, NOTICED_MS)
    assert model.status()["active_slots"] == slots
    model.checkpoint.release("prepare")
    assert manager.ok()["loaded"] is False
    idle(model, loaded=False)
    assert answer_of(model.infer("afterwards")).text == "afterwards"
