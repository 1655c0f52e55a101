"""The cells `fail.*`: what a failure leaves behind, wherever it strikes."""

import asyncio
from pathlib import Path

import pytest

from antiphon.audio.decode import DecodeLimits
from antiphon.packages import Installer
from antiphon.runtime.clock import LoopClock
from antiphon.runtime.codecs import ThreadCodec
from antiphon.runtime.hosts.thread import ThreadHost
from antiphon.runtime.parallel import ParallelServerState
from antiphon.runtime.wiring import RuntimePorts
from antiphon.service.models_root import ModelsRoot
from antiphon.testing import ControlledAdapter, ControlledCheckpoint
from antiphon.vocabulary.errors import InvalidRequest, PackageError
from antiphon.vocabulary.spec import Registration
from conformance_plugin import cell
from conformance_server import answer_of

NO_MEMORY_HAS_SO_MUCH = str(2**60)
BEYOND_CAPACITY = 5


def error_of(call):
    """The status and the error of a refusal."""
    response = call.result()
    assert response.status_code >= 400, response.text
    return response.status_code, response.json()["error"]


def refused(call, status, code=None, param=None):
    """Check a refusal's status, code and param."""
    found, error = error_of(call)
    assert (found, error["code"], error["param"]) == (status, code, param), error


def snapshot(model):
    """All that the server says of a model that nobody uses."""
    return model.listed(), model.status()


def steps(checkpoint):
    """The engine's steps so far, by name."""
    return [event.step for event in checkpoint.events()]


def at_work(model, revision="v1"):
    """Check that the model answers, from the pool that it had."""
    assert answer_of(model.infer("at work")).revision == revision


def unloaded(model, *, slots):
    """Check that nothing of the model is resident or leased, and that it is registered with so many slots."""
    listed, status = snapshot(model)
    wanted = {"loaded": False, "slots": slots, "active_slots": 0, "queued_requests": 0, "max_parallel_slots": None}
    assert wanted.items() <= listed.items()
    assert {"state": "unloaded", "leases": [], "queue": [], **wanted}.items() <= status.items()


def nothing_left_open(checkpoint):
    """Check that what was opened is closed, and sessions before their weights."""
    opened, open_sessions = 0, 0
    for event in checkpoint.events():
        match event.step:
            case "loaded":
                opened += 1
            case "session_closed":
                open_sessions -= 1
            case "closed":
                opened -= 1
                assert open_sessions <= 0, "weights went before their sessions"
                open_sessions = 0
    assert opened == 0


@cell("fail.invalid_metadata")
@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("task", {"task": "juggle"}),
        ("mode", {"mode": "sideways"}),
        ("path", {"path": "/there/is/no/such/checkpoint"}),
        ("family", {"family": "nobody"}),
        ("slots", {"slots": 0}),
        ("slots", {"slots": 17}),
        ("slots", {"slots": "2"}),
        ("slots", {"slots": True}),
        ("slots", {"slots": 1.5}),
        ("busy_timeout_ms", {"busy_timeout_ms": -1}),
        ("pinned", {"pinned": "yes"}),
        ("threads", {"threads": 0}),
        ("load_options", {"load_options": []}),
        ("session_options", {"session_options": {"capacity": "many"}}),
        ("preset", {"preset": "loud"}),
        ("strategy", {"strategy": "hope"}),
        ("dry_run", {"dry_run": "perhaps"}),
    ],
)
def test_fail_invalid_metadata(server, slots, param, fields):
    model = server.new_model()
    before, earlier = snapshot(model), model.checkpoint.events()

    status, error = error_of(model.register(**fields))

    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert snapshot(model) == before
    assert model.checkpoint.events() == earlier
    at_work(model)


@cell("fail.invalid_metadata")
def test_fail_invalid_metadata_of_a_new_id_publishes_nothing(server, slots):
    model = server.unregistered_model()

    assert error_of(model.register(slots=slots + 16))[1]["param"] == "slots"
    assert error_of(model.register(task="juggle"))[1]["param"] == "task"

    assert server.client.call("GET", f"/v1/models/{model.id}").status_code == 404
    assert model.checkpoint.events() == []


