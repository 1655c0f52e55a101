"""The cells `rule.*` about registering an id that is new."""

from conformance_client import eventually
from conformance_evidence import error_of, last, nothing_left_open, refusal, steps
from conformance_plugin import cell
from conformance_server import answer_of, most_of_the_memory
from conformance_standing import comes_to, last_error, seen, seen_together, standing


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
        assert seen(model) == standing("loading", slots=slots, leases=["load"])
        request = model.infer("behind")
        model.wait_queue("infer")  # it was published with its lease taken: nobody barges into the first load
        assert seen(model) == standing("loading", slots=slots, leases=["load"], queue=["infer"])
        ids = [it["id"] for it in server.client.call("GET", "/v1/models").json()["data"]]
        assert ids.count(model.id) == 1

    assert registration.ok() == {"id": model.id, "loaded": True}
    assert answer_of(request).text == "behind"
    assert seen(model) == standing("ready", slots=slots)
    assert len(steps(model.checkpoint, "load")) == 1


@cell("rule.concurrent_registration")
def test_rule_concurrent_registration(server, slots):
    model = server.unregistered_model()
    replacement = model.replacement("v2")
    with model.checkpoint.held("load"):
        first = model.register()
        model.checkpoint.wait_for("load")
        second = model.register(path=str(replacement.path))
        model.wait_queue("load")
        assert seen(model) == standing("loading", slots=slots, leases=["load"], queue=["load"])
        other = server.new_model()  # meanwhile, to the end
        assert seen(other) == standing("ready", slots=slots)
        assert seen(model) == standing("loading", slots=slots, leases=["load"], queue=["load"])

    assert [call.ok()["loaded"] for call in (first, second)] == [True, True]
    assert answer_of(model.infer("now")).revision == "v2"
    assert model.checkpoint.wait_for("closed").t < replacement.wait_for("run").t
    assert seen(model) == standing("ready", slots=slots)


@cell("rule.concurrent_registration")
def test_rule_concurrent_registration_while_both_are_validated(server, slots):
    model = server.unregistered_model()
    with model.checkpoint.held("inspect"):
        both = [model.register(), model.register()]
        assert server.client.call("GET", f"/v1/models/{model.id}").status_code == 404
        other = server.new_model()
    assert [call.ok() for call in both] == [{"id": model.id, "loaded": True}] * 2
    ids = [it["id"] for it in server.client.call("GET", "/v1/models").json()["data"]]
    assert ids.count(model.id) == 1
    assert len(steps(model.checkpoint, "load")) == 1  # the second found the first one's pool
    assert seen_together(server, model, other) == [standing("ready", slots=slots), standing("ready", slots=slots)]


@cell("rule.concurrent_registration")
def test_rule_concurrent_registration_of_another_id_behind_the_guard(shared_server, slots):
    """Different ids share nothing but the guard of cold loads: both are registered, and their loads take turns."""
    server = shared_server("load_guard")
    first, second = server.unregistered_model(), server.unregistered_model()
    for model in (first, second):
        model.checkpoint.set("bytes.claimed", str(most_of_the_memory()))
    with first.checkpoint.held("load"):
        calls = [first.register()]
        first.checkpoint.wait_for("load")
        calls.append(second.register())
        eventually(
            lambda: server.client.call("GET", f"/v1/models/{second.id}").status_code,
            lambda status: status == 200,
            "the entry of the second model",
        )
        comes_to(second, standing("loading", slots=slots, leases=["load"]))
        assert seen(first) == standing("loading", slots=slots, leases=["load"])
        assert second.checkpoint.events() == []
    assert [call.ok() for call in calls] == [{"id": it.id, "loaded": True} for it in (first, second)]
    assert seen_together(server, first, second) == [standing("ready", slots=slots)] * 2
    assert second.checkpoint.events("load")[0].t > last(first.checkpoint, "clone" if slots > 1 else "open")


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
    assert len(steps(model.checkpoint, "load")) == 2
    assert seen(model) == standing("unloaded", slots=slots, last_error=last_error(model))

    model.checkpoint.unset("load.fail")
    assert answer_of(model.infer("again")).text == "again"
    assert seen(model) == standing("ready", slots=slots)


@cell("rule.unsupported_new_count")
def test_rule_unsupported_new_count(server, slots):
    model = server.unregistered_model()
    model.checkpoint.set("capacity", str(slots))

    refused = model.register(slots=slots + 1).result()

    assert (refused.status_code, error_of(refused)["type"]) == (400, "invalid_request_error")
    assert error_of(refused)["param"] == "slots"
    left = standing("unloaded", slots=slots + 1, last_error=last_error(model))
    assert seen(model) == left
    assert refusal(model.infer("too many")) == (500, "load_failed", None)
    assert seen(model) == left
    assert steps(model.checkpoint, "run") == []
    opened = steps(model.checkpoint, "open", "clone")
    assert len(steps(model.checkpoint, "session_closed")) == len(opened)  # no part of a pool is left
    nothing_left_open(model.checkpoint)

    model.register(slots=slots).ok()
    assert seen(model) == standing("ready", slots=slots, capacity=slots)
    assert answer_of(model.infer("corrected")).text == "corrected"
