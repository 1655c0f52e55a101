"""The cells `ops.unloading.*`: what meets a model whose teardown is not over."""

from conformance_evidence import assert_unloaded, first, last, loaded, said
from conformance_plugin import cell
from conformance_situations import fill, unloading
from conformance_standing import comes_to, seen, standing


@cell("ops.unloading.inference")
def test_ops_unloading_inference(server, slots):
    with unloading(server, slots) as (model, unload):
        request = model.infer("later")
        comes_to(model, standing("unloading", slots=slots, leases=["unload"], queue=["infer"]))

    assert_unloaded(model, unload)
    assert said([request]) == [("v1", "later")]
    assert first(model.checkpoint, "closed") < last(model.checkpoint, "load") < first(model.checkpoint, "run")
    assert seen(model) == standing("ready", slots=slots)


@cell("ops.unloading.register")
def test_ops_unloading_register(server, slots):
    with unloading(server, slots) as (model, unload):
        replacement = model.replacement("v2")
        register = model.register(path=str(replacement.path))
        comes_to(model, standing("unloading", slots=slots, leases=["unload"], queue=["load"]))

    assert_unloaded(model, unload)
    assert register.ok() == loaded(model)
    assert first(model.checkpoint, "closed") < first(replacement, "load")
    assert seen(model) == standing("ready", slots=slots)
    assert said([model.infer("new")]) == [("v2", "new")]


@cell("ops.unloading.unload")
def test_ops_unloading_unload(server, slots):
    with unloading(server, slots) as (model, earlier):
        later = model.unload()
        comes_to(model, standing("unloading", slots=slots, leases=["unload"], queue=["unload"]))

    assert_unloaded(model, earlier)
    assert_unloaded(model, later, freed=False)
    assert len(model.checkpoint.events("destroy")) == slots + 1  # each session and the weights, once
    assert seen(model) == standing("unloaded", slots=slots)


@cell("ops.unloading.bulk_unload")
def test_ops_unloading_bulk_unload(server, slots):
    other = server.new_model()
    with unloading(server, slots) as (model, unload):
        bulk = server.bulk_unload(model, other)
        comes_to(model, standing("unloading", slots=slots, leases=["unload"], queue=["bulk_unload"]))
        comes_to(other, standing("unloaded", slots=slots))

    assert bulk.ok() == {"unloaded": [model.id, other.id], "not_found": []}
    assert_unloaded(model, unload)
    assert last(other.checkpoint, "closed") < last(model.checkpoint, "closed")
    assert seen(model) == standing("unloaded", slots=slots)


@cell("ops.unloading.evict")
def test_ops_unloading_evict(fresh_server, slots):
    server = fresh_server("residency_limit_2")
    kept = server.new_model()
    with unloading(server, slots) as (model, unload):
        third = server.new_model()  # there is room: the one that is being retired counts no more
        assert seen(kept) == seen(third) == standing("ready", slots=slots)

        with third.checkpoint.held("run"):
            busy, _ = fill(third, slots)
            fourth = server.new_model()  # and the next victim is the idle one, for itself
            comes_to(kept, standing("unloaded", slots=slots))
            assert seen(third) == standing("ready", slots=slots, leases=["infer"] * slots)
        assert seen(model) == standing("unloading", slots=slots, leases=["unload"])

    assert_unloaded(model, unload)
    assert len(said(busy)) == slots
    assert len(model.checkpoint.events("destroy")) == slots + 1
    assert seen(model) == standing("unloaded", slots=slots)
    assert seen(fourth) == standing("ready", slots=slots)


@cell("ops.unloading.status")
def test_ops_unloading_status(server, slots):
    with unloading(server, slots) as (model, unload):
        assert seen(model) == standing("unloading", slots=slots, leases=["unload"])
        assert model.checkpoint.events("closed") == []  # the weights are still there

    assert_unloaded(model, unload)
    assert seen(model) == standing("unloaded", slots=slots)