@cell("fail.invalid_metadata")
def test_fail_invalid_metadata_by_a_fault_that_nobody_mapped(server, slots):
    model = server.new_model()
    before = snapshot(model)
    model.checkpoint.fail("inspect", "ZeroDivisionError")

    refused(model.register(slots=slots), 500, "engine_error")

    assert snapshot(model) == before
    model.checkpoint.unset("inspect.fail")
    at_work(model)


@cell("fail.unsupported_capacity")
def test_fail_unsupported_capacity(server, slots):
    model = server.new_model()
    before, earlier = snapshot(model), steps(model.checkpoint)

    status, error = error_of(model.register(slots=BEYOND_CAPACITY))

    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", "slots")
    assert snapshot(model) == before
    assert steps(model.checkpoint) == earlier  # neither a teardown nor a load
    at_work(model)
    other = slots % 4 + 1
    model.register(slots=other).ok()
    assert {"loaded": True, "slots": other, "max_parallel_slots": 4}.items() <= model.listed().items()
    at_work(model)


@cell("fail.unsupported_capacity")
def test_fail_unsupported_capacity_behind_running_work(server, slots):
    model = server.new_model()
    with model.checkpoint.held("run"):
        earlier = [model.infer(f"earlier {number}") for number in range(slots)]
        model.wait_listed(active_slots=slots)
        refusal = model.register(slots=BEYOND_CAPACITY)
        model.wait_queue("load")
        later = model.infer("later")
        model.wait_queue("load", "infer")

    refused(refusal, 400, param="slots")
    assert {answer_of(call).text for call in earlier} == {f"earlier {number}" for number in range(slots)}
    assert answer_of(later).revision == "v1"
    assert steps(model.checkpoint).count("load") == 1
    listed = model.wait_listed(active_slots=0)
    assert {"loaded": True, "slots": slots, "queued_requests": 0, "max_parallel_slots": 4}.items() <= listed.items()


@cell("fail.unsupported_capacity")
def test_fail_unsupported_capacity_of_a_model_that_is_not_loaded(server, slots):
    model = server.new_model(loaded=False)
    before = model.listed()

    refused(model.register(slots=BEYOND_CAPACITY), 400, param="slots")

    assert model.listed() == before
    nothing_left_open(model.checkpoint)
    at_work(model)


@cell("fail.capacity_probe")
def test_fail_capacity_probe(server, slots):
    """Unchanged inputs of a session: the live pool's capacity counts, whatever the files say by now."""
    model = server.new_model()
    model.checkpoint.set("capacity", "16")
    before, earlier = snapshot(model), steps(model.checkpoint)

    refused(model.register(slots=BEYOND_CAPACITY), 400, param="slots")

    assert steps(model.checkpoint) == earlier  # no session was opened to learn that
    assert snapshot(model) == before
    at_work(model)


@cell("fail.capacity_probe")
def test_fail_capacity_probe_over_the_loaded_weights(server, slots):
    model = server.new_model()
    before, earlier = snapshot(model), steps(model.checkpoint)

    refused(model.register(session_options={"capacity": 1}), 400, param="slots")

    assert steps(model.checkpoint)[len(earlier) :] == ["open", "destroy", "session_closed"]
    assert snapshot(model) == before
    at_work(model)

    earlier = steps(model.checkpoint)
    model.register(session_options={"capacity": slots}).ok()
    probe, rest = steps(model.checkpoint)[len(earlier) :][:3], steps(model.checkpoint)[len(earlier) + 3 :]
    assert probe == ["open", "destroy", "session_closed"]  # then the old pool goes, and the new one comes
    assert rest.index("closed") < rest.index("load")
    assert {"loaded": True, "max_parallel_slots": slots}.items() <= model.listed().items()


@cell("fail.capacity_probe")
@pytest.mark.parametrize(("file", "code"), [("open.fail", "engine_error"), ("session.null", "load_failed")])
def test_fail_capacity_probe_that_fails(server, slots, file, code):
    model = server.new_model()
    before = snapshot(model)
    model.checkpoint.set(file)

    refused(model.register(session_options={"capacity": slots}), 500, code)

    assert snapshot(model) == before
    assert "closed" not in steps(model.checkpoint)
    model.checkpoint.unset(file)
    at_work(model)


