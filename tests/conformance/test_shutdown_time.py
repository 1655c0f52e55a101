"""The cells `time.shutdown_*`: stalled connections, finite work and waiting work meet a stop signal.

Each test names a mutant that it kills.
"""

import signal
from contextlib import ExitStack

import pytest

from conformance_client import HANG_GUARD_S, eventually
from conformance_evidence import said
from conformance_plugin import cell
from conformance_situations import cold_model, fill, last_of_load
from conformance_standing import comes_to, standing
from conformance_stopping import assert_destroyed_after_use
from controlled_server import CLIP, TRANSCRIPTIONS
from listener_peers import (
    UNREAD_ITEMS,
    port_of,
    read_to_end,
    stalled_body,
    stalled_head,
    stalled_upload,
    trickling_body,
    trickling_head,
    unread_batch,
)
from listener_stop import assert_ended, begin_stop, connected_ports, wait_disconnected
from live_client import live_client
from refusals import assert_refused


@cell("time.shutdown_stalled_io")
def test_time_shutdown_stalled_io(fresh_server, slots):
    # Mutants: a stalled connection is closed, which waits for its buffer, and not aborted; it is cut after the drain.
    server = fresh_server(drain_timeout_ms=0)
    url, model, other = server.process.url, server.new_model(), server.new_model()
    with model.checkpoint.held("run"):
        calls, texts = fill(model, slots)
        model.checkpoint.wait_for("run", slots)
        peers = [stalled_head(url), stalled_body(url, other.id), stalled_upload(url), unread_batch(url, other.id)]
        ports = [port_of(peer) for peer in peers]
        eventually(lambda: connected_ports(server.process.process.pid), lambda it: it >= set(ports), "four connections")

        begin_stop(server.process)

        wait_disconnected(server.process, *ports)
        assert model.checkpoint.events("ran") == []  # while the drain goes on
        received = [read_to_end(peer) for peer in peers]
        for peer in peers:
            peer.close()
    assert received[0] == b""
    assert [it.split(b"\r\n")[0] for it in received[1:3]] == [b"HTTP/1.1 503 Service Unavailable"] * 2
    assert all(b'"code": "shutting_down"' in it for it in received[1:3])
    assert b"[DONE]" not in received[3]
    assert said(calls) == [("v1", text) for text in texts]
    assert_ended(server.process)
    assert 0 < len(other.runs()) < UNREAD_ITEMS
    assert_destroyed_after_use(model, other)


@cell("time.shutdown_stalled_io")
@pytest.mark.parametrize("drain_timeout_ms", [0, 60_000])
def test_time_shutdown_stalled_io_of_a_body_that_trickles(fresh_server, slots, drain_timeout_ms):
    # Mutant: a body that still arrives is waited for, as long as a byte of it comes now and then.
    server = fresh_server(drain_timeout_ms=drain_timeout_ms)
    model = server.new_model()
    with trickling_body(server.process.url, model.id) as answer:
        begin_stop(server.process)
        assert_ended(server.process)  # the body would take hours
        answered = answer.result(HANG_GUARD_S)
    assert answered.startswith(b"HTTP/1.1 503 ")
    assert b'"code": "shutting_down"' in answered
    assert model.runs() == []
    assert_destroyed_after_use(model)


@cell("time.shutdown_stalled_io")
@pytest.mark.parametrize("drain_timeout_ms", [0, 60_000])
def test_time_shutdown_stalled_io_of_a_head_that_trickles(fresh_server, slots, drain_timeout_ms):
    # Mutants: a head that trickles makes progress, and is waited for; it is cut when the last request is over.
    server = fresh_server(drain_timeout_ms=drain_timeout_ms)
    model = server.new_model()
    with trickling_head(server.process.url) as (peer, ending), model.checkpoint.held("run"):
        calls, texts = fill(model, slots)
        model.checkpoint.wait_for("run", slots)
        begin_stop(server.process)
        wait_disconnected(server.process, port_of(peer))  # while all that runs is still held
        assert ending.result(HANG_GUARD_S) == b""
        assert model.checkpoint.events("ran") == []
    assert said(calls) == [("v1", text) for text in texts]
    assert_ended(server.process)
    assert_destroyed_after_use(model)


@cell("time.shutdown_stalled_io")
def test_time_shutdown_stalled_io_of_live_audio(fresh_server, slots):
    # Mutant: a stop leaves live audio alone, whose client may speak for ever.
    server = fresh_server(drain_timeout_ms=0)
    model = server.new_model(task="asr", mode="streaming")
    model.checkpoint.set("live.echo")
    with ExitStack() as sessions:
        clients = [sessions.enter_context(live_client(server.process.url, model=model.id)) for _ in range(slots)]
        for client in clients:
            client.say(bytes(3200))
            assert client.event() == {"type": "transcript.text.delta", "delta": "1 "}
        begin_stop(server.process)
        lasts = [client.events()[-1] for client in clients]  # each still sends, and is never done
    assert [last["type"] for last in lasts] == ["error"] * slots
    assert [last["error"]["code"] for last in lasts] == ["shutting_down"] * slots
    assert_ended(server.process)
    assert_destroyed_after_use(model)


