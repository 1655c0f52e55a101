"""The cells `time.*` about waits that end. Ages are read from the server's own status."""

import math

import pytest

from conformance_evidence import error_of
from conformance_plugin import cell
from conformance_server import answer_of
from conformance_situations import occupy
from conformance_standing import comes_to, seen, standing, wait_age

SHORT_MS = 200
"""A wait that is meant to end. The configuration `short_timeout` has it as its default."""
OVERDUE_MS = 3000
"""A wait that is long enough for a test to act within it, and short enough to let an occupant grow older than it."""


def busy(call):
    """Check that the call was refused as busy, and said when to come back; the refusal's words are returned."""
    error = error_of(call)
    assert (call.result().status_code, error["type"], error["code"]) == (503, "server_error", "server_busy")
    return error["message"]


@cell("time.admission_timeout")
@pytest.mark.parametrize(
    ("ceiling", "wish"),
    [
        (None, {"busy_timeout_ms": SHORT_MS}),
        (SHORT_MS, {}),
        (SHORT_MS, {"busy_timeout_ms": 60_000}),
        (SHORT_MS, {"busy_timeout_ms": 0}),
        (60_000, {"busy_timeout_ms": SHORT_MS}),
        (0, {"busy_timeout_ms": SHORT_MS}),
    ],
    ids=[
        "its own",
        "the model's",
        "never above the model's",
        "never unbounded",
        "below the model's",
        "beside no bound",
    ],
)
def test_time_admission_timeout(server, slots, ceiling, wish):
    model = server.new_model(busy_timeout_ms=ceiling)
    with model.checkpoint.held("run"):
        running = occupy(model, slots, "running")

        busy(model.infer("too late", **wish))

        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots)
    assert [answer_of(call).text for call in running] == [f"running {number}" for number in range(slots)]
    assert "too late" not in model.runs()
    comes_to(model, standing("ready", slots=slots))


@cell("time.admission_timeout")
@pytest.mark.parametrize(
    "own",
    [{}, {"busy_timeout_ms": 60_000}, {"busy_timeout_ms": 0}],
    ids=["unasked", "never above it", "never unbounded"],
)
def test_time_admission_timeout_of_the_server(shared_server, slots, own):
    model = shared_server("short_timeout").new_model()
    with model.checkpoint.held("run"):
        running = occupy(model, slots, "running")

        refusals = [model.infer(f"too late {number}", **own) for number in range(2)]

        for refusal in refusals:
            busy(refusal)
        busy(model.unload(params=own))
        busy(model.register(params=own))
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots)
    assert sorted(answer_of(call).text for call in running) == sorted(model.runs())
    comes_to(model, standing("ready", slots=slots))


@cell("time.admission_timeout")
@pytest.mark.parametrize("manager", ["unload", "register"])
def test_time_admission_timeout_of_a_manager(server, slots, manager):
    model = server.new_model()
    before = model.listed()
    with model.checkpoint.held("run"):
        running = occupy(model, slots, "running")

        busy(getattr(model, manager)(params={"busy_timeout_ms": SHORT_MS}))

        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots)
    for call in running:
        answer_of(call)
    comes_to(model, standing("ready", slots=slots))
    assert model.listed() == before
    assert [event.step for event in model.checkpoint.events()].count("load") == 1


@cell("time.admission_timeout")
def test_time_admission_timeout_frees_those_behind(server, slots):
    """An expired request or barrier leaves the order behind it as it was; a barrier no longer bars spare slots."""
    model = server.new_model()
    with model.checkpoint.held("run", "running 0"):
        running = occupy(model, 1, "running")
        barrier = model.unload(params={"busy_timeout_ms": OVERDUE_MS})
        model.wait_queue("unload")
        behind = model.infer("behind")
        model.wait_queue("unload", "infer")

        busy(barrier)

        if slots > 1:
            assert answer_of(behind).text == "behind"  # in a spare slot, while the first still runs
            comes_to(model, standing("ready", slots=slots, leases=["infer"]))
        else:
            comes_to(model, standing("ready", slots=slots, leases=["infer"], queue=["infer"]))
    assert answer_of(running[0]).text == "running 0"
    assert answer_of(behind).text == "behind"
    assert model.runs() == ["running 0", "behind"]
    comes_to(model, standing("ready", slots=slots))


