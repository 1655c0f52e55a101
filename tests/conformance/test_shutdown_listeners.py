"""The cell `time.custom_listener`: listeners other than the default one drain before the runtime is destroyed.

Each test names a mutant that it kills.
"""

import socket
from contextlib import contextmanager

import httpx
import pytest

import line_listener
from antiphon.testing import ControlledCheckpoint
from conformance_client import Pending, eventually
from conformance_evidence import first, last, said
from conformance_plugin import cell
from conformance_server import ISOLATIONS, TASK_RUN
from listener_stop import assert_ended, begin_stop
from server_process import HANG_GUARD_S, running_server
from tls_files import TlsFiles


@contextmanager
def listening(folder, isolation, checkpoint, *, env=None, **fields):
    """A server of the model `m`, one slot, without a deadline for its drain."""
    model = {"id": "m", "family": "controlled", "path": str(checkpoint.path), "task": "tts"}
    settings = {"lazy_load": True, "drain_timeout_ms": 0, **ISOLATIONS[isolation], **fields, "models": [model]}
    with running_server(folder, settings, "--parallel-jobs", env=env) as server:
        yield server


def asked(client, text):
    """A request that is under way."""
    return Pending(text, lambda: client.post(TASK_RUN, json={"model": "m", "request": {"text": text}}))


@cell("time.custom_listener")
@pytest.mark.parametrize("way", ["unix", "https"])
def test_time_custom_listener(tmp_path, isolation, way):
    # Mutants: the end of the default listener closes the runtime; a listener cancels its calls at the stop.
    checkpoint, files = ControlledCheckpoint(tmp_path / "v1"), TlsFiles(tmp_path)
    path = tmp_path / "a.sock"
    if way == "unix":
        fields = {"listeners": [{"kind": "unix", "path": str(path)}]}
    else:
        fields = dict(zip(("tls_cert", "tls_key"), map(str, files.certificate()), strict=True))
    with listening(tmp_path, isolation, checkpoint, **fields) as server:
        if way == "unix":
            url, transport = "http://localhost", httpx.HTTPTransport(uds=str(path))
        else:
            url, transport = server.url, httpx.HTTPTransport(verify=files.client())
        with httpx.Client(base_url=url, transport=transport, timeout=HANG_GUARD_S) as client:
            with checkpoint.held("run"):
                running = asked(client, "running")
                checkpoint.wait_for("run")
                queued = asked(client, "queued")
                while client.get("/v1/models/m").json()["queued_requests"] != 1:
                    assert not queued.has_ended()
                begin_stop(server)
                # Nobody is accepted there either. Each listener closes by itself, this one perhaps a moment later.
                eventually(path.exists, lambda exists: not exists, "a closed socket")
                assert checkpoint.events("destroy") == []
            assert said([running, queued]) == [("v1", "running"), ("v1", "queued")]
        assert_ended(server)
    assert last(checkpoint, "ran") < first(checkpoint, "destroy")
    assert checkpoint.events()[-1].step == "closed"


@cell("time.custom_listener")
def test_time_custom_listener_of_somebody_else(tmp_path, isolation):
    # Mutant: the runtime is closed when the default listener has ended, and no other is joined.
    checkpoint, path = ControlledCheckpoint(tmp_path / "v1"), tmp_path / "lines.sock"
    lines = [{"kind": "lines", "path": str(path), "lingers": True}]
    env = line_listener.installed(tmp_path)
    with (
        listening(tmp_path, isolation, checkpoint, env=env, listeners=lines, drain_timeout_ms=300) as server,
        socket.socket(socket.AF_UNIX) as talk,
    ):
        talk.settimeout(HANG_GUARD_S)
        talk.connect(str(path))
        talk.sendall(b"spoken\n")
        assert talk.recv(16).strip() == b"200"  # its lease is over, and the talk is not, until the deadline
        begin_stop(server)
        assert_ended(server)
    told = {what: t for t, what in line_listener.notes(tmp_path)}
    assert told["stopping"] < told["returned"] < first(checkpoint, "destroy")


@cell("time.custom_listener")
def test_time_custom_listener_of_somebody_else_with_work_under_way(tmp_path, isolation):
    # Mutant: the runtime is closed when the default listener has ended, and no other is joined.
    checkpoint, path = ControlledCheckpoint(tmp_path / "v1"), tmp_path / "lines.sock"
    env = line_listener.installed(tmp_path)
    lines = [{"kind": "lines", "path": str(path)}]
    with (
        listening(tmp_path, isolation, checkpoint, env=env, listeners=lines) as server,
        socket.socket(socket.AF_UNIX) as running,
        socket.socket(socket.AF_UNIX) as queued,
    ):
        with checkpoint.held("run"):
            for talk, text in ((running, b"running\n"), (queued, b"queued\n")):
                talk.settimeout(HANG_GUARD_S)
                talk.connect(str(path))
                talk.sendall(text)
                if talk is running:
                    checkpoint.wait_for("run")
            waits_for_one(server)
            begin_stop(server)
            assert checkpoint.events("destroy") == []
        assert [talk.recv(16).strip() for talk in (running, queued)] == [b"200", b"200"]
        assert_ended(server)
    told = {what: t for t, what in line_listener.notes(tmp_path)}
    assert [event.request for event in checkpoint.events("run")] == ["running", "queued"]
    ran, destroyed = checkpoint.events("ran")[-1].t, checkpoint.events("destroy")[0].t
    assert told["stopping"] < ran < told["returned"] < destroyed
    assert checkpoint.events()[-1].step == "closed"


def waits_for_one(server):
    """One request is in the queue of the model."""
    with httpx.Client(base_url=server.url, timeout=HANG_GUARD_S) as client:
        eventually(lambda: client.get("/v1/models/m").json()["queued_requests"], lambda count: count == 1, "a queue")
