"""`dry_run: true`: what a management call would wait for, evict and free; the real call then does just that."""

import pytest

from conformance_server import BULK_UNLOAD, LOAD, UNLOAD, UNLOAD_ALL, answer_of

MODELS_ROOT = "/v1/ui/models_root"


def told(server, route, **body):
    """A dry run's answer."""
    return server.client.start("POST", route, json={**body, "dry_run": True}).ok()


def told_of_load(model, **fields):
    return model.register(dry_run=True, **fields).ok()


def step_count(model, step):
    return sum(len(checkpoint.events(step)) for checkpoint in model.checkpoints)


@pytest.fixture
def occupied(server, slots):
    """A model of which every slot runs, with two requests waiting, and what lets them go."""
    model = server.new_model()
    model.checkpoint.hold("run")
    running = [model.infer(f"running {number}") for number in range(slots)]
    model.wait_listed(active_slots=slots)
    waiting = [model.infer("waiting 0")]
    model.wait_queue("infer")
    waiting.append(model.infer("waiting 1"))
    model.wait_queue("infer", "infer")

    def let_go():
        model.checkpoint.release("run")
        for call in [*running, *waiting]:
            answer_of(call)

    return model, let_go


def test_an_unload_waits_for_what_its_dry_run_named(server, occupied):
    model, let_go = occupied
    before = model.listed()
    dry = told(server, UNLOAD, id=model.id)
    assert (dry["dry_run"], dry["unloads"], dry["loads"], dry["evicts"]) == (True, [model.id], [], [])
    assert (model.listed(), model.status()["waiting"]) == (before, 2)

    real = model.unload()
    model.wait_queue("infer", "infer", "unload")

    assert model.status()["queue"][-1]["waits_for"] == dry["waits_for"] != []
    let_go()
    assert real.ok()["loaded"] is False
    assert told(server, UNLOAD, id=model.id)["waits_for"] == told(server, UNLOAD, id=model.id)["unloads"] == []


@pytest.mark.parametrize("strategy", ["replace", "side_by_side"])
def test_a_load_waits_for_what_its_dry_run_named(occupied, strategy):
    model, let_go = occupied
    v2 = model.replacement("v2")
    v2.set("bytes", "4096")
    fields = {"path": str(v2.path), "strategy": strategy}
    dry = told_of_load(model, **fields)
    assert (dry["loads"], dry["unloads"], dry["evicts"]) == ([model.id], [model.id], [])
    assert dry["memory"]["needed_bytes"] == 4096
    assert dry["memory"]["free_bytes"] > 4096
    assert v2.events() == []

    real = model.register(**fields)
    model.wait_queue("infer", "infer", "load")

    assert model.status()["queue"][-1]["waits_for"] == dry["waits_for"] != []
    let_go()
    assert real.ok()["loaded"] is True
    assert step_count(model, "loaded") == 2
    assert len(model.checkpoint.events("closed")) == 1


@pytest.mark.parametrize("everything", [False, True])
def test_a_bulk_unload_does_what_its_dry_run_named(lent_server, cold_model, everything):
    server = lent_server(max_text_chars=50_000)  # one without the models of other tests
    known = [it["id"] for it in server.status()["models"]]
    busy, idle, cold = server.new_model(), server.new_model(), cold_model(server)
    models = [busy, idle, cold]
    body = {} if everything else {"model_ids": [busy.id, "nobody", idle.id, busy.id, cold.id]}
    with busy.checkpoint.held("run"):
        running = busy.infer("running")
        busy.checkpoint.wait_for("run")
        path = UNLOAD_ALL if everything else BULK_UNLOAD
        dry = told(server, path, **body)
        assert [dry["unloads"], dry["evicts"], dry["loads"]] == [[busy.id, idle.id], [], []]
        assert idle.listed()["loaded"] is True

        real = server.client.start("POST", path, json=body)
        busy.wait_queue("bulk_unload")

        waits = [f"{model.id}/{name}" for model in models for it in model.status()["queue"] for name in it["waits_for"]]
        assert waits == dry["waits_for"] != []
    answer_of(running)
    done = real.ok()
    assert done == {name: dry[name] for name in ("unloaded", "not_found")}
    assert set(done["unloaded"]) - set(known) == {model.id for model in models}
    assert [model.id for model in models if step_count(model, "closed")] == dry["unloads"]