@cell("time.shutdown_stalled_io")
def test_time_shutdown_stalled_io_of_live_audio_that_is_queued(fresh_server, slots):
    # Mutant: live audio that is granted its slot after the stop is listened to.
    server = fresh_server(drain_timeout_ms=0)
    model = server.new_model(task="asr", mode="streaming")
    model.checkpoint.set("live.echo")
    with ExitStack() as sessions:
        clients = [sessions.enter_context(live_client(server.process.url, model=model.id)) for _ in range(slots)]
        for client in clients:
            client.say(bytes(3200))
            assert client.event() == {"type": "transcript.text.delta", "delta": "1 "}
        queued = sessions.enter_context(live_client(server.process.url, model=model.id))
        queued.say(bytes(3200))
        model.wait_queue("infer")
        begin_stop(server.process)  # which ends those before it, so that it is granted a slot
        (last,) = queued.events()
    assert (last["type"], last["error"]["code"]) == ("error", "shutting_down")
    assert_ended(server.process)
    assert len(model.checkpoint.events("prepare")) == slots + 1
    assert_destroyed_after_use(model)


@cell("time.shutdown_stalled_io")
def test_time_shutdown_stalled_io_in_every_slot(fresh_server, slots):
    # Mutant: the engine's thread waits for a reader that was cut off.
    server = fresh_server(drain_timeout_ms=0)
    model = server.new_model()
    unread = [unread_batch(server.process.url, model.id) for _ in range(slots)]
    queued = model.infer("queued")
    model.wait_queue("infer")
    begin_stop(server.process)
    assert said([queued]) == [("v1", "queued")]
    assert_ended(server.process)  # although nobody reads
    for peer in unread:
        peer.close()
    assert_destroyed_after_use(model)


@cell("time.timeout_zero")
def test_time_timeout_zero_during_shutdown(fresh_server, slots):
    # Mutant: a stop gives those who wait without a bound one.
    server = fresh_server(drain_timeout_ms=0, busy_timeout_ms=1)
    model = server.new_model(busy_timeout_ms=0)
    with model.checkpoint.held("run"):
        calls, texts = fill(model, slots)
        model.checkpoint.wait_for("run", slots)
        queued = model.infer("queued")
        model.wait_queue("infer")
        bulk = server.bulk_unload(model)
        queue = ["infer", "bulk_unload"]
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=queue))
        begin_stop(server.process)
        assert server.alive
    assert said([*calls, queued]) == [("v1", text) for text in [*texts, "queued"]]
    assert bulk.ok() == {"unloaded": [model.id], "not_found": []}
    assert_ended(server.process)
    assert_destroyed_after_use(model)


@cell("time.timeout_zero")
def test_time_timeout_zero_ends_with_the_drain(fresh_server, slots):
    # Mutants: a claim without a bound outlives the drain; its request, that of the model or of the server does.
    server = fresh_server(drain_timeout_ms=100, busy_timeout_ms=0)
    model, bounded = server.new_model(), server.new_model(busy_timeout_ms=60_000)
    for each in (model, bounded):
        each.checkpoint.set("run.cancellable")
    with model.checkpoint.held("run"), bounded.checkpoint.held("run"):
        running = [each.open_infer(f"running {number}") for number in range(slots) for each in (model, bounded)]
        for each in (model, bounded):
            each.checkpoint.wait_for("run", slots)
        waiting = [model.infer("queued", busy_timeout_ms=0), bounded.infer("queued", busy_timeout_ms=60_000)]
        for each in (model, bounded):
            each.wait_queue("infer")
        waiting.append(server.bulk_unload(model, bounded))
        for each in (model, bounded):
            queue = ["infer", "bulk_unload"]
            comes_to(each, standing("ready", slots=slots, leases=["infer"] * slots, queue=queue))
        begin_stop(server.process)
        for call in waiting:
            assert_refused(call.result(), 503, code="shutting_down")
        assert_ended(server.process)
    for call in running:
        call.cut()
    for each in (model, bounded):
        assert "queued" not in each.runs()
    assert_destroyed_after_use(model, bounded)


@cell("time.shutdown_finite_work")
def test_time_shutdown_finite_work_of_two_models(fresh_server, slots):
    # Mutant: the second run of a request that was accepted before the stop is refused.
    server = fresh_server(drain_timeout_ms=0)
    hearing, telling = server.new_model(task="asr"), server.new_model(task="diar")
    with hearing.checkpoint.held("run"):
        asked = {"model": hearing.id, "diarization_model": telling.id, "response_format": "diarized_json"}
        calls = [
            server.client.start("POST", TRANSCRIPTIONS, data=asked, files={"file": ("a.wav", CLIP)})
            for _ in range(slots)
        ]
        hearing.checkpoint.wait_for("run", slots)
        begin_stop(server.process)
        assert telling.checkpoint.events("run") == []
    for call in calls:
        assert [segment["speaker"] for segment in call.ok()["segments"]] == ["speaker_0"]
    assert_ended(server.process)
    assert len(telling.checkpoint.events("ran")) == slots
    assert_destroyed_after_use(hearing, telling)