@cell("time.admission_timeout")
def test_time_admission_timeout_says_when_to_come_back(server, slots):
    """Retry-After is the time that the queue will take at the pace that was measured."""
    model = server.new_model()
    model.checkpoint.set("run.ms", "500")
    run_s = model.infer("measured").ok()["timing"]["run_ms"] / 1000
    with model.checkpoint.held("run"):
        occupy(model, slots, "running")
        queued = [model.infer(f"queued {number}") for number in range(8 * slots)]
        model.wait_listed(queued_requests=len(queued))

        refusal = model.infer("too late", busy_timeout_ms=SHORT_MS)

        busy(refusal)
        # Eight rounds, and what is left of the runs under way.
        assert math.floor(8 * run_s) <= int(refusal.result().headers["retry-after"]) <= math.ceil(9 * run_s)
        model.checkpoint.unset("run.ms")


@cell("time.healthy_and_overdue")
def test_time_healthy_and_overdue(server, slots):
    model = server.new_model()
    model.checkpoint.hold("run")
    running = occupy(model, 1, "running")
    wait_age(model, "leases", 0, OVERDUE_MS)
    running += [model.infer(f"healthy {number}") for number in range(slots - 1)]
    model.wait_listed(active_slots=slots)

    waiting = model.infer("waiting", busy_timeout_ms=OVERDUE_MS)

    model.wait_queue("infer")
    assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"])
    model.checkpoint.set("run.hold.running 0")
    model.checkpoint.release("run")
    assert answer_of(waiting).text == "waiting"
    assert [event.request for event in model.checkpoint.events("ran")].count("running 0") == 0
    model.checkpoint.release("run", "running 0")
    for call in running:
        answer_of(call)
    comes_to(model, standing("ready", slots=slots))


@cell("time.healthy_and_overdue")
def test_time_healthy_and_overdue_with_a_manager(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = occupy(model, 1, "running")
        wait_age(model, "leases", 0, OVERDUE_MS)
        running.append(model.infer("healthy"))
        model.wait_listed(active_slots=2)

        manager = model.unload(params={"busy_timeout_ms": OVERDUE_MS})
        model.wait_queue("unload")
        later = model.infer("later")
        model.wait_queue("unload", "infer")  # it passes nobody, with slots to spare or without
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * 2, queue=["unload", "infer"])
    assert manager.ok()["loaded"] is False
    for call in running:
        answer_of(call)
    assert answer_of(later).text == "later"
    events = model.checkpoint.events()
    assert [event.step for event in events].index("closed") < events.index(model.checkpoint.events("run", "later")[0])
    comes_to(model, standing("ready", slots=slots))


