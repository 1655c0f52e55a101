"""`strategy: "side_by_side"`: the replacement is built beside the working pool, and takes its place in its turn."""

import pytest

from conformance_server import answer_of

ASIDE = {"strategy": "side_by_side"}


def test_the_old_pool_works_while_the_new_one_is_built(server):
    model = server.new_model()
    v2 = model.replacement("v2")
    with v2.held("load"):
        swap = model.register(path=str(v2.path), **ASIDE)
        v2.wait_for("load")

        assert answer_of(model.infer("meanwhile")).revision == "v1"
        status = model.status()
        assert (status["state"], status["loaded"], status["leases"], status["queue"]) == ("ready", True, [], [])

    assert swap.ok()["loaded"] is True
    assert answer_of(model.infer("afterwards")).revision == "v2"
    assert v2.events("clone")[-1].t < model.checkpoint.events("destroy")[0].t  # never without a pool
    assert model.checkpoint.events("closed")


def test_it_enters_the_queue_as_a_manager_and_flips(server, slots):
    model = server.new_model()
    v2 = model.replacement("v2")
    with model.checkpoint.held("run"):
        earlier = [model.infer(f"earlier {number}") for number in range(slots + 1)]
        model.wait_queue("infer")
        swap = model.register(path=str(v2.path), **ASIDE)
        model.wait_queue("infer", "load")
        v2.wait_for("clone")  # it was built before it entered
        later = model.infer("later")
        model.wait_queue("infer", "load", "infer")

    assert {answer_of(call).revision for call in earlier} == {"v1"}
    assert swap.ok()["loaded"] is True
    assert answer_of(later).revision == "v2"
    assert len(v2.events("load")) == 1


def test_another_count_of_slots_comes_with_it(server, slots):
    model = server.new_model()
    v2 = model.replacement("v2")
    model.register(path=str(v2.path), slots=4, **ASIDE).ok()
    assert {"slots": 4, "max_parallel_slots": 4, "loaded": True}.items() <= model.listed().items()
    with v2.held("run"):
        calls = [model.infer(f"all {number}") for number in range(4)]
        model.wait_listed(active_slots=4)
    assert len({answer_of(call).session for call in calls}) == 4


@pytest.mark.parametrize("step", ["load", "open", "clone"])
def test_a_failure_leaves_the_old_pool_untouched(server, step):
    model = server.new_model()
    v2, before, earlier = model.replacement("v2"), model.status(), model.checkpoint.events()
    v2.fail(step)

    assert model.register(path=str(v2.path), **ASIDE).result().status_code == 500

    assert model.status() == before
    assert model.checkpoint.events() == earlier
    assert len(v2.events("loaded")) == len(v2.events("closed"))
    assert answer_of(model.infer("still")).revision == "v1"


def test_too_many_slots_leave_the_old_pool_untouched(server):
    model = server.new_model()
    v2, before = model.replacement("v2"), model.listed()
    v2.set("capacity", "1")

    refusal = model.register(path=str(v2.path), **ASIDE).result()

    assert (refusal.status_code, refusal.json()["error"]["param"]) == (400, "slots")
    assert model.listed() == before
    assert v2.events()[-1].step == "closed"
    assert answer_of(model.infer("still")).revision == "v1"


def test_a_wait_that_ends_discards_what_was_built(server, slots):
    model = server.new_model()
    v2 = model.replacement("v2")
    with model.checkpoint.held("run"):
        running = [model.infer(f"running {number}") for number in range(slots)]
        model.wait_listed(active_slots=slots)

        refusal = model.register(path=str(v2.path), params={"busy_timeout_ms": 200}, **ASIDE).result()

        assert (refusal.status_code, refusal.json()["error"]["code"]) == (503, "server_busy")
        assert v2.events()[-1].step == "closed"
    assert {answer_of(call).revision for call in running} == {"v1"}
    assert not model.checkpoint.events("destroy")


def test_it_counts_twice_while_it_is_built(lent_server):
    server = lent_server("residency_limit_2")
    model, other = server.new_model(), server.new_model()
    v2, before = model.replacement("v2"), model.status()

    refusal = model.register(path=str(v2.path), **ASIDE).result()

    assert (refusal.status_code, refusal.json()["error"]["code"]) == (503, "server_busy")
    assert (model.status(), other.listed()["loaded"], v2.events()) == (before, True, [])

    other.unload().ok()
    with v2.held("load"):
        swap = model.register(path=str(v2.path), **ASIDE)
        v2.wait_for("load")
        assert other.infer("no room").result().status_code == 503
    swap.ok()
    answer_of(other.infer("room again"))
    assert model.listed()["loaded"] is True


def test_no_memory_for_two_leaves_the_old_pool_untouched(lent_server):
    server = lent_server(min_free_memory_mb=1)
    model = server.new_model()
    v2, before = model.replacement("v2"), model.status()
    v2.set("bytes", str(2**60))

    refusal = model.register(path=str(v2.path), **ASIDE).result()

    assert (refusal.status_code, refusal.json()["error"]["code"]) == (503, "insufficient_memory")
    assert (model.status(), v2.events()) == (before, [])


def test_an_entry_that_changed_meanwhile_is_replaced_in_the_ordinary_way(server):
    model = server.new_model()
    v2, v3 = model.replacement("v2"), model.replacement("v3")
    with v2.held("load"):
        swap = model.register(path=str(v2.path), **ASIDE)
        v2.wait_for("load")
        model.register(path=str(v3.path)).ok()

    assert swap.ok()["loaded"] is True
    assert answer_of(model.infer("afterwards")).revision == "v2"
    steps = [event.step for event in v2.events()]
    assert steps.count("load") == 2
    assert steps.index("closed") < len(steps) - 1 - steps[::-1].index("load")  # discarded before the second is built
    assert v3.events()[-1].step == "closed"


def test_a_model_that_was_unloaded_meanwhile_is_loaded_in_the_ordinary_way(server):
    model = server.new_model()
    v2 = model.replacement("v2")
    with v2.held("load"):
        swap = model.register(path=str(v2.path), **ASIDE)
        v2.wait_for("load")
        model.unload().ok()
    assert swap.ok()["loaded"] is True
    assert answer_of(model.infer("afterwards")).revision == "v2"


def test_a_client_that_leaves_does_not_stop_it(server):
    model = server.new_model()
    v2 = model.replacement("v2")
    with v2.held("load"):
        body = {"id": model.id, "family": "controlled", "path": str(v2.path), "task": "tts", "slots": 2, **ASIDE}
        leaving = server.client.open("POST", "/v1/models/load", json=body)
        v2.wait_for("load")
        leaving.cut()
    model.checkpoint.wait_for("closed")
    assert answer_of(model.infer("afterwards")).revision == "v2"
