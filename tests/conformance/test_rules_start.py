"""The cells `rule.*` about the start: which runtime serves, and how many slots a model may have."""

import json

import pytest

from antiphon.runtime.audit import audits
from conformance_evidence import error_of, steps
from conformance_plugin import cell
from conformance_server import LOAD, answer_of
from conformance_situations import occupy
from conformance_standing import CAPACITY, seen, standing
from server_process import antiphon, error_lines

NOTICE = ("experimental", "coverage of lifecycles", "backends is incomplete")


def refused_at_start(folder, config, *flags):
    """The one line that a server leaves with."""
    file = folder / "refused.json"
    file.write_text(json.dumps(config))
    done = antiphon("serve", "--config", str(file), *flags)
    assert done.returncode == 1
    assert done.stderr.splitlines() == error_lines(done.stderr)
    return done.stderr


def controlled(folder, **fields):
    """One model of a configuration."""
    (folder / "v1").mkdir(exist_ok=True)
    return {"id": "m", "family": "controlled", "path": str(folder / "v1"), "task": "tts", "lazy": True, **fields}


@cell("rule.default_runtime")
def test_rule_default_runtime(shared_server):
    server = shared_server("serial")
    model = server.new_model()
    with model.checkpoint.held("run"):
        (first,) = occupy(model, 1)
        second = model.infer("second")
        model.wait_queue("infer")  # the guard is busy, so
        assert seen(model) == standing("ready", slots=None, leases=["infer"], queue=["infer"])

    assert [answer_of(call).session for call in (first, second)] == ["s1", "s1"]
    assert steps(model.checkpoint, "open", "clone") == ["open"]
    assert seen(model) == standing("ready", slots=None)


@cell("rule.default_rejects_slots")
@pytest.mark.parametrize("slots_field", [1, 2, None], ids=str)
def test_rule_default_rejects_slots(shared_server, slots_field):
    server = shared_server("serial")
    known, unknown = server.new_model(), server.unregistered_model()
    before = seen(known)
    for model in (known, unknown):
        body = {"id": model.id, "family": "controlled", "path": str(model.checkpoint.path), "task": "tts"}
        answer = server.client.call("POST", LOAD, json={**body, "slots": slots_field})
        assert answer.status_code == 400
        assert (error_of(answer)["type"], error_of(answer)["param"]) == ("invalid_request_error", "slots")
        assert "--parallel-jobs" in error_of(answer)["message"]

    assert seen(known) == before == standing("ready", slots=None)
    assert answer_of(known.infer("on")).session == "s1"  # the pool that there was
    assert server.client.call("GET", f"/v1/models/{unknown.id}").status_code == 404


@cell("rule.default_rejects_slots", "command")
@pytest.mark.parametrize("slots_field", [1, None], ids=str)
def test_rule_default_rejects_slots_at_the_start(tmp_path, slots_field):
    said = refused_at_start(tmp_path, {"models": [controlled(tmp_path, slots=slots_field)]})

    assert "slots" in said
    assert "--parallel-jobs" in said


@cell("rule.flag_selects_once")
def test_rule_flag_selects_once(fresh_server, slots):
    server = fresh_server(models={"first": {"slots": 1}})
    model = server.configured_model("first")
    counts = [1, slots, 1]
    for count in counts:
        model.register(slots=count).ok()
        assert seen(model) == standing("ready", slots=count)  # with fields that only ParallelServerState reports

    with model.checkpoint.held("run"):
        occupy(model, 1)
        model.infer("second")
        model.wait_listed(active_slots=1, queued_requests=1)
    assert server.process.log.read_text().count("experimental") == 1


@cell("rule.flag_selects_once")
def test_rule_flag_selects_once_and_without_it_no_count_selects_it(shared_server, slots):
    server = shared_server("serial")
    model = server.new_model()

    refused = server.client.call("POST", LOAD, json={"id": model.id, "slots": slots})

    assert refused.status_code == 400
    assert seen(model) == standing("ready", slots=None)