@cell("fail.capacity_probe")
def test_fail_capacity_probe_of_another_checkpoint(server, slots):
    model = server.new_model()
    before, v2 = snapshot(model), model.replacement("v2")
    v2.set("capacity", "1")
    with v2.held("open"):
        refusal = model.register(path=str(v2.path))
        v2.wait_for("open")
        assert model.status()["state"] == "reconfiguring"
        assert "destroy" not in steps(model.checkpoint)  # both weights are there

    refused(refusal, 400, param="slots")
    assert snapshot(model) == before
    nothing_left_open(v2)
    at_work(model)

    v2.set("capacity", "4")
    model.register(path=str(v2.path)).ok()
    loads, torn_down = v2.events("load"), model.checkpoint.events("destroy")
    assert len(loads) == 2  # what the probe had loaded became the pool
    assert loads[-1].t < v2.events("open")[-1].t < torn_down[0].t < v2.events("clone")[0].t
    at_work(model, "v2")


@cell("fail.capacity_probe")
@pytest.mark.parametrize("step", ["load", "open"])
def test_fail_capacity_probe_of_another_checkpoint_that_fails(server, slots, step):
    model = server.new_model()
    before, v2 = snapshot(model), model.replacement("v2")
    v2.fail(step)

    refused(model.register(path=str(v2.path)), 500, "load_failed")

    assert snapshot(model) == before
    nothing_left_open(v2)
    at_work(model)


@cell("fail.capacity_probe")
def test_fail_capacity_probe_evicts_nobody(fresh_server, slots):
    server = fresh_server("residency_limit_2", min_free_memory_mb=1)
    model, other = server.new_model(), server.new_model()
    before, v2 = snapshot(model), model.replacement("v2")
    v2.set("bytes", NO_MEMORY_HAS_SO_MUCH)

    refused(model.register(path=str(v2.path)), 503, "insufficient_memory")
    assert snapshot(model) == before
    assert v2.events() == []
    assert other.listed()["loaded"] is True

    v2.unset("bytes")
    model.register(path=str(v2.path)).ok()
    at_work(model, "v2")
    assert other.listed()["loaded"] is True
    assert "destroy" not in steps(other.checkpoint)


@cell("fail.post_commit_load")
def test_fail_post_commit_load(server, slots):
    model = server.new_model()
    v2, count = model.replacement("v2"), 3 if slots == 4 else slots + 1
    v2.fail("clone")  # the probe succeeds before

    refused(model.register(path=str(v2.path), slots=count), 500, "load_failed")

    assert model.checkpoint.events("closed")[0].t < v2.events("clone")[0].t
    unloaded(model, slots=count)
    assert model.status()["last_error"]
    nothing_left_open(v2)
    v2.unset("clone.fail")
    at_work(model, "v2")  # the next request tries again
    assert model.status()["last_error"] is None
    assert steps(model.checkpoint).count("load") == 1  # and what was before does not come back


@cell("fail.post_commit_load")
def test_fail_post_commit_load_without_a_probe(server, slots):
    model = server.new_model()
    v2 = model.replacement("v2")
    v2.fail("load")

    refused(model.register(path=str(v2.path), slots=1), 500, "load_failed")

    assert model.checkpoint.events("closed")[0].t < v2.events("load")[0].t
    unloaded(model, slots=1)
    assert "loaded" not in steps(v2)
    refused(model.infer("too early"), 500, "load_failed")
    v2.unset("load.fail")
    at_work(model, "v2")


@cell("fail.post_commit_load")
@pytest.mark.parametrize("step", ["inspect", "load", "open", "clone"])
def test_fail_post_commit_load_side_by_side_keeps_the_old_pool(server, slots, step):
    model = server.new_model()
    before, earlier, v2 = snapshot(model), steps(model.checkpoint), model.replacement("v2")
    v2.fail(step)

    status, _ = error_of(model.register(path=str(v2.path), slots=max(2, slots), strategy="side_by_side"))

    assert status == 500
    assert snapshot(model) == before
    assert steps(model.checkpoint) == earlier
    nothing_left_open(v2)
    at_work(model)


