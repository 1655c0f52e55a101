"""The cells `rule.*`: what holds whatever state a model is in."""

import base64
import json
import subprocess
import sys
from hashlib import sha256

import httpx
import pytest

from antiphon.packages import default_models_root
from antiphon.packages.manifest import InstalledFile, Manifest
from antiphon.runtime.audit import audits
from antiphon.vocabulary.tasks import Mode, Task
from conformance_client import HANG_GUARD_S
from conformance_plugin import cell
from conformance_server import (
    BULK_UNLOAD,
    ISOLATIONS,
    LOAD,
    TASK_BATCH,
    TASK_RUN,
    TASK_STREAM,
    UNLOAD,
    UNLOAD_ALL,
    answer_of,
)
from conformance_standing import CAPACITY, expected, occupy, standing, standings, steps, wait_standing
from server_process import antiphon, error_lines, running_server

SLOT_FIELDS = {"slots", "active_slots", "queued_requests", "max_parallel_slots"}
MODELS_ROOT = "/v1/ui/models_root"
NOTICE = ("experimental", "coverage of lifecycles", "backends is incomplete")


def error_of(answer):
    return answer.json()["error"]


def refused_at_start(folder, config, *flags):
    """The one line that a server leaves with."""
    file = folder / "refused.json"
    file.write_text(json.dumps(config))
    done = antiphon("serve", "--config", str(file), *flags)
    assert done.returncode == 1
    assert done.stderr.splitlines() == error_lines(done.stderr)
    return done.stderr


def controlled(folder, **fields):
    """One model of a configuration."""
    (folder / "v1").mkdir(exist_ok=True)
    return {"id": "m", "family": "controlled", "path": str(folder / "v1"), "task": "tts", "lazy": True, **fields}


# --- The runtime is chosen at the start -------------------------------------------------------------------------------


@cell("rule.default_runtime")
def test_rule_default_runtime(shared_server):
    server = shared_server("serial")
    model = server.new_model()
    with model.checkpoint.held("run"):
        (first,) = occupy(model, 1)
        second = model.infer("second")
        model.wait_queue("infer")  # the guard is busy, so
        assert standing(model) == expected(model, 1, leases=1, queue=["infer"], capacity=None)
        assert SLOT_FIELDS.isdisjoint(model.listed())

    assert [answer_of(call).session for call in (first, second)] == ["s1", "s1"]
    assert steps(model, "open", "clone") == [("open", None)]
    assert standing(model) == expected(model, 1, capacity=None)


@cell("rule.default_rejects_slots")
@pytest.mark.parametrize("slots_field", [1, 2, None], ids=str)
def test_rule_default_rejects_slots(shared_server, slots_field):
    server = shared_server("serial")
    known, unknown = server.new_model(), server.unregistered_model()
    before = standing(known)
    for model in (known, unknown):
        body = {"id": model.id, "family": "controlled", "path": str(model.checkpoint.path), "task": "tts"}
        answer = server.client.call("POST", LOAD, json={**body, "slots": slots_field})
        assert answer.status_code == 400
        assert (error_of(answer)["type"], error_of(answer)["param"]) == ("invalid_request_error", "slots")
        assert "--parallel-jobs" in error_of(answer)["message"]

    assert standing(known) == before == expected(known, 1, capacity=None)
    assert answer_of(known.infer("on")).session == "s1"  # the pool that there was
    assert server.client.call("GET", f"/v1/models/{unknown.id}").status_code == 404


@cell("rule.default_rejects_slots", "command")
@pytest.mark.parametrize("slots_field", [1, None], ids=str)
def test_rule_default_rejects_slots_at_the_start(tmp_path, slots_field):
    said = refused_at_start(tmp_path, {"models": [controlled(tmp_path, slots=slots_field)]})

    assert "slots" in said
    assert "--parallel-jobs" in said


@cell("rule.flag_selects_once")
def test_rule_flag_selects_once(fresh_server, slots):
    server = fresh_server(models={"first": {"slots": 1}})
    model = server.configured_model("first")
    counts = [1, slots, 1]
    for count in counts:
        model.register(slots=count).ok()
        assert standing(model) == expected(model, count)
        assert model.listed().keys() >= SLOT_FIELDS  # as only ParallelServerState reports

    with model.checkpoint.held("run"):
        occupy(model, 1)
        model.infer("second")
        model.wait_listed(active_slots=1, queued_requests=1)
    assert server.process.log.read_text().count("experimental") == 1


