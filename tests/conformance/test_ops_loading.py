"""The cells `ops.loading.*`: what meets a model whose pool is half built."""

import json

import pytest

from conformance_client import eventually
from conformance_evidence import answers, assert_unloaded, first, last, loaded, refusal, said
from conformance_plugin import cell
from conformance_server import LOAD, TASK_RUN
from conformance_situations import cold_model, fill, frozen, last_of_load, loading
from conformance_standing import comes_to, last_error, seen, standing


@cell("ops.loading.inference")
def test_ops_loading_inference(server, slots):
    model = cold_model(server)
    with model.checkpoint.held("load"):
        calls, texts = fill(model, slots, queued=2)
        model.checkpoint.wait_for("load")
        waiting = standing("loading", slots=slots, leases=["infer"] * slots, queue=["infer", "infer"])
        assert seen(model) == waiting

    told = answers(calls)
    assert [it.text for it in told] == texts
    assert len({it.session for it in told[:slots]}) == slots
    assert len(model.checkpoint.events("load")) == 1
    assert len(model.checkpoint.events("clone")) == slots - 1
    if slots == 1:  # with more, several run at once, and whose thread tells of it first is no order
        assert model.runs() == texts
    assert sorted(model.runs()) == sorted(texts)
    built = last(model.checkpoint, last_of_load(slots))
    assert built < first(model.checkpoint, "prepare") < first(model.checkpoint, "run")
    assert seen(model) == standing("ready", slots=slots)


@cell("ops.loading.register")
def test_ops_loading_register(server, slots):
    with loading(server, slots, queued=1) as (model, calls, texts):
        replacement = model.replacement("v2")
        register = model.register(path=str(replacement.path), mode="streaming")
        model.wait_queue("infer", "load")
        later = model.infer("later")
        queue = ["infer", "load", "infer"]
        comes_to(model, standing("loading", slots=slots, leases=["infer"] * slots, queue=queue))

    assert register.ok() == loaded(model)
    assert said(calls) == [("v1", text) for text in texts]
    assert said([later]) == [("v2", "later")]
    assert last(model.checkpoint, "ran") < first(model.checkpoint, "destroy")
    assert seen(model) == standing("ready", slots=slots, mode="streaming")


@cell("ops.loading.unload")
def test_ops_loading_unload(server, slots):
    with loading(server, slots, queued=1) as (model, calls, texts):
        unload = model.unload()
        queue = ["infer", "unload"]
        comes_to(model, standing("loading", slots=slots, leases=["infer"] * slots, queue=queue))

    assert_unloaded(model, unload)
    assert said(calls) == [("v1", text) for text in texts]
    assert last(model.checkpoint, "ran") < first(model.checkpoint, "destroy")
    assert seen(model) == standing("unloaded", slots=slots)


@cell("ops.loading.bulk_unload")
def test_ops_loading_bulk_unload(server, slots):
    other = server.new_model()
    with loading(server, slots, queued=1) as (model, calls, texts):
        bulk = server.bulk_unload(model, other)
        comes_to(other, standing("unloaded", slots=slots))
        queue = ["infer", "bulk_unload"]
        assert seen(model) == standing("loading", slots=slots, leases=["infer"] * slots, queue=queue)

    assert bulk.ok() == {"unloaded": [model.id, other.id], "not_found": []}
    assert said(calls) == [("v1", text) for text in texts]
    assert last(other.checkpoint, "closed") < first(model.checkpoint, "run")
    assert last(model.checkpoint, "ran") < first(model.checkpoint, "destroy")
    assert seen(model) == standing("unloaded", slots=slots)


@cell("ops.loading.evict")
def test_ops_loading_evict(fresh_server, slots):
    server = fresh_server("residency_limit_2")
    with loading(server, slots) as (model, calls, _):
        undisturbed = standing("loading", slots=slots, leases=["infer"] * slots)
        idle = server.new_model()
        busy = server.new_model()  # in the place of the idle one
        comes_to(idle, standing("unloaded", slots=slots))
        assert seen(model) == undisturbed

        with busy.checkpoint.held("run"):
            working, _ = fill(busy, slots)
            assert refusal(idle.infer("no room")) == (503, "server_busy", None)
            assert seen(model) == undisturbed
        assert len(said(working)) == slots

    assert len(said(calls)) == slots
    assert len(model.checkpoint.events("load")) == 1
    assert seen(model) == standing("ready", slots=slots)


def orders(operation, model):
    """The route and the body that begin a load of the model."""
    if operation == "infer":
        return TASK_RUN, {"model": model.id, "request": {"text": "raced"}}
    return LOAD, {"id": model.id}