@cell("rule.slot_range")
@pytest.mark.parametrize("wrong", [True, "2", 1.5, 17, 0, -1, None], ids=repr)
def test_rule_slot_range(server, wrong):
    known, unknown = server.new_model(), server.unregistered_model()
    known.checkpoint.set("capacity", "16")
    before = seen(known)
    for model in (known, unknown):
        body = {"id": model.id, "family": "controlled", "path": str(model.checkpoint.path), "task": "tts"}
        answer = server.client.call("POST", LOAD, json={**body, "slots": wrong})
        assert answer.status_code == 400
        assert (error_of(answer)["type"], error_of(answer)["param"]) == ("invalid_request_error", "slots")

    assert seen(known) == before
    assert server.client.call("GET", f"/v1/models/{unknown.id}").status_code == 404


@cell("rule.slot_range")
def test_rule_slot_range_of_a_capable_session(server):
    model = server.unregistered_model()
    model.checkpoint.set("capacity", "16")
    for count in (1, 16):
        model.register(slots=count).ok()
        assert seen(model) == standing("ready", slots=count, capacity=16)


@cell("rule.slot_range")
def test_rule_slot_range_ends_at_the_sessions_capacity(server):
    model = server.new_model(slots=CAPACITY)

    answer = model.register(slots=CAPACITY + 1).result()

    assert (answer.status_code, error_of(answer)["param"]) == (400, "slots")
    assert seen(model) == standing("ready", slots=CAPACITY)


@cell("rule.slot_range", "command")
@pytest.mark.parametrize("wrong", [True, 17, None], ids=repr)
def test_rule_slot_range_at_the_start(tmp_path, wrong):
    said = refused_at_start(tmp_path, {"models": [controlled(tmp_path, slots=wrong)]}, "--parallel-jobs")

    assert "slots" in said
    assert "1 to 16" in said


@cell("rule.empty_admission_lists")
@pytest.mark.parametrize("device", ["cuda", "vulkan"])
def test_rule_empty_admission_lists(fresh_server, device):
    server = fresh_server(device=device)
    model = server.unregistered_model()
    model.checkpoint.set("capacity", "16")  # whatever its sessions advertise

    refused = model.register(slots=2).result()

    assert (refused.status_code, error_of(refused)["param"]) == (400, "slots")
    model.register(slots=1).ok()
    assert seen(model) == standing("ready", slots=1, capacity=1)
    assert answer_of(model.infer("one")).text == "one"


@cell("rule.empty_admission_lists")
def test_rule_empty_admission_lists_and_a_session_that_cannot_be_cloned(server):
    model = server.unregistered_model()
    model.checkpoint.set("capacity", "1")

    model.register(slots=1).ok()
    refused = model.register(slots=2).result()

    assert (refused.status_code, error_of(refused)["param"]) == (400, "slots")
    assert seen(model) == standing("ready", slots=1, capacity=1)


@cell("rule.empty_admission_lists", "command")
@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_rule_empty_admission_lists_admit_no_real_checkpoint(tmp_path, device):
    """Another family, whose sessions are those of the controlled engine, has one slot all the same."""
    (tmp_path / "stranger.py").write_text(
        "from antiphon.testing.controlled import ControlledAdapter\n\n\n"
        "class Stranger(ControlledAdapter):\n    family = 'stranger'\n"
    )
    file = tmp_path / "server.json"
    model = controlled(tmp_path, family="stranger", slots=2)
    file.write_text(json.dumps({"device": device, "models": [model]}))

    done = antiphon(
        "serve", "--parallel-jobs", "--family", "stranger:Stranger", "--config", str(file),
        env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip

    assert done.returncode == 1
    assert f"stranger on {device} may use 1" in done.stderr


@cell("rule.empty_admission_lists", "unit")
def test_rule_empty_admission_lists_name_no_other_device():
    assert {audit.device for audit in audits()} == {"cpu"}


@cell("rule.startup_notice")
def test_rule_startup_notice(shared_server):
    flagged, plain = (shared_server(name).process.log.read_text() for name in ("default", "serial"))

    assert all(words in flagged for words in NOTICE)
    assert not any(words in plain for words in NOTICE)
