"""The cells `time.*` about clients that leave. Ages are read from the server's own status."""

import pytest

from conformance_plugin import cell
from conformance_server import UNLOAD, answer_of
from conformance_situations import occupy
from conformance_standing import comes_to, seen, standing, wait_age

NOTICED_MS = 100
"""A client that left is noticed in far less."""


@cell("time.disconnect_queued")
@pytest.mark.parametrize("opened", ["open_infer", "open_stream", "open_batch"])
@pytest.mark.parametrize("reset", [False, True])
def test_time_disconnect_queued(server, slots, opened, reset):
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = occupy(model, slots, "running")
        leaving = getattr(model, opened)("left")
        model.wait_queue("infer")
        behind = model.infer("behind")
        model.wait_queue("infer", "infer")

        leaving.cut(reset=reset)

        # At once, while nothing has moved.
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"]))
    for call in [*running, behind]:
        answer_of(call)
    assert "left" not in model.runs()
    assert not model.checkpoint.events("prepare", "left")
    comes_to(model, standing("ready", slots=slots))


@cell("time.disconnect_queued")
def test_time_disconnect_queued_of_a_manager_changes_nothing(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        running = occupy(model, slots, "running")
        leaving = server.client.open("POST", UNLOAD, json={"id": model.id})
        model.wait_queue("unload")
        leaving.cut()
        wait_age(model, "queue", 0, NOTICED_MS)
        behind = model.infer("behind")
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=["unload", "infer"]))
    for call in [*running, behind]:
        answer_of(call)
    assert [event.step for event in model.checkpoint.events()].count("load") == 2  # what was behind it loaded again


@cell("time.disconnect_queued")
@pytest.mark.parametrize("opened", ["open_infer", "open_stream", "open_batch"])
def test_time_disconnect_queued_for_the_initialisation(server, slots, opened):
    model = server.new_model(loaded=False)
    loads = len(model.checkpoint.events("load"))
    with model.checkpoint.held("load"):
        leaving = [getattr(model, opened)("left") for _ in range(slots)]
        model.wait_listed(active_slots=slots)
        model.checkpoint.wait_for("load", loads + 1)
        wait_age(model, "leases", slots - 1, NOTICED_MS)
        for call in leaving:
            call.cut()
        unload = model.unload()
        model.wait_queue("unload")
        wait_age(model, "queue", 0, NOTICED_MS)
        # The slots are kept until the attempt has ended.
        assert seen(model) == standing("loading", slots=slots, leases=["infer"] * slots, queue=["unload"])
    assert unload.ok()["loaded"] is False
    assert model.runs() == []
    assert not model.checkpoint.events("prepare")
    order = [event.step for event in model.checkpoint.events()]
    assert order[-1] == "closed"
    assert order.count("load") == order.count("loaded") == loads + 1
    comes_to(model, standing("unloaded", slots=slots))


@cell("time.disconnect_executing")
@pytest.mark.parametrize("reset", [False, True])
def test_time_disconnect_executing(server, slots, reset):
    model = server.new_model()
    texts = ["left", *(f"healthy {number}" for number in range(slots - 1))]
    for text in texts:
        model.checkpoint.hold("run", text)
    leaving = model.open_infer("left")
    others = [model.infer(text) for text in texts[1:]]
    for text in texts:
        model.checkpoint.wait_for("run", text=text)
    behind = model.infer("behind")
    model.wait_queue("infer")

    leaving.cut(reset=reset)

    wait_age(model, "leases", 0, NOTICED_MS)
    wait_age(model, "queue", 0, NOTICED_MS)
    # The engine works on, and keeps its slot.
    assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["infer"])
    assert not model.checkpoint.events("ran", "left")
    model.checkpoint.release("run", "left")
    assert answer_of(behind).text == "behind"
    events = model.checkpoint.events()
    assert events.index(model.checkpoint.events("ran", "left")[0]) < events.index(
        model.checkpoint.events("run", "behind")[0]
    )
    for text in texts[1:]:
        model.checkpoint.release("run", text)
    for call in others:
        answer_of(call)
    comes_to(model, standing("ready", slots=slots))