def test_a_first_load_evicts_whom_its_dry_run_named(lent_server):
    server = lent_server("residency_limit_2")
    busy, older, new = server.new_model(), server.new_model(), server.unregistered_model()
    with busy.checkpoint.held("run"):
        running = busy.infer("running")
        busy.checkpoint.wait_for("run")
        dry = told_of_load(new)
        assert (dry["evicts"], dry["loads"], dry["unloads"], dry["waits_for"]) == ([older.id], [new.id], [], [])
        assert server.client.call("GET", f"/v1/models/{new.id}").status_code == 404
        assert (older.listed()["loaded"], new.checkpoint.events()) == (True, [])

        new.register().ok()

        assert [it.id for it in (busy, older) if not it.listed()["loaded"]] == dry["evicts"]
        assert new.listed()["loaded"] is True
    answer_of(running)


def test_a_load_that_wants_memory_evicts_whom_its_dry_run_named(lent_server):
    server = lent_server(min_free_memory_mb=1)
    busy, idle, pinned, last = (server.new_model(pinned=it == 2) for it in range(4))
    answer_of(idle.infer("the last to be used"))
    new = server.unregistered_model()
    new.checkpoint.set("bytes", str(2**60))
    with busy.checkpoint.held("run"):
        running = busy.infer("running")
        busy.checkpoint.wait_for("run")
        dry = told_of_load(new)
        assert dry["evicts"] == [last.id, idle.id]

        refusal = new.register().result()

        assert (refusal.status_code, refusal.json()["error"]["code"]) == (503, "insufficient_memory")
        gone = [model for model in (busy, idle, pinned, last) if not model.listed()["loaded"]]
        gone.sort(key=lambda it: it.checkpoint.events("destroy")[0].t)
        assert [model.id for model in gone] == dry["evicts"]
    answer_of(running)


def test_what_needs_no_other_pool_is_told_to_change_nothing(server):
    model = server.new_model()
    for fields in ({}, {"pinned": True}, {"busy_timeout_ms": 5}):
        dry = told_of_load(model, **fields)
        assert (dry["loads"], dry["unloads"], dry["evicts"], dry["memory"]["needed_bytes"]) == ([], [], [], 0)
        model.register(**fields).ok()
        assert step_count(model, "load") == 1


def test_a_model_that_is_not_loaded_is_told_to_be_loaded(server, cold_model):
    model = cold_model(server)
    dry = told(server, LOAD, id=model.id)
    assert (dry["loads"], dry["unloads"]) == ([model.id], [])
    assert model.checkpoint.events() == []
    server.client.start("POST", LOAD, json={"id": model.id}).ok()
    assert step_count(model, "load") == 1


def refused_as_told(dry, real):
    """A dry run names the status and the error of the real call."""
    response = real.result()
    assert dry["refusal"] == {"status": response.status_code, **response.json()["error"]}
    assert dry["loads"] == []
    return dry["refusal"]


def test_a_load_without_an_idle_model_to_evict_is_refused_as_its_dry_run_said(lent_server):
    server = lent_server("residency_limit_1")
    busy, new = server.new_model(), server.unregistered_model()
    with busy.checkpoint.held("run"):
        running = busy.infer("running")
        busy.checkpoint.wait_for("run")
        refusal = refused_as_told(told_of_load(new), new.register())
        assert (refusal["status"], refusal["code"]) == (503, "server_busy")
    answer_of(running)


