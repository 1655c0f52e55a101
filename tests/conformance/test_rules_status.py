"""The cells `rule.*` about what status says, and that it only looks."""

from conformance_plugin import cell
from conformance_server import answer_of
from conformance_situations import occupy
from conformance_standing import CAPACITY, seen, seen_together, standing

SLOT_FIELDS = {"slots", "active_slots", "queued_requests", "max_parallel_slots"}


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
    assert seen(model) == standing("unloaded", slots=slots)
    assert len(model.checkpoint.events()) == before  # nothing was loaded

    with model.checkpoint.held("run"):
        running = occupy(model, slots)
        later = model.infer("later")
        model.wait_queue("infer")
        unload = model.unload()
        model.wait_queue("infer", "unload")
        for _ in range(3):  # it neither takes a place nor moves the queue
            assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer", "unload"])
    for call in (*running, later, unload):
        call.ok()
    assert seen(model) == standing("unloaded", slots=slots)


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
        assert seen_together(server, one, other) == [
            standing("ready", slots=slots, leases=["infer"] * slots, queue=["bulk_unload", "infer"]),
            standing("ready", slots=slots, leases=["infer"] * slots, queue=["bulk_unload"]),
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
