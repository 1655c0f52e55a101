"""The cells `fail.*` about engines that fail at their work or at their end."""

import json

import pytest

from conformance_evidence import at_work, refusal, steps
from conformance_plugin import cell
from conformance_server import answer_of
from conformance_standing import comes_to, last_error, seen, standing


@cell("fail.prepare_execute")
@pytest.mark.parametrize("step", ["prepare", "run"])
def test_fail_prepare_execute(server, slots, step):
    model = server.new_model()
    texts = ["bad", *(f"healthy {number}" for number in range(slots - 1))]
    for text in texts:
        model.checkpoint.hold(step, text)
    model.checkpoint.set(f"{step}.fail.bad", "ValueError")
    running = [model.infer(text) for text in texts]
    for text in texts:
        model.checkpoint.wait_for(step, text=text)
    queued = []
    for number in range(3):
        queued.append(model.infer(f"queued {number}"))
        model.wait_queue(*["infer"] * len(queued))

    model.checkpoint.release(step, "bad")

    assert refusal(running[0]) == (500, "engine_error", None)
    assert [answer_of(call).text for call in queued] == ["queued 0", "queued 1", "queued 2"]
    assert [text for text in model.runs() if text.startswith("queued")] == ["queued 0", "queued 1", "queued 2"]
    model.wait_listed(active_slots=slots - 1, queued_requests=0, loaded=True)
    for text in texts[1:]:
        model.checkpoint.release(step, text)
    assert [answer_of(call).text for call in running[1:]] == texts[1:]
    comes_to(model, standing("ready", slots=slots))


@cell("fail.prepare_execute")
def test_fail_prepare_execute_after_the_headers(server, slots):
    model = server.new_model()
    model.checkpoint.set("stream.fail.bad", "ValueError")

    answer = model.open_stream("bad")
    events = list(answer.events())

    assert [event["type"] for event in events] == ["task.delta", "error"]
    error = events[-1]["error"]
    assert (error["type"], error["code"], error["param"]) == ("server_error", "engine_error", None)
    comes_to(model, standing("ready", slots=slots))
    at_work(model)


@cell("fail.prepare_execute")
@pytest.mark.parametrize("opened", ["open_stream", "open_batch"])
def test_fail_prepare_execute_before_the_headers(server, slots, opened):
    model = server.new_model()
    model.checkpoint.fail("prepare", "ValueError")

    answer = getattr(model, opened)("bad")

    assert answer.head().status == 500
    error = json.loads(answer.read())["error"]
    assert (error["type"], error["code"], error["param"]) == ("server_error", "engine_error", None)
    model.checkpoint.unset("prepare.fail")
    comes_to(model, standing("ready", slots=slots))
    at_work(model)


@cell("fail.slow_teardown")
def test_fail_slow_teardown(server, slots):
    model, other = server.new_model(), server.new_model()
    with model.checkpoint.held("destroy"):
        unload = model.unload()
        model.checkpoint.wait_for("destroy")

        assert seen(model) == standing("unloading", slots=slots, leases=["unload"])
        assert answer_of(other.infer("meanwhile")).text == "meanwhile"
        later = model.infer("later")
        model.wait_queue("infer")
        assert "closed" not in steps(model.checkpoint)

    assert unload.ok()["loaded"] is False
    assert answer_of(later).text == "later"
    assert steps(model.checkpoint, "load", "closed", "run") == ["load", "closed", "load", "run"]
    assert seen(model) == seen(other) == standing("ready", slots=slots)


@cell("fail.slow_teardown")
def test_fail_slow_teardown_that_hangs(fresh_server, slots):
    server = fresh_server()
    model, other = server.new_model(), server.new_model()
    model.checkpoint.set("destroy.hang")
    model.unload()
    model.checkpoint.wait_for("destroy")

    assert answer_of(other.infer("meanwhile")).text == "meanwhile"
    other.unload().ok()
    assert refusal(model.infer("in vain", busy_timeout_ms=50)) == (503, "server_busy", None)
    assert seen(model) == standing("unloading", slots=slots, leases=["unload"])
    assert seen(other) == standing("unloaded", slots=slots)
    server.kill()


@cell("fail.slow_teardown")
def test_fail_slow_teardown_that_raises(server, slots):
    model = server.new_model()
    model.checkpoint.fail("destroy")

    assert model.unload().ok()["loaded"] is False

    assert seen(model) == standing("unloaded", slots=slots, last_error=last_error(model))
    assert steps(model.checkpoint).count("destroy") == slots + 1  # each session's, and the weights'
    model.checkpoint.unset("destroy.fail")
    at_work(model)
    assert seen(model) == standing("ready", slots=slots)