@cell("fail.initial_load")
@pytest.mark.parametrize(
    "file", ["load.fail", "open.fail", "session.null", "clone.fail", "clone.null", "clone.differs"]
)
def test_fail_initial_load(server, slots, file):
    count = max(2, slots) if file.startswith("clone") else slots  # one slot has no clone
    model = server.new_model(loaded=False, slots=count)
    earlier = len(model.checkpoint.events())
    text = "sample_rate" if file == "clone.differs" else ""
    with model.checkpoint.held("load"):
        admitted = [model.infer(f"admitted {number}") for number in range(count)]
        model.wait_listed(active_slots=count)
        queued = model.infer("queued")
        model.wait_listed(active_slots=count, queued_requests=1)
        model.checkpoint.set(file, text)

    for call in [*admitted, queued]:
        refused(call, 500, "load_failed")
    assert model.runs() == []
    unloaded(model, slots=count)
    assert model.status()["last_error"]
    nothing_left_open(model.checkpoint)
    attempts = [event.step for event in model.checkpoint.events()[earlier:]].count("load")
    assert attempts == 2  # those admitted shared one, and who was admitted then had another
    model.checkpoint.unset(file)
    at_work(model)
    assert {"loaded": True, "active_slots": 0, "max_parallel_slots": 4}.items() <= model.listed().items()


@cell("fail.initial_load")
def test_fail_initial_load_lets_others_try_again(server, slots):
    model = server.new_model(loaded=False)
    model.checkpoint.fail("open")
    model.checkpoint.hold("open")
    admitted = [model.infer(f"admitted {number}") for number in range(slots)]
    model.wait_listed(active_slots=slots)
    queued = model.infer("queued")
    model.wait_queue("infer")
    model.checkpoint.hold("load")
    model.checkpoint.release("open")
    for call in admitted:
        refused(call, 500, "load_failed")
    model.wait_listed(active_slots=1, queued_requests=0, loaded=False)  # it was granted what the failed ones gave back
    model.checkpoint.unset("open.fail")
    model.checkpoint.release("load")

    assert answer_of(queued).text == "queued"
    assert model.runs() == ["queued"]
    assert {"loaded": True, "max_parallel_slots": 4}.items() <= model.wait_listed(active_slots=0).items()


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

    refused(running[0], 500, "engine_error")
    assert [answer_of(call).text for call in queued] == ["queued 0", "queued 1", "queued 2"]
    assert [text for text in model.runs() if text.startswith("queued")] == ["queued 0", "queued 1", "queued 2"]
    model.wait_listed(active_slots=slots - 1, queued_requests=0, loaded=True)
    for text in texts[1:]:
        model.checkpoint.release(step, text)
    assert [answer_of(call).text for call in running[1:]] == texts[1:]
    model.wait_listed(active_slots=0, queued_requests=0, loaded=True)


@cell("fail.prepare_execute")
def test_fail_prepare_execute_after_the_headers(server, slots):
    model = server.new_model()
    model.checkpoint.set("stream.fail.bad", "ValueError")

    answer = model.open_stream("bad")
    events = list(answer.events())

    assert [event["type"] for event in events] == ["task.delta", "error"]
    assert events[-1]["error"]["code"] == "engine_error"
    assert {"active_slots": 0, "loaded": True}.items() <= model.wait_listed(active_slots=0).items()
    at_work(model)


@cell("fail.prepare_execute")
@pytest.mark.parametrize("opened", ["open_stream", "open_batch"])
def test_fail_prepare_execute_before_the_headers(server, slots, opened):
    model = server.new_model()
    model.checkpoint.fail("prepare", "ValueError")

    answer = getattr(model, opened)("bad")

    assert answer.head().status == 500
    model.checkpoint.unset("prepare.fail")
    model.wait_listed(active_slots=0, loaded=True)
    at_work(model)


