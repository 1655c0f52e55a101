"""The cells `ops.unloaded.*`: what meets a registered model that is not loaded."""

from conformance_evidence import assert_unloaded, first, last, loaded, refusal, said
from conformance_plugin import cell
from conformance_situations import cold_model, last_of_load, occupied_cold
from conformance_standing import comes_to, seen, standing


@cell("ops.unloaded.inference")
def test_ops_unloaded_inference(server, slots):
    model = cold_model(server)
    with model.checkpoint.held("load"):
        request = model.infer("first")
        model.checkpoint.wait_for("load")
        assert seen(model) == standing("loading", slots=slots, leases=["infer"])

    assert said([request]) == [("v1", "first")]
    built = ["load", "loaded", "open", *["clone"] * (slots - 1)]
    assert [it.step for it in model.checkpoint.events()] == [*built, "prepare", "run", "ran"]
    assert seen(model) == standing("ready", slots=slots)


@cell("ops.unloaded.register")
def test_ops_unloaded_register(server, slots):
    model = cold_model(server)
    replacement = model.replacement("v2")
    assert refusal(model.register(path=str(replacement.path), task="sing")) == (400, None, "task")
    assert seen(model) == standing("unloaded", slots=slots)

    with replacement.held(last_of_load(slots)):
        register = model.register(path=str(replacement.path), mode="streaming")
        replacement.wait_for(last_of_load(slots))
        request = model.infer("behind")
        alone = standing("loading", slots=slots, leases=["load"], queue=["infer"], mode="streaming")
        comes_to(model, alone)

    assert (register.ok(), said([request])) == (loaded(model), [("v2", "behind")])
    assert last(replacement, last_of_load(slots)) < first(replacement, "prepare")
    assert len(replacement.events("load")) == 1
    assert model.checkpoint.events() == []
    assert seen(model) == standing("ready", slots=slots, mode="streaming")


@cell("ops.unloaded.unload")
def test_ops_unloaded_unload(server, slots):
    with occupied_cold(server, slots) as (model, register):
        unload = model.unload()
        comes_to(model, standing("loading", slots=slots, leases=["load"], queue=["unload"]))

    assert refusal(register) == (400, None, "slots")
    for call in (unload, model.unload()):
        assert_unloaded(model, call, freed=False)
    assert model.checkpoint.events() == []
    assert seen(model) == standing("unloaded", slots=slots)


@cell("ops.unloaded.bulk_unload")
def test_ops_unloaded_bulk_unload(server, slots):
    other = server.new_model()
    with occupied_cold(server, slots) as (model, register):
        bulk = server.bulk_unload(model, "nobody", other, model)
        comes_to(model, standing("loading", slots=slots, leases=["load"], queue=["bulk_unload"]))
        comes_to(other, standing("unloaded", slots=slots))

    assert refusal(register) == (400, None, "slots")
    assert bulk.ok() == {"unloaded": [model.id, other.id], "not_found": ["nobody"]}
    assert model.checkpoint.events() == []
    assert seen(model) == standing("unloaded", slots=slots)


@cell("ops.unloaded.evict")
def test_ops_unloaded_evict(fresh_server, slots):
    server = fresh_server("residency_limit_2")
    model, leaves, kept = cold_model(server), server.new_model(), server.new_model()
    assert seen(leaves) == seen(kept) == standing("ready", slots=slots)
    with leaves.checkpoint.held("destroy"):
        newcomer = server.new_model()
        assert seen(leaves) == standing("unloading", slots=slots, leases=["evict"])
        assert seen(model) == standing("unloaded", slots=slots)

    assert seen(kept) == seen(newcomer) == standing("ready", slots=slots)
    comes_to(leaves, standing("unloaded", slots=slots))
    assert model.checkpoint.events() == []
    assert seen(model) == standing("unloaded", slots=slots)


@cell("ops.unloaded.status")
def test_ops_unloaded_status(server, slots):
    model = cold_model(server)
    for _ in range(2):
        assert seen(model) == standing("unloaded", slots=slots)
        assert model.listed() in server.client.call("GET", "/v1/models").json()["data"]
        assert server.client.call("GET", "/v1/audio/voices", params={"model": model.id}).status_code == 200
    assert model.checkpoint.events() == []
