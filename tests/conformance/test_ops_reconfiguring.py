"""The cells `ops.reconfiguring.*`: what meets a model while it is replaced."""

import pytest

from conformance_binding import ASKED, KINDS, ask, assert_bound, rebindable
from conformance_evidence import assert_unloaded, first, last, loaded, refusal, said
from conformance_plugin import cell
from conformance_situations import fill, last_of_load, reconfiguring
from conformance_standing import CAPACITY, comes_to, seen, standing


@cell("ops.reconfiguring.inference")
def test_ops_reconfiguring_inference(server, slots):
    model = server.new_model()
    replacement = model.replacement("v2")
    options = {"path": str(replacement.path), "mode": "streaming"}
    with model.checkpoint.held("destroy"), replacement.held(last_of_load(slots)):
        register = model.register(**options)
        model.checkpoint.wait_for("destroy")
        request = model.infer("early")  # what it finds registered when it comes is not what it is bound to
        comes_to(model, standing("reconfiguring", slots=slots, leases=["load"], queue=["infer"]))
        model.checkpoint.release("destroy")
        replacement.wait_for(last_of_load(slots))
        committed = standing("reconfiguring", slots=slots, leases=["load"], queue=["infer"], mode="streaming")
        comes_to(model, committed)

    assert (register.ok(), said([request])) == (loaded(model), [("v2", "early")])
    assert last(replacement, last_of_load(slots)) < first(replacement, "prepare")
    assert len(replacement.events("load")) == 1
    assert seen(model) == standing("ready", slots=slots, mode="streaming")


@cell("ops.reconfiguring.inference")
@pytest.mark.parametrize("kind", KINDS)
def test_ops_reconfiguring_inference_is_bound_to_the_new_configuration(server, slots, kind):
    model, replacement, registration = rebindable(server)
    with model.checkpoint.held("destroy"):
        register = model.register(**registration)
        model.checkpoint.wait_for("destroy")  # nothing is committed yet, so what is registered now is the old model
        requests = ask(model, kind)
        comes_to(model, standing("reconfiguring", slots=slots, leases=["load"], queue=["infer"] * len(ASKED)))

    assert register.ok() == loaded(model)
    assert_bound(requests, replacement, new=True)
    assert model.checkpoint.events("run") == []
    comes_to(model, standing("ready", slots=slots))


@cell("ops.reconfiguring.inference")
def test_ops_reconfiguring_inference_after_a_failed_load(server, slots):
    with reconfiguring(server, slots) as (model, replacement, register):
        request = model.infer("later")
        model.wait_queue("infer")
        replacement.fail(last_of_load(slots))
        replacement.hold("load")
        replacement.release(last_of_load(slots))
        assert refusal(register) == (500, "load_failed", None)
        replacement.wait_for("load", 2)
        failed = register.result().json()["error"]["message"]
        comes_to(model, standing("loading", slots=slots, leases=["infer"], last_error=failed))
        replacement.unset(f"{last_of_load(slots)}.fail")
        replacement.release("load")
        assert said([request]) == [("v2", "later")]

    assert seen(model) == standing("ready", slots=slots)


@cell("ops.reconfiguring.register")
def test_ops_reconfiguring_register(server, slots):
    with reconfiguring(server, slots) as (model, replacement, register):
        third, final = model.replacement("v3"), model.replacement("v4")
        later = [model.register(path=str(third.path))]
        model.wait_queue("load")
        later.append(model.register(path=str(final.path), mode="streaming"))
        comes_to(model, standing("reconfiguring", slots=slots, leases=["load"], queue=["load", "load"]))

    assert [call.ok() for call in (register, *later)] == [loaded(model)] * 3
    built = last_of_load(slots)
    assert last(replacement, built) < first(third, "load") <= last(third, built) < first(final, "load")
    assert last(replacement, "closed") < first(final, "load")
    assert seen(model) == standing("ready", slots=slots, mode="streaming")
    assert said([model.infer("last")]) == [("v4", "last")]