@cell("rule.flag_selects_once")
def test_rule_flag_selects_once_and_without_it_no_count_selects_it(shared_server, slots):
    server = shared_server("serial")
    model = server.new_model()

    refused = server.client.call("POST", LOAD, json={"id": model.id, "slots": slots})

    assert refused.status_code == 400
    assert SLOT_FIELDS.isdisjoint(model.listed())


@cell("rule.slot_range")
@pytest.mark.parametrize("wrong", [True, "2", 1.5, 17, 0, -1, None], ids=repr)
def test_rule_slot_range(server, wrong):
    known, unknown = server.new_model(), server.unregistered_model()
    known.checkpoint.set("capacity", "16")
    before = standing(known)
    for model in (known, unknown):
        body = {"id": model.id, "family": "controlled", "path": str(model.checkpoint.path), "task": "tts"}
        answer = server.client.call("POST", LOAD, json={**body, "slots": wrong})
        assert answer.status_code == 400
        assert (error_of(answer)["type"], error_of(answer)["param"]) == ("invalid_request_error", "slots")

    assert standing(known) == before
    assert server.client.call("GET", f"/v1/models/{unknown.id}").status_code == 404


@cell("rule.slot_range")
def test_rule_slot_range_of_a_capable_session(server):
    model = server.unregistered_model()
    model.checkpoint.set("capacity", "16")
    for count in (1, 16):
        model.register(slots=count).ok()
        assert standing(model) == expected(model, count, capacity=16)


@cell("rule.slot_range")
def test_rule_slot_range_ends_at_the_sessions_capacity(server):
    model = server.new_model(slots=CAPACITY)

    answer = model.register(slots=CAPACITY + 1).result()

    assert (answer.status_code, error_of(answer)["param"]) == (400, "slots")
    assert standing(model) == expected(model, CAPACITY)


@cell("rule.slot_range", "command")
@pytest.mark.parametrize("wrong", [True, 17, None], ids=repr)
def test_rule_slot_range_at_the_start(tmp_path, wrong):
    said = refused_at_start(tmp_path, {"models": [controlled(tmp_path, slots=wrong)]}, "--parallel-jobs")

    assert "slots" in said
    assert "1 to 16" in said


@cell("rule.empty_admission_lists")
@pytest.mark.parametrize("device", ["cuda", "vulkan"])
def test_rule_empty_admission_lists(fresh_server, device):
    server = fresh_server(device=device)
    model = server.unregistered_model()
    model.checkpoint.set("capacity", "16")  # whatever its sessions advertise

    refused = model.register(slots=2).result()

    assert (refused.status_code, error_of(refused)["param"]) == (400, "slots")
    model.register(slots=1).ok()
    assert standing(model) == expected(model, 1, capacity=1)
    assert answer_of(model.infer("one")).text == "one"


@cell("rule.empty_admission_lists")
def test_rule_empty_admission_lists_and_a_session_that_cannot_be_cloned(server):
    model = server.unregistered_model()
    model.checkpoint.set("capacity", "1")

    model.register(slots=1).ok()
    refused = model.register(slots=2).result()

    assert (refused.status_code, error_of(refused)["param"]) == (400, "slots")
    assert standing(model) == expected(model, 1, capacity=1)