@cell("time.healthy_and_overdue")
def test_time_healthy_and_overdue_when_all_are_overdue(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = occupy(model, 1, "running")
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
        assert seen(model) == standing("ready", slots=slots, leases=["infer"], queue=["unload"])
    answer_of(running[0])
    assert manager.ok()["loaded"] is False
    assert model.runs() == ["running 0"]
    comes_to(model, standing("unloaded", slots=slots))


@cell("time.healthy_and_overdue")
def test_time_healthy_and_overdue_leaves_a_spare_slot_to_be_taken(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run", "running 0"):
        running = occupy(model, 1, "running")
        wait_age(model, "leases", 0, SHORT_MS)

        assert answer_of(model.infer("spare", busy_timeout_ms=SHORT_MS)).text == "spare"

        comes_to(model, standing("ready", slots=slots, leases=["infer"]))
    assert answer_of(running[0]).text == "running 0"
    comes_to(model, standing("ready", slots=slots))


@cell("time.timeout_zero")
def test_time_timeout_zero(shared_server, slots):
    """A model's 0 replaces the server's bound; managers, targeted and bulk, wait in the same way."""
    model = shared_server("short_timeout").new_model(busy_timeout_ms=0)
    with model.checkpoint.held("run"):
        running = occupy(model, slots, "running")
        waiting = model.infer("waiting", busy_timeout_ms=0)
        model.wait_queue("infer")
        register = model.register(params={"busy_timeout_ms": 0})
        model.wait_queue("infer", "load")
        stream = model.open_stream("streamed", busy_timeout_ms=0)
        model.wait_queue("infer", "load", "infer")
        unload = model.unload()
        queue = ["infer", "load", "infer", "unload"]
        model.wait_queue(*queue)
        wait_age(model, "queue", 3, 3 * SHORT_MS)
        wait_age(model, "leases", 0, 3 * SHORT_MS)
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=queue)
    for call in running:
        answer_of(call)
    assert answer_of(waiting).text == "waiting"
    assert register.ok() == {"id": model.id, "loaded": True}
    assert list(stream.events())[-1]["type"] == "task.done"
    assert unload.ok()["loaded"] is False
    comes_to(model, standing("unloaded", slots=slots))


@cell("time.timeout_zero")
def test_time_timeout_zero_of_the_server(shared_server, slots):
    model = shared_server("unbounded_wait").new_model()
    with model.checkpoint.held("run"):
        running = occupy(model, slots, "running")
        waiting = model.infer("waiting")
        model.wait_queue("infer")
        wait_age(model, "queue", 0, 2 * SHORT_MS)
        busy(model.infer("bounded", busy_timeout_ms=SHORT_MS))  # a request may still ask for a bound
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"])
    for call in [*running, waiting]:
        answer_of(call)
    assert "bounded" not in model.runs()
    comes_to(model, standing("ready", slots=slots))


@cell("time.timeout_zero")
@pytest.mark.parametrize("everything", [False, True])
def test_time_timeout_zero_of_bulk_unloads(shared_server, fresh_server, slots, everything):
    server = (fresh_server if everything else shared_server)("short_timeout")
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = occupy(model, slots, "running")
        bulk = server.unload_all() if everything else server.bulk_unload(model)
        model.wait_queue("bulk_unload")
        wait_age(model, "queue", 0, 3 * SHORT_MS)
        busy(model.infer("bounded"))
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["bulk_unload"])
    for call in running:
        answer_of(call)
    assert bulk.ok() == {"unloaded": [model.id], "not_found": []}
    comes_to(model, standing("unloaded", slots=slots))


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
    assert seen(model) == standing("loading", slots=slots, leases=["infer"])
    model.checkpoint.release("load")
    model.checkpoint.wait_for("run")
    wait_age(model, "leases", 0, 4 * SHORT_MS)
    assert seen(model) == standing("ready", slots=slots, leases=["infer"])
    model.checkpoint.release("run")
    assert answer_of(call).text == "slow"
    comes_to(model, standing("ready", slots=slots))


@cell("time.timeout_zero")
@pytest.mark.parametrize("timeout_ms", [0, SHORT_MS])
@pytest.mark.parametrize("manager", ["register", "unload"])
def test_time_timeout_zero_bounds_no_managers_work(server, slots, manager, timeout_ms):
    """Once a manager has its lease, its load or its teardown may take longer than any busy timeout."""
    model = server.new_model(loaded=manager == "unload")
    step, state, operation = (
        ("load", "loading", "load") if manager == "register" else ("destroy", "unloading", "unload")
    )
    with model.checkpoint.held(step):
        call = getattr(model, manager)(params={"busy_timeout_ms": timeout_ms})
        model.wait_state(state)
        wait_age(model, "leases", 0, 2 * SHORT_MS)
        assert seen(model) == standing(state, slots=slots, leases=[operation])
    assert call.ok()["loaded"] is (manager == "register")
    comes_to(model, standing("ready" if manager == "register" else "unloaded", slots=slots))
