"""The cells `ops.ready.*`: what meets a model that is ready."""

from conformance_evidence import answers, assert_unloaded, first, last, loaded, refusal, said
from conformance_plugin import cell
from conformance_situations import fill
from conformance_standing import comes_to, seen, standing


@cell("ops.ready.inference")
def test_ops_ready_inference(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        calls, texts = fill(model, slots, queued=2)
        model.checkpoint.wait_for("run", slots)  # they run side by side
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer", "infer"])

    told = answers(calls)
    assert [it.text for it in told] == texts
    assert len({it.session for it in told[:slots]}) == slots
    queued = model.runs()[slots:]  # with more slots they run at once, and whose thread tells of it first is no order
    assert (queued if slots == 1 else sorted(queued)) == texts[slots:]
    assert len(model.checkpoint.events("load")) == 1
    assert seen(model) == standing("ready", slots=slots)


@cell("ops.ready.register")
def test_ops_ready_register(server, slots):
    model = server.new_model()
    replacement = model.replacement("v2")
    with model.checkpoint.held("run"):
        calls, texts = fill(model, slots, queued=1)
        register = model.register(path=str(replacement.path), mode="streaming")
        queue = ["infer", "load"]
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=queue))

    assert said(calls) == [("v1", text) for text in texts]
    assert register.ok() == loaded(model)
    assert last(model.checkpoint, "ran") < min(first(model.checkpoint, "destroy"), first(replacement, "load"))
    if slots > 1:  # one slot needs no probe
        assert first(replacement, "open") < first(model.checkpoint, "destroy")
    assert seen(model) == standing("ready", slots=slots, mode="streaming")
    assert said([model.infer("new")]) == [("v2", "new")]


@cell("ops.ready.register")
def test_ops_ready_register_that_is_refused(server, slots):
    model = server.new_model()
    replacement = model.replacement("v2")
    replacement.fail("inspect", "ConfigError")
    before = model.listed(), model.registration()
    assert refusal(model.register(path=str(replacement.path), mode="streaming")) == (400, None, "path")
    assert seen(model) == standing("ready", slots=slots)
    assert (model.listed(), model.registration()) == before
    assert said([model.infer("as before")]) == [("v1", "as before")]
    assert len(model.checkpoint.events("load")) == 1
    assert replacement.events() == model.checkpoint.events("destroy") == []


@cell("ops.ready.unload")
def test_ops_ready_unload(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        calls, texts = fill(model, slots, queued=1)
        unload = model.unload()
        queue = ["infer", "unload"]
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=queue))

    assert said(calls) == [("v1", text) for text in texts]
    assert_unloaded(model, unload)
    assert last(model.checkpoint, "ran") < first(model.checkpoint, "destroy")
    assert last(model.checkpoint, "session_closed") < first(model.checkpoint, "closed")
    assert len(model.checkpoint.events("session_closed")) == slots
    assert seen(model) == standing("unloaded", slots=slots)


@cell("ops.ready.bulk_unload")
def test_ops_ready_bulk_unload(server, slots):
    model, busy = server.new_model(), server.new_model()
    with busy.checkpoint.held("run"):
        calls, texts = fill(busy, slots)
        bulk = server.bulk_unload(busy, model)
        comes_to(model, standing("unloaded", slots=slots))
        assert seen(busy) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["bulk_unload"])

    assert said(calls) == [("v1", text) for text in texts]
    assert bulk.ok() == {"unloaded": [busy.id, model.id], "not_found": []}
    assert last(model.checkpoint, "closed") < last(busy.checkpoint, "ran") < first(busy.checkpoint, "destroy")
    assert seen(busy) == standing("unloaded", slots=slots)


@cell("ops.ready.evict")
def test_ops_ready_evict(fresh_server, slots):
    server = fresh_server("residency_limit_1")
    newcomer, model = server.new_model(loaded=False), server.new_model()
    with model.checkpoint.held("run"):
        calls, texts = fill(model, slots, queued=1)
        assert refusal(newcomer.infer("no room")) == (503, "server_busy", None)
        busy = standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"])
        assert seen(model) == busy

    assert said(calls) == [("v1", text) for text in texts]
    with model.checkpoint.held("destroy"):
        assert said([newcomer.infer("room")]) == [("v1", "room")]
        assert seen(model) == standing("unloading", slots=slots, leases=["evict"])

    comes_to(model, standing("unloaded", slots=slots))
    assert seen(newcomer) == standing("ready", slots=slots)
    assert last(model.checkpoint, "ran") < first(model.checkpoint, "destroy")


@cell("ops.ready.evict")
def test_ops_ready_evict_after_idle_time(fresh_server, slots):
    server = fresh_server("idle_unload")
    model = server.unregistered_model()
    with model.checkpoint.held("destroy"):
        model.register().ok()
        comes_to(model, standing("unloading", slots=slots, leases=["evict"]))
        request = model.infer("again")
        comes_to(model, standing("unloading", slots=slots, leases=["evict"], queue=["infer"]))

    assert said([request]) == [("v1", "again")]
    comes_to(model, standing("unloaded", slots=slots))


@cell("ops.ready.status")
def test_ops_ready_status(server, slots):
    model = server.new_model()
    assert seen(model) == seen(model) == standing("ready", slots=slots)
    with model.checkpoint.held("run"):
        calls, texts = fill(model, slots, queued=1)
        unload = model.unload()
        model.wait_queue("infer", "unload")
        calls.append(model.infer("behind"))
        queue = ["infer", "unload", "infer"]
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=queue))
        assert model.listed() in server.client.call("GET", "/v1/models").json()["data"]

    assert_unloaded(model, unload)
    assert said(calls) == [("v1", text) for text in [*texts, "behind"]]
    assert seen(model) == standing("ready", slots=slots)