@cell("rule.empty_admission_lists", "command")
@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_rule_empty_admission_lists_admit_no_real_checkpoint(tmp_path, device):
    """Another family, whose sessions are those of the controlled engine, has one slot all the same."""
    (tmp_path / "stranger.py").write_text(
        "from antiphon.testing.controlled import ControlledAdapter\n\n\n"
        "class Stranger(ControlledAdapter):\n    family = 'stranger'\n"
    )
    file = tmp_path / "server.json"
    model = controlled(tmp_path, family="stranger", slots=2)
    file.write_text(json.dumps({"device": device, "models": [model]}))

    done = antiphon(
        "serve", "--parallel-jobs", "--family", "stranger:Stranger", "--config", str(file),
        env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip

    assert done.returncode == 1
    assert f"stranger on {device} may use 1" in done.stderr


@cell("rule.empty_admission_lists", "unit")
def test_rule_empty_admission_lists_name_no_other_device():
    assert {audit.device for audit in audits()} == {"cpu"}


@cell("rule.startup_notice")
def test_rule_startup_notice(shared_server):
    flagged, plain = (shared_server(name).process.log.read_text() for name in ("default", "serial"))

    assert all(words in flagged for words in NOTICE)
    assert not any(words in plain for words in NOTICE)


# --- Who may manage what ----------------------------------------------------------------------------------------------

MANAGEMENT = {
    ("POST", LOAD),
    ("POST", UNLOAD),
    ("POST", BULK_UNLOAD),
    ("POST", UNLOAD_ALL),
    ("GET", MODELS_ROOT),
    ("POST", MODELS_ROOT),
}
OTHER = {
    ("GET", "/health"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model_id}"),
    ("GET", "/v1/status"),
    ("GET", "/v1/audio/voices"),
    ("POST", "/v1/audio/speech"),
    ("POST", "/v1/audio/transcriptions"),
    ("POST", "/v1/batches/transcriptions"),
    ("POST", TASK_RUN),
    ("POST", TASK_STREAM),
    ("POST", TASK_BATCH),
}


@cell("rule.management_forbidden")
def test_rule_management_forbidden(fresh_server):
    server = fresh_server("no_management", models={"m": {}})
    model = server.configured_model("m")
    assert answer_of(model.infer("first")).session == "s1"
    before = standing(model)
    bodies = ({"id": "m"}, {"id": "unknown"}, {"model_ids": ["m"]}, {"id": "m", "dry_run": True}, {})
    for method, path in sorted(MANAGEMENT):
        for body in bodies:
            answer = server.client.call(method, path, json=body)
            assert (answer.status_code, error_of(answer)["type"]) == (403, "permission_error"), (method, path, body)
        unread = server.client.call(method, path, content=b"{", headers={"content-type": "text/plain"})
        assert unread.status_code == 403  # decided before the body is looked at

    assert standing(model) == before
    assert answer_of(model.infer("second")).session == "s1"
    assert [step for step, _ in steps(model, "load", "destroy")] == ["load"]


@cell("rule.management_forbidden")
def test_rule_management_forbidden_knows_every_route(server):
    paths = server.client.call("GET", "/openapi.json").json()["paths"]

    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert routes - OTHER == MANAGEMENT  # a route that is added belongs to one or the other


@cell("rule.unknown_target")
def test_rule_unknown_target(server):
    model = server.new_model()
    request = {"text": "nobody"}
    calls = [
        ("GET", "/v1/models/unknown", None),
        ("GET", "/v1/audio/voices?model=unknown", None),
        ("POST", UNLOAD, {"id": "unknown"}),
        ("POST", UNLOAD, {"id": "unknown", "dry_run": True}),
        ("POST", TASK_RUN, {"model": "unknown", "request": request}),
        ("POST", TASK_STREAM, {"model": "unknown", "request": request}),
        ("POST", TASK_BATCH, {"model": "unknown", "requests": [request]}),
        ("POST", "/v1/audio/speech", {"model": "unknown", "input": "nobody"}),
    ]
    for method, path, body in calls:
        answer = server.client.call(method, path, json=body)
        assert (answer.status_code, error_of(answer)["type"]) == (404, "not_found_error"), (method, path)

    told = server.bulk_unload("unknown", model, "another", "unknown").ok()
    assert told == {"unloaded": [model.id], "not_found": ["unknown", "another"]}
    assert standing(model) == expected(model, server.slots, "unloaded")


# --- Status -----------------------------------------------------------------------------------------------------------


def listed_slots(server, model):
    """What `/v1/models` reports; both of its routes must agree."""
    (entry,) = [it for it in server.client.call("GET", "/v1/models").json()["data"] if it["id"] == model.id]
    assert entry == model.listed()
    return entry["loaded"], *(entry[name] for name in sorted(SLOT_FIELDS))


@cell("rule.status_fields")
def test_rule_status_fields(server, slots):
    """The tuples: loaded, active_slots, max_parallel_slots, queued_requests, slots."""
    model = server.new_model(loaded=False)
    assert listed_slots(server, model) == (False, 0, None, 0, slots)
    with model.checkpoint.held("load"), model.checkpoint.held("run"):
        first = model.infer("first")
        model.wait_state("loading")
        assert listed_slots(server, model) == (False, 1, None, 0, slots)
        model.checkpoint.release("load")
        others = occupy(model, slots - 1)
        model.checkpoint.wait_for("run", slots)
        assert listed_slots(server, model) == (True, slots, CAPACITY, 0, slots)
        waiting = [model.infer("third"), model.infer("fourth")]
        model.wait_queue("infer", "infer")
        unload = model.unload()
        model.wait_queue("infer", "infer", "unload")  # a manager is no request
        assert listed_slots(server, model) == (True, slots, CAPACITY, 2, slots)
        model.checkpoint.hold("destroy")
    for call in (first, *others, *waiting):
        call.ok()
    model.wait_state("unloading")
    assert listed_slots(server, model) == (False, 0, None, 0, slots)
    model.checkpoint.release("destroy")
    unload.ok()
    assert listed_slots(server, model) == (False, 0, None, 0, slots)


@cell("rule.status_observes")
def test_rule_status_observes(server, slots):
    model = server.new_model(loaded=False)
    before = len(model.checkpoint.events())
    for path in ("/v1/status", "/v1/models", f"/v1/models/{model.id}", f"/v1/audio/voices?model={model.id}", "/health"):
        assert server.client.call("GET", path).status_code == 200
    assert standing(model) == expected(model, slots, "unloaded")
    assert len(model.checkpoint.events()) == before  # nothing was loaded

    with model.checkpoint.held("run"):
        running = occupy(model, slots)
        later = model.infer("later")
        model.wait_queue("infer")
        unload = model.unload()
        model.wait_queue("infer", "unload")
        for _ in range(3):  # it neither takes a place nor moves the queue
            assert standing(model) == expected(model, slots, leases=slots, queue=["infer", "unload"])
    for call in (*running, later, unload):
        call.ok()
    assert standing(model) == expected(model, slots, "unloaded")


@cell("rule.status_observes")
def test_rule_status_observes_all_models_at_one_moment(server, slots):
    """`exceeds`: the queue in order, what each waiter waits for, its age and estimate; one snapshot of all models."""
    one, other = server.new_model(), server.new_model()
    answer_of(one.infer("measured"))  # estimates need a run
    with one.checkpoint.held("run"), other.checkpoint.held("run"):
        calls = [*occupy(one, slots), *occupy(other, slots)]
        barriers = server.bulk_unload(one, other)
        one.wait_queue("bulk_unload")
        calls.append(one.infer("behind"))
        one.wait_queue("bulk_unload", "infer")
        assert standings(server, one, other) == [
            expected(one, slots, leases=slots, queue=["bulk_unload", "infer"]),
            expected(other, slots, leases=slots, queue=["bulk_unload"]),
        ]
        first, second = one.status(), one.status()
        for queue in (first["queue"], second["queue"]):
            assert all(isinstance(it["age_ms"], int) and isinstance(it["estimate_ms"], int) for it in queue)
            assert queue[0]["age_ms"] >= queue[1]["age_ms"] >= 0
        for earlier, later in zip(first["leases"], second["leases"], strict=True):
            assert 0 <= earlier["age_ms"] <= later["age_ms"]
    assert barriers.ok()["unloaded"] == [one.id, other.id]
    for call in calls:
        call.ok()


# --- Leases -----------------------------------------------------------------------------------------------------------


@cell("rule.fifo_at_entry")
def test_rule_fifo_at_entry(server, slots):
    model = server.new_model()
    texts = [f"earlier {number}" for number in range(slots)]
    for text in texts:
        model.checkpoint.hold("run", text)
    earlier = occupy(model, slots)
    body = json.dumps({"model": model.id, "request": {"text": "sent first"}}).encode()
    head = f"POST {TASK_RUN} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    with server.client.connect() as socket:
        socket.sendall(head.encode() + body[:-1])
        entered_first = model.infer("entered first")
        model.wait_queue("infer")
        socket.sendall(body[-1:])
        model.wait_queue("infer", "infer")
        model.checkpoint.release("run", texts[0])  # one slot serves both, one after the other
        assert answer_of(entered_first).text == "entered first"
        assert socket.recv(64).startswith(b"HTTP/1.1 200")
    for text in texts[1:]:
        model.checkpoint.release("run", text)
    for call in earlier:
        call.ok()
    assert model.runs()[slots:] == ["entered first", "sent first"]
    assert standing(model) == expected(model, slots)


@cell("rule.lease_release")
@pytest.mark.parametrize("step", ["none", "prepare", "run", "stream", "batch", "reset", "input"])
def test_rule_lease_release(server, slots, step):
    model = server.new_model()
    checkpoint = model.checkpoint
    match step:
        case "none":
            assert answer_of(model.infer("well")).text == "well"
        case "prepare" | "run":
            checkpoint.fail(step)
            assert model.infer("badly").result().status_code == 500
            checkpoint.unset(f"{step}.fail")
        case "stream":
            checkpoint.fail("stream")
            assert [it["type"] for it in model.open_stream("badly").events()][-1] == "error"
            checkpoint.unset("stream.fail")
        case "batch":
            checkpoint.set("run.fail.second", "RuntimeError")
            events = list(model.open_batch("first", "second").events())
            assert [it["type"] for it in events] == ["task.batch.result", "error"]
        case "reset":
            checkpoint.fail("reset")
            list(model.open_stream("well").events())
            checkpoint.unset("reset.fail")
        case _:
            assert model.infer("").result().status_code == 400
    wait_standing(model, expected(model, slots))

    with checkpoint.held("run"):  # every slot can be leased again
        again = occupy(model, slots, "again")
        assert standing(model) == expected(model, slots, leases=slots)
    assert {answer_of(call).text for call in again} == {f"again {number}" for number in range(slots)}
    assert model.unload().ok()["loaded"] is False  # and the whole model


@cell("rule.lease_release")
@pytest.mark.parametrize("fault", ["none", "refused", "load.fail", "session.null", "destroy.fail"])
def test_rule_lease_release_of_a_manager(server, slots, fault):
    model = server.new_model()
    replacement = model.replacement("v2")
    match fault:
        case "none":
            model.register(path=str(replacement.path)).ok()
        case "refused":
            assert model.register(slots=CAPACITY + 1).result().status_code == 400
        case "destroy.fail":
            model.checkpoint.set(fault)
            model.unload().ok()
        case _:
            replacement.set(fault)
            assert model.register(path=str(replacement.path)).result().status_code == 500
            replacement.unset(fault)
    after = standing(model)
    assert (after["leases"], after["queue"]) == ([], [])
    assert answer_of(model.infer("on")).text == "on"
    assert model.unload().ok()["loaded"] is False
    assert standing(model)["leases"] == []


@cell("rule.bulk_two_phase")
def test_rule_bulk_two_phase(server, slots):
    busy, also_busy, idle, unnamed = (server.new_model() for _ in range(4))
    with busy.checkpoint.held("run"), also_busy.checkpoint.held("run"):
        earlier = [*occupy(busy, 1), *occupy(also_busy, 1)]
        bulk = server.bulk_unload(busy, idle, also_busy)
        wait_standing(idle, expected(idle, slots, "unloaded"))  # before the call waits for anyone
        assert standings(server, busy, also_busy, idle, unnamed) == [
            expected(busy, slots, leases=1, queue=["bulk_unload"]),
            expected(also_busy, slots, leases=1, queue=["bulk_unload"]),  # all were published
            expected(idle, slots, "unloaded"),
            expected(unnamed, slots),
        ]
        # Nothing shared is held meanwhile: registration, another bulk call and the model that was freed go on.
        assert server.new_model().listed()["loaded"] is True
        assert server.bulk_unload(unnamed, idle).ok() == {"unloaded": [unnamed.id, idle.id], "not_found": []}
        assert answer_of(idle.infer("again")).text == "again"
        assert not bulk.has_ended()
        also_busy.checkpoint.release("run")  # each follows as soon as its own barrier is granted
        wait_standing(also_busy, expected(also_busy, slots, "unloaded"))
        assert standing(busy) == expected(busy, slots, leases=1, queue=["bulk_unload"])
    assert bulk.ok() == {"unloaded": [busy.id, idle.id, also_busy.id], "not_found": []}
    for call in earlier:
        call.ok()
    assert standings(server, busy, also_busy, idle) == [
        expected(busy, slots, "unloaded"),
        expected(also_busy, slots, "unloaded"),
        expected(idle, slots),  # what came after the barrier stays
    ]


@cell("rule.retire_try_acquire")
def test_rule_retire_try_acquire(fresh_server, slots):
    server = fresh_server("residency_limit_1", models={"a": {"slots": slots}, "b": {"slots": slots}})
    a, b = server.configured_model("a"), server.configured_model("b")
    with a.checkpoint.held("run"):
        (running,) = occupy(a, 1)
        refused = b.infer("no room").result()
        assert (refused.status_code, error_of(refused)["code"]) == (503, "server_busy")
        assert standing(a) == expected(a, slots, leases=1)  # nobody queued for it
    running.ok()
    assert standing(b)["leases"] == []

    assert answer_of(b.infer("room")).text == "room"

    wait_standing(a, expected(a, slots, "unloaded"))
    assert standing(b) == expected(b, slots)


@cell("rule.retire_try_acquire")
def test_rule_retire_try_acquire_when_idle_for_long(fresh_server, slots):
    models = {name: {"slots": slots} for name in ("busy", "idle")}
    server = fresh_server("idle_unload", models=models)
    busy, idle = server.configured_model("busy"), server.configured_model("idle")
    with busy.checkpoint.held("run"):
        (running,) = occupy(busy, 1)
        idle.infer("once").ok()
        idle.checkpoint.wait_for("closed")  # its time came, and the other one's too if it had been idle
        assert standing(busy) == expected(busy, slots, leases=1)
    running.ok()
    busy.checkpoint.wait_for("closed")  # counted from the end of its lease
    wait_standing(busy, expected(busy, slots, "unloaded"))


# --- New registrations ------------------------------------------------------------------------------------------------


@cell("rule.new_registration")
def test_rule_new_registration(server, slots):
    model = server.unregistered_model()
    model.checkpoint.fail("inspect", "ConfigError")
    assert model.register().result().status_code == 400
    assert server.client.call("GET", f"/v1/models/{model.id}").status_code == 404  # it was validated privately
    assert model.checkpoint.events() == []
    model.checkpoint.unset("inspect.fail")

    with model.checkpoint.held("load"):
        registration = model.register()
        model.checkpoint.wait_for("load")
        assert standing(model) == expected(model, slots, "loading", leases="load")
        request = model.infer("behind")
        model.wait_queue("infer")  # it was published with its lease taken: nobody barges into the first load
        assert standing(model) == expected(model, slots, "loading", leases="load", queue=["infer"])
        ids = [it["id"] for it in server.client.call("GET", "/v1/models").json()["data"]]
        assert ids.count(model.id) == 1

    assert registration.ok() == {"id": model.id, "loaded": True}
    assert answer_of(request).text == "behind"
    assert standing(model) == expected(model, slots)
    assert len(steps(model, "load")) == 1


@cell("rule.concurrent_registration")
def test_rule_concurrent_registration(server, slots):
    model = server.unregistered_model()
    replacement = model.replacement("v2")
    with model.checkpoint.held("load"):
        first = model.register()
        model.checkpoint.wait_for("load")
        second = model.register(path=str(replacement.path))
        model.wait_queue("load")
        assert standing(model) == expected(model, slots, "loading", leases="load", queue=["load"])
        other = server.new_model()  # meanwhile, to the end
        assert standing(other) == expected(other, slots)
        assert standing(model) == expected(model, slots, "loading", leases="load", queue=["load"])

    assert [call.ok()["loaded"] for call in (first, second)] == [True, True]
    assert answer_of(model.infer("now")).revision == "v2"
    assert model.checkpoint.wait_for("closed").t < replacement.wait_for("run").t
    assert standing(model) == expected(model, slots)


@cell("rule.concurrent_registration")
def test_rule_concurrent_registration_while_both_are_validated(server, slots):
    model = server.unregistered_model()
    with model.checkpoint.held("inspect"):
        both = [model.register(), model.register()]
        assert server.client.call("GET", f"/v1/models/{model.id}").status_code == 404
        other = server.new_model()
    assert [call.ok() for call in both] == [{"id": model.id, "loaded": True}] * 2
    ids = [it["id"] for it in server.client.call("GET", "/v1/models").json()["data"]]
    assert (ids.count(model.id), len(steps(model, "load"))) == (1, 1)  # the second found the first one's pool
    assert standings(server, model, other) == [expected(model, slots), expected(other, slots)]


@cell("rule.first_load_failure")
def test_rule_first_load_failure(server, slots):
    model = server.unregistered_model()
    model.checkpoint.hold("load")
    model.checkpoint.fail("load")
    registration = model.register()
    model.checkpoint.wait_for("load")
    behind = model.infer("behind")
    model.wait_queue("infer")
    model.checkpoint.release("load")

    assert (registration.result().status_code, error_of(registration.result())["code"]) == (500, "load_failed")
    assert (behind.result().status_code, error_of(behind.result())["code"]) == (500, "load_failed")  # it tried again
    assert len(steps(model, "load")) == 2
    left = standing(model)
    assert left == expected(model, slots, "unloaded", last_error=left["last_error"])
    assert left["last_error"]

    model.checkpoint.unset("load.fail")
    assert answer_of(model.infer("again")).text == "again"
    assert standing(model) == expected(model, slots)


@cell("rule.unsupported_new_count")
def test_rule_unsupported_new_count(server, slots):
    model = server.unregistered_model()
    model.checkpoint.set("capacity", str(slots))

    refused = model.register(slots=slots + 1).result()

    assert (refused.status_code, error_of(refused)["type"]) == (400, "invalid_request_error")
    assert error_of(refused)["param"] == "slots"
    left = standing(model)
    assert left == expected(model, slots + 1, "unloaded", last_error=left["last_error"])
    assert model.infer("too many").result().status_code == 500
    assert standing(model) == expected(model, slots + 1, "unloaded", last_error=left["last_error"])
    assert steps(model, "run") == []
    assert len(steps(model, "open", "clone")) == len(steps(model, "session_closed"))  # no part of a pool is left
    assert len(steps(model, "loaded")) == len(steps(model, "closed"))

    model.register(slots=slots).ok()
    assert standing(model) == expected(model, slots, capacity=slots)
    assert answer_of(model.infer("corrected")).text == "corrected"


# --- One slot, and no server at all -----------------------------------------------------------------------------------

SENTENCE = "We will walk to the river."


def spoken(client):
    """Speech as a file, and as the answer of the task route without its timing."""
    file = client.post("/v1/audio/speech", json={"model": "tts", "input": SENTENCE, "seed": 7})
    task = client.post(TASK_RUN, json={"model": "tts", "request": {"text": SENTENCE, "seed": 7}})
    assert (file.status_code, task.status_code) == (200, 200)
    return file.content, file.headers["content-type"], without_timing(task)


def heard(client, file):
    """The words, the transcript with all times, and the answer of the task route."""
    form = {"model": "asr", "language": "en", "response_format": "verbose_json"}
    form["timestamp_granularities[]"] = ["word", "segment"]
    transcript = client.post("/v1/audio/transcriptions", data=form, files={"file": ("speech.wav", file)})
    request = {"audio": base64.b64encode(file).decode(), "language": "en"}
    task = client.post(TASK_RUN, json={"model": "asr", "request": request})
    assert (transcript.status_code, task.status_code) == (200, 200)
    return transcript.json()["text"], without_timing(transcript), without_timing(task)


def without_timing(answer):
    """The bytes of a JSON answer but for its top-level timing."""
    content = answer.json()
    timing = json.dumps(content.pop("timing"), separators=(",", ":")).encode()
    assert answer.content.count(timing) == 1
    return answer.content.replace(timing, b"null")


def all_answers(folder, isolation, flags, slots_field):
    """What one server answers: cold, warm, warm again, and after unload and reload."""
    root = default_models_root()
    packages = {"tts": ("piper", root / "piper-en-joe"), "asr": ("whisper", root / "whisper-tiny-en")}
    assert all(path.is_dir() for _, path in packages.values()), "antiphon models install piper-en-joe whisper-tiny-en"
    models = [
        {"id": task, "family": family, "task": task, "path": str(path), "threads": 1, **slots_field}
        for task, (family, path) in packages.items()
    ]
    config = {"models": models, "lazy_load": True, "ui_management": True, **ISOLATIONS[isolation]}
    rounds = {}
    with (
        running_server(folder, config, *flags) as process,
        httpx.Client(base_url=process.url, timeout=2 * HANG_GUARD_S) as client,
    ):
        for label in ("cold", "warm", "warm again", "reloaded"):
            if label == "reloaded":
                for model_id in packages:
                    assert client.post(UNLOAD, json={"id": model_id}).json() == {"id": model_id, "loaded": False}
                    assert client.get(f"/v1/models/{model_id}").json()["loaded"] is False
                    assert client.post(LOAD, json={"id": model_id}).json() == {"id": model_id, "loaded": True}
            speech = spoken(client)
            rounds[label] = *speech, *heard(client, speech[0])
    return rounds


@pytest.mark.engine
@cell("rule.capacity_one_parity")
def test_rule_capacity_one_parity(tmp_path, isolation):
    serial = all_answers(tmp_path / "serial", isolation, [], {})
    omitted = all_answers(tmp_path / "omitted", isolation, ["--parallel-jobs"], {})
    one = all_answers(tmp_path / "one", isolation, ["--parallel-jobs"], {"slots": 1})

    cold = serial["cold"]
    assert "river" in cold[3]
    differing = [
        f"{server}, {label}"
        for server, rounds in {"serial": serial, "omitted": omitted, "one": one}.items()
        for label, answers in rounds.items()
        if answers != cold
    ]
    assert differing == []


SABOTAGE = """
import sys
from antiphon.runtime.parallel import ParallelServerState

def trip(self, ports):
    print("the parallel runtime was made", file=sys.stderr)
    raise SystemExit(77)

ParallelServerState.__init__ = trip
from antiphon.cli import main
sys.argv[0] = "antiphon"
main()
"""


def sabotaged(*arguments, cwd):
    """Run a command in which the parallel runtime cannot be made."""
    command = [sys.executable, "-c", SABOTAGE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=HANG_GUARD_S, check=False)


@cell("rule.cli_unchanged", "command")
@pytest.mark.parametrize("arguments", [("say", "hello"), ("transcribe", "a.wav")], ids=lambda it: it[0])
def test_rule_cli_unchanged(tmp_path, arguments):
    assert "slot" not in antiphon(arguments[0], "--help", env={"COLUMNS": "200"}).stdout.lower()
    for option in ("--slots=2", "--parallel-jobs"):
        done = antiphon(*arguments, option, cwd=tmp_path)
        assert done.returncode == 2
        assert "No such option" in done.stderr


@cell("rule.cli_unchanged", "command")
def test_rule_cli_unchanged_without_the_parallel_runtime(tmp_path):
    root = ("--models-root", str(tmp_path))
    for task in (Task.TTS, Task.ASR):
        package = tmp_path / task
        package.mkdir()
        file = InstalledFile("revision", sha256(b"").hexdigest(), 0)
        (package / file.path).touch()
        sources = ("https://example.org/",)
        Manifest(str(task), "controlled", task, Mode.OFFLINE, "MIT", sources, (file,)).write(package)

    said = sabotaged("say", "hello", "-o", "hello.wav", *root, cwd=tmp_path)
    heard_it = sabotaged("transcribe", "hello.wav", "--prompt", "hello", *root, cwd=tmp_path)
    served = sabotaged("serve", "--parallel-jobs", *root, cwd=tmp_path)

    assert (said.returncode, said.stderr) == (0, "")
    assert (heard_it.returncode, heard_it.stdout) == (0, "asr|s1|hello\n")
    assert served.returncode == 77  # the sabotage works