@cell("ops.reconfiguring.unload")
def test_ops_reconfiguring_unload(server, slots):
    with reconfiguring(server, slots) as (model, replacement, register):
        unload = model.unload()
        comes_to(model, standing("reconfiguring", slots=slots, leases=["load"], queue=["unload"]))

    assert register.ok() == loaded(model)
    assert_unloaded(model, unload)
    assert last(replacement, last_of_load(slots)) < first(replacement, "destroy")
    assert len(replacement.events("session_closed")) == slots
    assert len(replacement.events("closed")) == 1
    assert seen(model) == standing("unloaded", slots=slots)
    assert said([model.infer("again")]) == [("v2", "again")]  # what was registered stays so


@cell("ops.reconfiguring.bulk_unload")
def test_ops_reconfiguring_bulk_unload(server, slots):
    other = server.new_model()
    with reconfiguring(server, slots) as (model, replacement, register):
        bulk = server.bulk_unload(model, other)
        comes_to(other, standing("unloaded", slots=slots))
        assert seen(model) == standing("reconfiguring", slots=slots, leases=["load"], queue=["bulk_unload"])

    assert register.ok() == loaded(model)
    assert bulk.ok() == {"unloaded": [model.id, other.id], "not_found": []}
    assert last(other.checkpoint, "closed") < first(replacement, "destroy")
    assert seen(model) == standing("unloaded", slots=slots)


@cell("ops.reconfiguring.evict")
def test_ops_reconfiguring_evict(fresh_server, slots):
    server = fresh_server("residency_limit_2")
    with reconfiguring(server, slots) as (model, replacement, register):
        undisturbed = standing("reconfiguring", slots=slots, leases=["load"])
        idle = server.new_model()
        busy = server.new_model()  # in the place of the idle one
        comes_to(idle, standing("unloaded", slots=slots))
        assert seen(model) == undisturbed

        with busy.checkpoint.held("run"):
            working, _ = fill(busy, slots)
            assert refusal(idle.infer("no room")) == (503, "server_busy", None)
            assert seen(model) == undisturbed
        assert len(said(working)) == slots

    assert register.ok() == loaded(model)
    assert len(replacement.events("load")) == 1
    assert seen(model) == standing("ready", slots=slots)


def metadata(model):
    """All that describes the model: what it is registered as, and what the listing says of that."""
    listed = model.listed()
    described = ("family", "task", "mode", "slots", "aliases", "voices", "languages")
    return {**model.registration(), **{name: listed[name] for name in described}}


@cell("ops.reconfiguring.status")
def test_ops_reconfiguring_status(server, slots):
    model, resized = server.unregistered_model(aliases=[f"{slots} old"], busy_timeout_ms=1234), slots % 4 + 1
    model.checkpoint.set("voices", "anna")
    model.register().ok()
    replacement = model.replacement("v2")
    replacement.set("voices", "bert")
    replacement.set("languages", "de")
    changed = {"path": str(replacement.path), "slots": resized, "mode": "streaming", "busy_timeout_ms": 4321}
    changed |= {"aliases": [f"{slots} new"], "default_voice_preset": "narrator"}
    changed |= {"voice_presets": {"narrator": {"voice": "bert"}}}
    old_metadata = metadata(model)
    new_metadata = {**old_metadata, **changed, "voices": ["bert", "narrator"], "languages": ["de"]}
    probe = "open" if resized > 1 else None
    old = {"slots": slots, "leases": ["load"]}
    with model.checkpoint.held("destroy"), replacement.held("open"):
        register = model.register(**changed)
        if probe:  # the old pool is published until it is retired
            replacement.wait_for(probe)
            comes_to(model, standing("reconfiguring", capacity=CAPACITY, **old))
            assert metadata(model) == old_metadata
            replacement.release("open")
        model.checkpoint.wait_for("destroy")
        comes_to(model, standing("reconfiguring", **old))
        assert metadata(model) == old_metadata
        replacement.hold(last_of_load(resized))
        model.checkpoint.release("destroy")
        replacement.wait_for(last_of_load(resized))
        comes_to(model, standing("reconfiguring", slots=resized, leases=["load"], mode="streaming"))
        assert metadata(model) == new_metadata
        replacement.release(last_of_load(resized))

    assert register.ok() == loaded(model)
    assert seen(model) == standing("ready", slots=resized, mode="streaming")
    assert metadata(model) == new_metadata