@cell("time.disconnect_executing")
def test_time_disconnect_executing_an_engine_that_heeds_it(server, slots):
    model = server.new_model()
    model.checkpoint.set("run.cancellable")
    texts = ["left", *(f"healthy {number}" for number in range(slots - 1))]
    for text in texts:
        model.checkpoint.hold("run", text)
    leaving = model.open_infer("left")
    others = [model.infer(text) for text in texts[1:]]
    for text in texts:
        model.checkpoint.wait_for("run", text=text)
    behind = model.infer("behind")
    model.wait_queue("infer")

    leaving.cut()

    assert answer_of(behind).text == "behind"  # nobody took the hold of the one that left
    ran, ran_behind = model.checkpoint.events("ran", "left"), model.checkpoint.events("run", "behind")
    assert ran[0].t <= ran_behind[0].t
    assert ran[0].session == ran_behind[0].session
    for text in texts[1:]:
        model.checkpoint.release("run", text)
    for call in others:
        answer_of(call)
    comes_to(model, standing("ready", slots=slots))


@cell("time.disconnect_stream")
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("heeds", [False, True])
def test_time_disconnect_stream(server, slots, reset, heeds):
    model = server.new_model()
    if heeds:
        model.checkpoint.set("run.cancellable")
    model.checkpoint.hold("stream")
    leaving = [model.open_stream(f"left {number}") for number in range(slots)]
    for call in leaving:
        assert next(call.events())["type"] == "task.delta"
    manager = model.register()
    model.wait_queue("load")
    behind = model.infer("behind")
    model.wait_queue("load", "infer")

    for call in leaving:
        call.cut(reset=reset)

    if not heeds:
        wait_age(model, "queue", 1, NOTICED_MS)
        # The engines are not quiescent.
        assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["load", "infer"])
        model.checkpoint.release("stream")
    assert manager.ok()["loaded"] is True
    last = answer_of(behind)
    events = model.checkpoint.events()
    resets = [event.session for event in events if event.step == "reset"]
    assert sorted(resets) == sorted(set(resets))  # each session once
    assert len(resets) == slots
    assert last.session in resets
    ran_behind = events.index(model.checkpoint.events("run", "behind")[0])
    assert max(index for index, event in enumerate(events) if event.step == "reset") < ran_behind
    comes_to(model, standing("ready", slots=slots))


@cell("time.disconnect_stream")
def test_time_disconnect_stream_of_a_batch(server, slots):
    model = server.new_model()
    model.checkpoint.hold("run", "second")
    leaving = [model.open_batch("first", "second", "third") for _ in range(slots)]
    for call in leaving:
        assert next(call.events())["index"] == 0
    manager = model.unload()
    model.wait_queue("unload")

    for call in leaving:
        call.cut(reset=True)

    wait_age(model, "queue", 0, NOTICED_MS)
    assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["unload"])
    model.checkpoint.release("run", "second")
    assert manager.ok()["loaded"] is False
    assert model.runs().count("second") == slots
    comes_to(model, standing("unloaded", slots=slots))


@cell("time.disconnect_stream")
@pytest.mark.parametrize("opened", ["open_stream", "open_batch"])
def test_time_disconnect_stream_that_has_not_started(server, slots, opened):
    model = server.new_model()
    model.checkpoint.hold("prepare")
    leaving = [getattr(model, opened)("left") for _ in range(slots)]
    model.checkpoint.wait_for("prepare", slots)
    manager = model.unload()
    model.wait_queue("unload")
    wait_age(model, "leases", slots - 1, NOTICED_MS)

    for call in leaving:
        call.cut()

    wait_age(model, "queue", 0, NOTICED_MS)
    assert seen(model) == standing("ready", slots=slots, leases=["infer"] * slots, queue=["unload"])
    model.checkpoint.release("prepare")
    assert manager.ok()["loaded"] is False
    comes_to(model, standing("unloaded", slots=slots))
    assert answer_of(model.infer("afterwards")).text == "afterwards"
