"""Estimates: when to come back (`Retry-After`), and how long each waiter in `/v1/status` will wait yet."""

import pytest

from conformance_server import UNLOAD, answer_of

ROUNDS = 6


@pytest.fixture
def queue_at(server, slots):
    """`queue_at(run_ms)`: a model whose runs take so long, full and with some rounds of requests waiting."""

    def fill(run_ms):
        model = server.new_model()
        model.checkpoint.set("run.ms", str(run_ms))
        answer_of(model.infer("measured"))
        model.checkpoint.hold("run")
        for number in range((ROUNDS + 1) * slots):
            model.infer(f"request {number}")
        model.wait_listed(active_slots=slots, queued_requests=ROUNDS * slots)
        return model

    return fill


def retry_after_s(refusal):
    assert refusal.result().status_code == 503
    return int(refusal.result().headers["retry-after"])


def test_retry_after_follows_how_long_runs_take(queue_at):
    found = []
    for run_ms in (400, 1200):
        model = queue_at(run_ms)
        found.append(retry_after_s(model.infer("refused", busy_timeout_ms=50)))
        model.checkpoint.unset("run.ms")
        model.checkpoint.release("run")

    quick, slow = found
    assert ROUNDS * 0.4 <= quick <= (ROUNDS + 1) * 0.4 * 1.5 + 1
    assert ROUNDS * 1.2 <= slow <= (ROUNDS + 1) * 1.2 * 1.5 + 1
    assert slow > quick


def test_retry_after_follows_the_queue(server, slots, queue_at):
    model = queue_at(700)
    full = retry_after_s(model.infer("refused", busy_timeout_ms=50))
    empty = server.new_model()
    empty.checkpoint.set("run.ms", "700")
    answer_of(empty.infer("measured"))
    empty.checkpoint.hold("run")
    for number in range(slots):
        empty.infer(f"running {number}")
    empty.wait_listed(active_slots=slots)
    assert retry_after_s(empty.infer("refused", busy_timeout_ms=50)) < full
    for it in (model, empty):
        it.checkpoint.unset("run.ms")


@pytest.mark.parametrize("manager", ["unload", "register"])
def test_a_manager_that_is_refused_is_told_when_to_come_back(queue_at, manager):
    model = queue_at(700)
    refusal = getattr(model, manager)(params={"busy_timeout_ms": 50})
    assert retry_after_s(refusal) >= ROUNDS * 0.7
    model.checkpoint.unset("run.ms")


def test_nobody_is_told_an_estimate_before_a_run_was_measured(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        calls = [model.infer(f"request {number}") for number in range(slots + 1)]
        model.wait_listed(active_slots=slots, queued_requests=1)
        assert [it["estimate_ms"] for it in model.status()["queue"]] == [None]
        dry = server.client.start("POST", UNLOAD, json={"id": model.id, "dry_run": True}).ok()
        assert dry["estimate_ms"] is None
    for call in calls:
        answer_of(call)


def test_each_waiter_waits_a_run_longer_than_who_has_its_slot_before_it(server, slots, queue_at):
    model = queue_at(300)
    model.unload()
    queue = model.wait_queue(*["infer"] * ROUNDS * slots, "unload")["queue"]

    estimates = [it["estimate_ms"] for it in queue]
    assert [it["position"] for it in queue] == list(range(1, len(queue) + 1))
    assert estimates == sorted(estimates)
    steps = [after - before for before, after in zip(estimates[:-1], estimates[slots:-1], strict=False)]
    assert max(steps) - min(steps) <= 2  # rounded
    assert min(steps) >= 299
    assert estimates[-1] >= estimates[-2] + min(steps) - 2  # the barrier waits for all of them
    dry = server.client.start("POST", UNLOAD, json={"id": model.id, "dry_run": True}).ok()
    assert dry["estimate_ms"] >= estimates[-1]
    model.checkpoint.unset("run.ms")


def test_status_names_what_each_waiter_waits_for(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        calls = [model.infer(f"running {number}") for number in range(slots)]
        model.wait_listed(active_slots=slots)
        calls.append(model.infer("first"))
        model.wait_queue("infer")
        model.unload()
        status = model.wait_queue("infer", "unload")
    leases = [f"lease:{number}" for number in range(slots)]
    assert [it["waits_for"] for it in status["queue"]] == [leases, [*leases, "waiter:1"]]
    assert [it["slot"] for it in status["leases"]] == list(range(slots))
    assert all(it["age_ms"] >= 0 for it in [*status["leases"], *status["queue"]])
    for call in calls:
        answer_of(call)
