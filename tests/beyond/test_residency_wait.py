"""`residency_wait_ms`: a load waits for a victim instead of being refused (QUE-01)."""

import pytest

from conformance_client import eventually
from conformance_server import answer_of


def waits_for_room(model):
    """Wait until a request of the model holds its slot and waits for the load, which waits for room."""
    model.wait_listed(active_slots=1, loaded=False)
    assert not model.checkpoint.events("load")


def refused(call):
    response = call.result()
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "server_busy"
    assert int(response.headers["retry-after"]) >= 1


@pytest.fixture
def crowd(lent_server, cold_model):
    """`crowd(count, name, **settings)`: a server, and models of which the first is loaded and no other ever was."""

    def gather(count, name="residency_wait", **settings):
        server = lent_server(name, **settings)
        models = [cold_model(server) for _ in range(count)]
        answer_of(models[0].infer("first"))
        return server, models

    return gather


def test_a_load_waits_until_a_victim_is_idle(crowd):
    _, (busy, wanted) = crowd(2)
    with busy.checkpoint.held("run"):
        running = busy.infer("running")
        busy.checkpoint.wait_for("run", text="running")
        waiting = wanted.infer("waiting")
        waits_for_room(wanted)

    assert answer_of(running).text == "running"
    assert answer_of(waiting).text == "waiting"
    done, gone = busy.checkpoint.events("ran", "running")[0], busy.checkpoint.events("destroy")[0]
    assert done.t < gone.t
    assert done.t < wanted.checkpoint.events("load")[0].t
    assert (busy.listed()["loaded"], wanted.listed()["loaded"]) == (False, True)


def test_a_load_waits_for_one_that_loads(crowd):
    _, (idle, busy, wanted) = crowd(3)
    with busy.checkpoint.held("load"):
        loading = busy.infer("loading")
        busy.checkpoint.wait_for("load")
        assert idle.listed()["loaded"] is False
        waiting = wanted.infer("waiting")
        waits_for_room(wanted)

    assert answer_of(loading).text == "loading"
    assert answer_of(waiting).text == "waiting"
    assert busy.checkpoint.events("ran")[0].t < wanted.checkpoint.events("load")[0].t


def test_loads_get_room_in_the_order_in_which_they_came(crowd):
    _, (busy, *wanted) = crowd(4)
    waiting = []
    with busy.checkpoint.held("run"):
        busy.infer("running")
        busy.checkpoint.wait_for("run", text="running")
        for number, model in enumerate(wanted):
            waiting.append(model.infer(f"waiting {number}"))
            waits_for_room(model)

    assert [answer_of(call).text for call in waiting] == ["waiting 0", "waiting 1", "waiting 2"]
    loads = [model.checkpoint.events("load")[0].t for model in wanted]
    assert loads == sorted(loads)
    assert [model.listed()["loaded"] for model in (busy, *wanted)] == [False, False, False, True]


def test_a_load_that_waits_stands_in_no_victims_queue(crowd):
    _, (busy, wanted) = crowd(2)
    with busy.checkpoint.held("run"):
        running = [busy.infer(f"running {number}") for number in range(2)]
        busy.wait_listed(active_slots=2)
        waiting = wanted.infer("waiting")
        waits_for_room(wanted)
        later = busy.infer("later")
        busy.wait_queue("infer")  # and nothing else

    for call in [*running, later, waiting]:
        answer_of(call)
    assert busy.checkpoint.events("ran")[-1].t < wanted.checkpoint.events("load")[0].t  # the later request came first


def test_a_warm_request_passes_a_load_that_waits(crowd):
    _, (busy, wanted) = crowd(2)
    with busy.checkpoint.held("run", "running"):
        busy.infer("running")
        busy.checkpoint.wait_for("run", text="running")
        waiting = wanted.infer("waiting")
        waits_for_room(wanted)
        assert answer_of(busy.infer("warm")).text == "warm"
        assert wanted.checkpoint.events() == []
    answer_of(waiting)


def test_a_victim_that_is_never_idle_refuses_at_the_end(crowd):
    _, (busy, wanted) = crowd(2, residency_wait_ms=200)
    with busy.checkpoint.held("run"):
        running = busy.infer("running")
        busy.checkpoint.wait_for("run", text="running")

        refused(wanted.infer("waiting"))

        assert wanted.checkpoint.events() == []
        wanted.wait_listed(active_slots=0, queued_requests=0, loaded=False)
        assert busy.listed()["loaded"] is True
    answer_of(running)
    answer_of(wanted.infer("again"))
    assert busy.listed()["loaded"] is False


def test_the_end_of_one_wait_leaves_the_next_in_line(crowd):
    """The first who waits is unloaded's neighbour no longer: its place in the line goes to who came after it."""
    _, (busy, first, second) = crowd(3, residency_wait_ms=1500)
    with busy.checkpoint.held("run"):
        busy.infer("running")
        busy.checkpoint.wait_for("run", text="running")
        early = first.infer("early")
        waits_for_room(first)
        eventually(first.status, lambda it: it["leases"][0]["age_ms"] > 700, "half of the wait")
        late = second.infer("late")
        waits_for_room(second)
        refused(early)
    assert answer_of(late).text == "late"
    assert first.checkpoint.events() == []


def test_without_a_wait_the_load_is_refused_and_the_victim_whole(crowd):
    _, (busy, wanted) = crowd(2, "residency_limit_1")
    with busy.checkpoint.held("run"):
        running = busy.infer("running")
        busy.checkpoint.wait_for("run", text="running")
        refused(wanted.infer("refused"))
    assert answer_of(running).text == "running"
    assert not busy.checkpoint.events("destroy")
    assert wanted.checkpoint.events() == []


def test_without_a_wait_a_model_that_loads_is_no_victim(crowd):
    _, (idle, busy, wanted) = crowd(3, "residency_limit_1")
    with busy.checkpoint.held("load"):
        loading = busy.infer("loading")
        busy.checkpoint.wait_for("load")
        refused(wanted.infer("refused"))
        assert busy.status()["state"] == "loading"
    assert answer_of(loading).text == "loading"
    assert idle.listed()["loaded"] is False
    assert not busy.checkpoint.events("destroy")


def test_an_explicit_load_waits_for_room_too(crowd):
    server, (busy, _) = crowd(2)
    new = server.unregistered_model()
    with busy.checkpoint.held("run"):
        busy.infer("running")
        busy.checkpoint.wait_for("run", text="running")
        loading = new.register()
        eventually(new.listed, lambda it: it.get("loaded") is False, "the registration")
        assert new.status()["leases"][0]["operation"] == "load"
        assert new.checkpoint.events() == []
    assert loading.ok()["loaded"] is True
    assert busy.listed()["loaded"] is False


def test_unloading_the_resident_model_makes_room(crowd):
    _, (resident, wanted) = crowd(2)
    with resident.checkpoint.held("run"):
        running = resident.infer("running")
        resident.checkpoint.wait_for("run", text="running")
        waiting = wanted.infer("waiting")
        waits_for_room(wanted)
        resident.checkpoint.hold("destroy")
        unload = resident.unload()
        resident.wait_queue("unload")
    answer_of(running)
    assert answer_of(waiting).text == "waiting"  # while the teardown goes on: a retired model takes no place
    resident.checkpoint.release("destroy")
    unload.ok()