def race(server, slots, operation, racers):
    """Have loads of these models begin in one step, for one place: who got it, and its call. The others are refused."""
    calls = {}
    before = {model: (len(model.checkpoint.events("load")), model.status()["last_error"]) for model in racers}
    for model in racers:
        model.checkpoint.hold("load")
    connections = {model: server.client.accepted() for model in racers}
    with frozen(server):
        for model, connection in connections.items():
            path, body = orders(operation, model)
            calls[model] = server.client.open("POST", path, json=body, over=connection)

    def loaders():
        return [it for it in racers if it.status()["state"] == "loading"]

    def outcome():
        return len(loaders()) + sum(call.has_answer() for call in calls.values())

    eventually(outcome, lambda it: it == len(racers), "a load or an answer for each")
    begun = loaders()
    assert len(begun) == 1, f"{len(begun)} loads took one place"
    (winner,) = begun
    loads, error = before[winner]
    winner.checkpoint.wait_for("load", loads + 1)
    assert seen(winner) == standing("loading", slots=slots, leases=[operation], last_error=error)
    for model in racers:
        model.unhold()
        if model is not winner:
            answer = calls[model].head()
            assert (answer.status, int(answer.headers["retry-after"]) >= 1) == (503, True)
            assert json.loads(calls[model].read())["error"]["code"] == "server_busy"
            assert len(model.checkpoint.events("load")) == before[model][0]
            assert seen(model) == standing("unloaded", slots=slots, last_error=last_error(model))
    return winner, calls[winner]


@cell("ops.loading.evict")
@pytest.mark.parametrize("operation", ["infer", "load"])
def test_ops_loading_evict_by_loads_that_begin_in_one_step(fresh_server, slots, operation):
    """Counting and reserving are one step: however many loads count the same place, one of them gets it."""
    server = fresh_server("residency_limit_2")
    racers = [cold_model(server) for _ in range(3)]
    with loading(server, slots) as (model, calls, _):
        undisturbed = standing("loading", slots=slots, leases=["infer"] * slots)
        first_winner, call = race(server, slots, operation, racers)  # the second place is free
        assert call.head().status == 200
        assert seen(first_winner) == standing("ready", slots=slots)
        assert seen(model) == undisturbed

        racers.remove(first_winner)
        second_winner, call = race(server, slots, operation, racers)  # it belongs to one idle model
        assert call.head().status == 200
        comes_to(first_winner, standing("unloaded", slots=slots))
        assert seen(second_winner) == standing("ready", slots=slots)
        assert seen(model) == undisturbed

    assert len(said(calls)) == slots
    assert len(first_winner.checkpoint.events("closed")) == 1
    assert [len(it.checkpoint.events("loaded")) for it in (model, first_winner, second_winner)] == [1, 1, 1]
    assert seen(model) == standing("ready", slots=slots)


@cell("ops.loading.evict")
def test_ops_loading_evict_with_time_to_wait(fresh_server, slots):
    server = fresh_server("residency_wait")
    first_waiter, second_waiter = cold_model(server), cold_model(server)
    with loading(server, slots) as (model, calls, _), first_waiter.checkpoint.held("run"):
        waiting = [first_waiter.infer("first")]
        comes_to(first_waiter, standing("unloaded", slots=slots, leases=["infer"]))
        waiting.append(second_waiter.infer("second"))
        comes_to(second_waiter, standing("unloaded", slots=slots, leases=["infer"]))
        assert seen(model) == standing("loading", slots=slots, leases=["infer"] * slots)

        model.checkpoint.release(last_of_load(slots))
        comes_to(first_waiter, standing("ready", slots=slots, leases=["infer"]))
        assert seen(second_waiter) == standing("unloaded", slots=slots, leases=["infer"])

    assert len(said(calls)) == slots
    assert said(waiting) == [("v1", "first"), ("v1", "second")]
    assert last(first_waiter.checkpoint, "ran") < first(second_waiter.checkpoint, "load")
    for evicted in (model, first_waiter):
        comes_to(evicted, standing("unloaded", slots=slots))
    assert seen(second_waiter) == standing("ready", slots=slots)


@cell("ops.loading.evict")
def test_ops_loading_evict_at_the_end_of_the_wait(fresh_server, slots):
    server = fresh_server("residency_limit_1", residency_wait_ms=50)
    newcomer = cold_model(server)
    with loading(server, slots) as (model, calls, _):
        refused = newcomer.infer("no room")
        assert refusal(refused) == (503, "server_busy", None)
        assert "within" in refused.result().json()["error"]["message"]  # it was waited for
        assert seen(model) == standing("loading", slots=slots, leases=["infer"] * slots)

    assert len(said(calls)) == slots
    assert seen(model) == standing("ready", slots=slots)
    assert newcomer.checkpoint.events() == []


@cell("ops.loading.status")
def test_ops_loading_status(server, slots):
    with loading(server, slots) as (model, calls, texts):
        assert len(model.checkpoint.events("loaded")) == 1  # weights are there, sessions not all
        assert seen(model) == standing("loading", slots=slots, leases=["infer"] * slots)

    assert said(calls) == [("v1", text) for text in texts]
    assert len(model.checkpoint.events("load")) == 1
    assert seen(model) == standing("ready", slots=slots)