@cell("fail.publication")
@pytest.mark.parametrize(("fault", "status"), [("RuntimeError", 500), ("MemoryError", 503), ("ConfigError", 400)])
def test_fail_publication(server, slots, fault, status):
    model = server.unregistered_model()
    known = server.status()
    model.checkpoint.fail("inspect", fault)

    assert error_of(model.register())[0] == status

    assert server.status() == known
    assert server.client.call("GET", f"/v1/models/{model.id}").status_code == 404
    assert error_of(model.unload())[0] == 404
    assert model.checkpoint.events() == []
    model.checkpoint.unset("inspect.fail")
    model.register().ok()
    at_work(model)


class Nobody:
    """An observer that forgets, and a meter of endless memory."""

    def transitioned(self, model_id, before, after):
        pass

    def failed(self, model_id, what, error):
        pass

    def available_bytes(self):
        return 2**60


@cell("fail.publication", "unit")
def test_fail_publication_for_want_of_memory(slots, tmp_path):
    """The last allocation before the entry is inserted fails: the gate that was staged for it is gone again."""
    checkpoint, wants = ControlledCheckpoint(tmp_path / "v1"), iter([MemoryError()])

    def max_slots_of(spec):
        for fault in wants:
            raise fault
        return 4

    async def scenario():
        codec = ThreadCodec(DecodeLimits(max_seconds=60), 0, threads=1)
        ports = RuntimePorts(
            LoopClock(),
            codec,
            Nobody(),
            lambda spec, on_death: ThreadHost(ControlledAdapter(), spec),
            Nobody(),
            0,
            max_slots_of=max_slots_of,
        )
        runtime = ParallelServerState(ports)
        registration = Registration(checkpoint.spec(slots=slots), lazy=True, busy_timeout_ms=None)
        with pytest.raises(MemoryError):
            await runtime.register(registration)
        assert (runtime.views(), runtime.status(), checkpoint.events()) == ((), (), [])
        assert (await runtime.register(registration)).loaded
        await runtime.close()
        codec.close()

    asyncio.run(scenario())


@cell("fail.residency_memory")
def test_fail_residency_memory(fresh_server, slots):
    server = fresh_server("residency_limit_1")
    busy, wanted = server.new_model(), server.unregistered_model()
    with busy.checkpoint.held("run"):
        running = busy.infer("running")
        busy.checkpoint.wait_for("run")

        refusal = wanted.register()

        refused(refusal, 503, "server_busy")
        assert int(refusal.result().headers["retry-after"]) >= 1
        unloaded(wanted, slots=slots)
        assert wanted.checkpoint.events() == []
        refused(wanted.infer("not now"), 503, "server_busy")
        assert {"loaded": True, "active_slots": 1}.items() <= busy.listed().items()
    assert answer_of(running).text == "running"
    at_work(wanted)  # an idle victim makes room
    assert busy.listed()["loaded"] is False


@cell("fail.residency_memory")
def test_fail_residency_memory_keeps_an_eviction(fresh_server, slots):
    server = fresh_server("residency_limit_1", min_free_memory_mb=1)
    victim, wanted = server.new_model(), server.unregistered_model()
    wanted.checkpoint.set("bytes", NO_MEMORY_HAS_SO_MUCH)
    with victim.checkpoint.held("destroy"):
        refusal = wanted.register()
        victim.checkpoint.wait_for("destroy")
        status = victim.status()  # retired, and yet not gone: its memory is waited for
        assert (status["state"], status["loaded"], status["max_parallel_slots"]) == ("unloading", False, None)
        assert [it["operation"] for it in wanted.status()["leases"]] == ["load"]
        assert wanted.listed()["loaded"] is False

    refused(refusal, 503, "insufficient_memory")
    assert int(refusal.result().headers["retry-after"]) >= 1
    unloaded(wanted, slots=slots)
    assert wanted.checkpoint.events() == []
    victim.wait_state("unloaded")  # for good: the eviction is not undone
    assert steps(victim.checkpoint)[-1] == "closed"
    assert steps(victim.checkpoint).count("load") == 1