def test_a_load_without_memory_is_refused_as_its_dry_run_said(lent_server):
    new = lent_server(min_free_memory_mb=1).unregistered_model()
    new.checkpoint.set("bytes", str(2**60))
    refusal = refused_as_told(told_of_load(new), new.register())
    assert (refusal["status"], refusal["code"]) == (503, "insufficient_memory")


def test_more_slots_than_the_loaded_model_serves_are_refused_as_the_dry_run_said(server):
    model = server.unregistered_model()
    model.checkpoint.set("capacity", "2")
    model.register().ok()
    dry = told_of_load(model, slots=3)
    refusal = refused_as_told(dry, model.register(slots=3))
    assert (refusal["status"], refusal["param"], dry["unloads"]) == (400, "slots", [])
    assert step_count(model, "closed") == 0


@pytest.mark.parametrize("known", [True, False])
def test_more_slots_than_the_audit_list_allows_are_refused_as_the_dry_run_said(lent_server, known):
    server = lent_server(device="cuda")
    model = server.new_model(slots=1) if known else server.unregistered_model()
    before = step_count(model, "load")
    refusal = refused_as_told(told_of_load(model, slots=2), model.register(slots=2))
    assert (refusal["status"], refusal["param"]) == (400, "slots")
    assert step_count(model, "load") == before


@pytest.mark.parametrize(
    "fields", [{"slots": 17}, {"task": "juggle"}, {"path": "/no/such/folder"}, {"family": "nobody"}, {"preset": 1}]
)
def test_a_dry_run_refuses_what_validation_would(server, fields):
    model = server.unregistered_model()
    dry, real = model.register(dry_run=True, **fields).result(), model.register(**fields).result()
    assert dry.status_code == real.status_code == 400
    assert dry.json() == real.json()


@pytest.mark.parametrize(("path", "status"), [(UNLOAD, 404), (LOAD, 404)])
def test_a_dry_run_knows_no_more_models_than_the_call(server, path, status):
    answers = [
        server.client.call("POST", path, json={"id": "nobody", **dry})
        for dry in ({"dry_run": True}, {"dry_run": False})
    ]
    assert [it.status_code for it in answers] == [status, status]
    assert answers[0].json() == answers[1].json()


def test_another_models_root_is_told_and_not_made(server, tmp_path):
    before = server.client.call("GET", MODELS_ROOT).json()
    folder = tmp_path / "deep" / "deeper"
    dry = told(server, MODELS_ROOT, path=str(folder))
    assert (dry["path"], dry["loads"], dry["unloads"], dry["waits_for"]) == (str(folder), [], [], [])
    assert list(tmp_path.iterdir()) == []
    assert server.client.call("GET", MODELS_ROOT).json() == before

    real = server.client.start("POST", MODELS_ROOT, json={"path": str(folder)}).ok()

    assert real == {"path": dry["path"]}
    server.client.start("POST", MODELS_ROOT, json=before).ok()


def test_a_models_root_that_is_there_stays_when_it_is_only_asked_about(server, tmp_path):
    told(server, MODELS_ROOT, path=str(tmp_path))
    assert tmp_path.is_dir()


@pytest.mark.parametrize("path", ["relative/folder", "{}/file", "{}/file/below"])
def test_a_dry_run_refuses_the_models_root_that_the_call_would(server, tmp_path, path):
    (tmp_path / "file").touch()
    answers = [
        server.client.call("POST", MODELS_ROOT, json={"path": path.format(tmp_path), "dry_run": dry_run})
        for dry_run in (True, False)
    ]
    assert [it.status_code for it in answers] == [400, 400]
    assert answers[0].json() == answers[1].json()


def test_a_dry_run_is_management_too(lent_server):
    server = lent_server("no_management")
    for path in (LOAD, UNLOAD, BULK_UNLOAD, UNLOAD_ALL, MODELS_ROOT):
        assert server.client.call("POST", path, json={"id": "a", "model_ids": [], "dry_run": True}).status_code == 403