@cell("time.shutdown_finite_work")
def test_time_shutdown_finite_work(fresh_server, slots):
    # Mutants: requests are cancelled at the stop; a stream's lease is not joined.
    server = fresh_server(drain_timeout_ms=0)
    model, other = server.new_model(), server.new_model()
    other.checkpoint.hold("stream")
    streams = [other.open_stream(f"stream {number}") for number in range(slots)]
    for stream in streams:
        assert next(stream.events())["type"] == "task.delta"
    with model.checkpoint.held("run"):
        calls, texts = fill(model, slots)
        model.checkpoint.wait_for("run", slots)
        begin_stop(server.process)
    assert said(calls) == [("v1", text) for text in texts]
    assert server.alive  # the streams are held, and so are their models
    other.checkpoint.release("stream")
    for stream in streams:
        assert list(stream.events())[-1]["type"] == "task.done"
        stream.cut()
    assert_ended(server.process)
    assert_destroyed_after_use(model, other)


@cell("time.shutdown_finite_work")
def test_time_shutdown_finite_work_whose_clients_have_left(fresh_server, slots):
    # Mutants: `close` frees only the models that are idle, or does not join the work.
    server = fresh_server(drain_timeout_ms=0)
    model, idle = server.new_model(), server.new_model()
    with model.checkpoint.held("run"):
        leaving = [model.open_infer(f"left {number}") for number in range(slots)]
        model.checkpoint.wait_for("run", slots)
        for call in leaving:
            call.cut()
        begin_stop(server.process)
        idle.checkpoint.wait_for("closed")  # all who asked are gone, and nobody keeps this one
        assert model.checkpoint.events("destroy") == []
    assert_ended(server.process)
    assert len(model.checkpoint.events("ran")) == slots
    assert_destroyed_after_use(model, idle)


@cell("time.shutdown_waiting_work")
@pytest.mark.parametrize("manager", ["register", "unload"])
def test_time_shutdown_waiting_work(fresh_server, slots, manager):
    # Mutants: the stop withdraws requests, or managers, that are queued.
    server = fresh_server(drain_timeout_ms=0, busy_timeout_ms=0)
    model, step = cold_model(server), last_of_load(slots)
    with model.checkpoint.held(step):
        calls, texts = fill(model, slots, queued=1)
        model.checkpoint.wait_for(step)
        waiting = getattr(model, manager)()
        operation = "load" if manager == "register" else "unload"
        model.wait_queue("infer", operation)
        behind = model.infer("behind")
        queue = ["infer", operation, "infer"]
        comes_to(model, standing("loading", slots=slots, leases=["infer"] * slots, queue=queue))
        begin_stop(server.process)
    assert said([*calls, behind]) == [("v1", text) for text in [*texts, "behind"]]
    waiting.ok()
    assert_ended(server.process)
    assert model.runs()[-1] == "behind"
    assert_destroyed_after_use(model)


@cell("time.shutdown_waiting_work")
@pytest.mark.parametrize("how", ["deadline", "second signal"])
def test_time_shutdown_waiting_work_has_a_bound(fresh_server, slots, isolation, how):
    # Mutants: the deadline dismisses nobody, or spares managers; a second signal is ignored.
    server = fresh_server(drain_timeout_ms=100 if how == "deadline" else 0, busy_timeout_ms=0)
    model = server.new_model()
    model.checkpoint.set("run.cancellable")
    with model.checkpoint.held("run"):
        running = [model.open_infer(f"running {number}") for number in range(slots)]
        model.checkpoint.wait_for("run", slots)
        waiting = [model.infer("queued")]
        model.wait_queue("infer")
        waiting.append(model.unload())
        model.wait_queue("infer", "unload")
        waiting.append(server.bulk_unload(model))
        model.wait_queue("infer", "unload", "bulk_unload")
        queue = ["infer", "unload", "bulk_unload"]
        comes_to(model, standing("ready", slots=slots, leases=["infer"] * slots, queue=queue))
        begin_stop(server.process)
        if how == "second signal":
            server.process.process.send_signal(signal.SIGTERM)
        for call in waiting:
            assert_refused(call.result(), 503, code="shutting_down")
        assert_ended(server.process)
    for call in running:
        call.cut()
    assert "queued" not in model.runs()
    ran = len(model.checkpoint.events("ran"))
    # A process whose engine has not heeded the cut within half a second is killed, as it may be on a busy machine. It
    # frees nothing by itself then; `assert_ended` has seen that nothing is left of it.
    if isolation == "thread" or ran == slots:
        assert ran == slots
        assert_destroyed_after_use(model)