@cell("fail.residency_memory")
def test_fail_residency_memory_of_the_engine(server, slots):
    model = server.new_model(loaded=False)
    model.checkpoint.fail("load", "MemoryError")

    refused(model.infer("too much"), 503, "insufficient_memory")

    unloaded(model, slots=slots)
    model.checkpoint.unset("load.fail")
    at_work(model)


@cell("fail.slow_teardown")
def test_fail_slow_teardown(server, slots):
    model, other = server.new_model(), server.new_model()
    with model.checkpoint.held("destroy"):
        unload = model.unload()
        model.checkpoint.wait_for("destroy")

        listed, status = snapshot(model)
        wanted = {"loaded": False, "slots": slots, "active_slots": 0, "max_parallel_slots": None}
        assert wanted.items() <= listed.items()
        assert {"state": "unloading", **wanted}.items() <= status.items()
        assert [(it["slot"], it["operation"]) for it in status["leases"]] == [(None, "unload")]
        assert answer_of(other.infer("meanwhile")).text == "meanwhile"
        later = model.infer("later")
        model.wait_queue("infer")
        assert "closed" not in steps(model.checkpoint)

    assert unload.ok()["loaded"] is False
    assert answer_of(later).text == "later"
    order = steps(model.checkpoint)
    assert order.index("closed") < len(order) - 1 - order[::-1].index("load")


@cell("fail.slow_teardown")
def test_fail_slow_teardown_that_hangs(fresh_server, slots):
    server = fresh_server()
    model, other = server.new_model(), server.new_model()
    model.checkpoint.set("destroy.hang")
    model.unload()
    model.checkpoint.wait_for("destroy")

    assert answer_of(other.infer("meanwhile")).text == "meanwhile"
    other.unload().ok()
    refused(model.infer("in vain", busy_timeout_ms=50), 503, "server_busy")
    assert model.status()["state"] == "unloading"
    server.kill()


@cell("fail.slow_teardown")
def test_fail_slow_teardown_that_raises(server, slots):
    model = server.new_model()
    model.checkpoint.fail("destroy")

    assert model.unload().ok()["loaded"] is False

    unloaded(model, slots=slots)
    assert steps(model.checkpoint).count("destroy") == slots + 1  # each session's, and the weights'
    model.checkpoint.unset("destroy.fail")
    at_work(model)


@cell("fail.models_root")
def test_fail_models_root(fresh_server):
    server = fresh_server()
    old, new, file = (server.process.folder / name for name in ("old root", "new root", "no folder"))
    file.write_text("a file")

    def replace(path):
        return server.client.start("POST", "/v1/ui/models_root", json={"path": str(path)})

    def told():
        return server.client.call("GET", "/v1/ui/models_root").json()

    assert replace(old).ok() == told() == {"path": str(old)}
    for wrong in (file, file / "below", Path("relative")):
        refused(replace(wrong), 400, param="path")
        assert told() == {"path": str(old)}
    assert replace(new).ok() == told() == {"path": str(new)}


@cell("fail.models_root", "unit")
@pytest.mark.parametrize("fault", [MemoryError, OSError])
def test_fail_models_root_while_its_installer_is_made(tmp_path, fault):
    faults = {"new": fault}

    def make(path):
        if path.name in faults:
            raise faults[path.name]
        return Installer(path)

    root = ModelsRoot(tmp_path / "old", make)
    installer = root.installer

    with pytest.raises((fault, InvalidRequest)):
        root.replace(str(tmp_path / "new"))

    assert root.installer is installer
    assert root.path == installer.models_root == tmp_path / "old"
    faults.clear()
    root.replace(str(tmp_path / "new"))
    assert root.path == root.installer.models_root == tmp_path / "new"


class Unreadable(Installer):
    """An installer of a folder that cannot be listed."""

    def installed(self):
        raise PackageError("the packages cannot be listed")


@cell("fail.models_root", "unit")
def test_fail_models_root_that_cannot_be_listed(tmp_path):
    root = ModelsRoot(tmp_path / "old", lambda path: (Unreadable if path.name == "new" else Installer)(path))
    installer = root.installer

    with pytest.raises(InvalidRequest):
        root.replace(str(tmp_path / "new"))

    assert root.installer is installer
    assert root.path == installer.models_root == tmp_path / "old"
