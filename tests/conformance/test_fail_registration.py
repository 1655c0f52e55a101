"""The cells `fail.*` about registrations that are refused before anything was registered."""

import asyncio

import pytest

from antiphon.audio.decode import DecodeLimits
from antiphon.ports.observer import SilentObserver
from antiphon.runtime.clock import LoopClock
from antiphon.runtime.codecs import ThreadCodec
from antiphon.runtime.hosts.thread import ThreadHost
from antiphon.runtime.parallel import ParallelServerState
from antiphon.runtime.wiring import RuntimePorts
from antiphon.testing import ControlledAdapter, ControlledCheckpoint
from antiphon.vocabulary.spec import Registration
from conformance_evidence import at_work, error_of, refusal
from conformance_plugin import cell
from conformance_standing import seen


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
        ("voice_presets.p.voice", {"voice_presets": {"p": {"voice": "nobody"}}}),
        ("voice_presets.p.speed", {"voice_presets": {"p": {"speed": 9}}}),
        ("voice_presets.p.options.x", {"voice_presets": {"p": {"options": {"x": 1}}}}),
        ("default_voice_preset", {"default_voice_preset": "nobody"}),
        ("default_request_options.x", {"default_request_options": {"x": 1}}),
        ("strategy", {"strategy": "hope"}),
        ("dry_run", {"dry_run": "perhaps"}),
    ],
)
def test_fail_invalid_metadata(server, slots, param, fields):
    model = server.new_model()
    before, earlier = seen(model), model.checkpoint.events()

    refused = model.register(**fields)

    assert refusal(refused) == (400, None, param)
    assert error_of(refused)["type"] == "invalid_request_error"
    assert seen(model) == before
    assert model.checkpoint.events() == earlier
    at_work(model)


@cell("fail.invalid_metadata")
def test_fail_invalid_metadata_of_a_new_id_publishes_nothing(server, slots):
    model = server.unregistered_model()

    assert error_of(model.register(slots=slots + 16))["param"] == "slots"
    assert error_of(model.register(task="juggle"))["param"] == "task"

    assert server.client.call("GET", f"/v1/models/{model.id}").status_code == 404
    assert model.checkpoint.events() == []


@cell("fail.invalid_metadata")
def test_fail_invalid_metadata_by_a_fault_that_nobody_mapped(server, slots):
    model = server.new_model()
    before = seen(model)
    model.checkpoint.fail("inspect", "ZeroDivisionError")

    assert refusal(model.register(slots=slots)) == (500, "engine_error", None)

    assert seen(model) == before
    model.checkpoint.unset("inspect.fail")
    at_work(model)


@cell("fail.publication")
@pytest.mark.parametrize(("fault", "status"), [("RuntimeError", 500), ("MemoryError", 503), ("ConfigError", 400)])
def test_fail_publication(server, slots, fault, status):
    model = server.unregistered_model()
    known = server.status()
    model.checkpoint.fail("inspect", fault)

    assert refusal(model.register())[0] == status

    assert server.status() == known
    assert server.client.call("GET", f"/v1/models/{model.id}").status_code == 404
    assert refusal(model.unload())[0] == 404
    assert model.checkpoint.events() == []
    model.checkpoint.unset("inspect.fail")
    model.register().ok()
    at_work(model)


class Nobody(SilentObserver):
    """An observer that forgets, and a meter that knows of endless memory and of nothing else."""

    def transitioned(self, model_id, before, after):
        pass

    def failed(self, model_id, what, error):
        pass

    def available_bytes(self):
        return 2**60

    async def resident_bytes(self):
        return None


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
