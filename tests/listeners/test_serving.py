"""Real servers with more than one way in: a Unix socket, and a listener that somebody else wrote."""

import json
import os
import signal
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest

import line_listener
from antiphon.testing import ControlledCheckpoint
from conformance_client import eventually
from refusals import assert_refused
from server_process import HANG_GUARD_S, antiphon, error_lines, running_server

SPEECH = "/v1/audio/speech"


class Stage:
    """One controlled model and the folder that its server is configured in."""

    def __init__(self, folder):
        self.folder = folder
        self.checkpoint = ControlledCheckpoint(folder / "checkpoint")
        self.socket = folder / "a.sock"
        self.lines = folder / "lines.sock"

    def config(self, *listeners, **fields):
        model = {"id": "m", "family": "controlled", "path": "checkpoint", "task": "tts", "lazy": True}
        return {"models": [model], "listeners": list(listeners), "drain_timeout_ms": 0, **fields}

    def server(self, *listeners, **fields):
        return running_server(self.folder, self.config(*listeners, **fields), env=self.environment())

    def environment(self):
        return line_listener.installed(self.folder)

    def refused_at_start(self, *listeners):
        """The one line that the server leaves with."""
        file = self.folder / "server.json"
        file.write_text(json.dumps(self.config(*listeners, port=0)))
        done = antiphon("serve", "--config", str(file), env=self.environment())
        assert done.returncode == 1
        assert done.stderr.splitlines() == error_lines(done.stderr), done.stderr
        assert len(done.stderr.splitlines()) == 1
        return done.stderr

    def client(self):
        """A client of the Unix socket."""
        return httpx.Client(
            transport=httpx.HTTPTransport(uds=str(self.socket)), base_url="http://speech.example", timeout=HANG_GUARD_S
        )

    def speak(self, text):
        with self.client() as client:
            return client.post(SPEECH, json={"model": "m", "input": text})

    def line(self, text):
        """What the listener of lines answers to one."""
        with socket.socket(socket.AF_UNIX) as talk:
            talk.settimeout(HANG_GUARD_S)
            talk.connect(str(self.lines))
            talk.sendall(f"{text}\n".encode())
            return talk.makefile().readline().strip()

    def said(self):
        return [what for _, what in line_listener.notes(self.folder)]


UNIX = {"kind": "unix", "path": "a.sock"}
LINES = {"kind": "lines", "path": "lines.sock"}


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as threads:
        yield threads


def test_a_unix_socket_serves_the_same_api_to_its_owner(stage):
    with stage.server(UNIX) as server, stage.client() as client:
        assert stat.S_IMODE(stage.socket.stat().st_mode) == 0o600
        assert client.get("/v1/models").json() == httpx.get(f"{server.url}/v1/models", timeout=HANG_GUARD_S).json()
        spoken = client.post(SPEECH, json={"model": "m", "input": "x"}, headers={"origin": "https://page.example"})
        assert spoken.status_code == 200
        assert client.get("/nowhere").status_code == 404
    assert not stage.socket.exists()


def test_a_unix_socket_asks_for_the_key_too(stage):
    with stage.server(UNIX, api_keys=["secret"]), stage.client() as client:
        assert_refused(client.get("/v1/models"), 401)
        assert client.get("/v1/models", headers={"authorization": "Bearer secret"}).status_code == 200


def test_the_file_of_a_dead_server_is_replaced(stage):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(stage.socket))
    with stage.server(UNIX):
        assert stage.speak("x").status_code == 200


def test_a_socket_that_is_in_use_stops_the_start_in_one_line(stage):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(stage.socket))
        other.listen()
        assert "another server does" in stage.refused_at_start(LINES, UNIX)
    assert stage.said() == ["open", "closed"]


@pytest.mark.parametrize("fault", ["make", "open"])
def test_a_listener_that_breaks_at_the_start_stops_it_in_one_line(stage, fault):
    assert "made to fail" in stage.refused_at_start(UNIX, {**LINES, "fault": fault})
    assert not stage.socket.exists()


def test_a_kind_that_is_not_installed_stops_the_start_in_one_line(stage):
    assert "'pigeon'; installed are lines, unix, wyoming" in stage.refused_at_start({"kind": "pigeon"})


@pytest.mark.parametrize("fault", ["serve", "later"])
def test_a_listener_that_breaks_while_it_serves_stops_the_server_in_order(stage, fault):
    file = stage.folder / "server.json"
    file.write_text(json.dumps(stage.config(UNIX, {**LINES, "fault": fault}, port=0)))
    done = antiphon("serve", "--config", str(file), env=stage.environment())
    assert done.returncode == 1
    assert f"the listener on lines:{stage.lines}" in done.stderr.splitlines()[-1], done.stderr
    assert not stage.socket.exists()


def test_a_stop_waits_for_the_work_that_came_through_a_unix_socket(stage, threads):
    with stage.server(UNIX) as server, stage.checkpoint.held("run"):
        spoken = threads.submit(stage.speak, "under way")
        stage.checkpoint.wait_for("run")
        os.kill(server.process.pid, signal.SIGTERM)
        eventually(stage.socket.exists, lambda there: not there, "no more callers")
        assert server.process.poll() is None
        stage.checkpoint.release("run")
        assert spoken.result(HANG_GUARD_S).status_code == 200
        assert server.process.wait(HANG_GUARD_S) == 0
    steps = [event.step for event in stage.checkpoint.events()]
    assert steps.index("ran") < steps.index("destroy")


def test_a_second_signal_cuts_the_work_that_came_through_a_unix_socket(stage, threads):
    stage.checkpoint.set("run.cancellable")
    with stage.server(UNIX) as server, stage.checkpoint.held("run"):
        spoken = threads.submit(stage.speak, "under way")
        stage.checkpoint.wait_for("run")
        os.kill(server.process.pid, signal.SIGTERM)
        eventually(stage.socket.exists, lambda there: not there, "no more callers")
        os.kill(server.process.pid, signal.SIGTERM)
        assert server.process.wait(HANG_GUARD_S) == 0
        with suppress(httpx.TransportError):  # whether its refusal still reaches it, nobody promises
            assert_refused(spoken.result(HANG_GUARD_S), 503, code="shutting_down")
    assert len(stage.checkpoint.events("closed")) == 1


def test_the_runtime_outlives_a_listener_of_another_kind_until_it_has_drained(stage, threads):
    with stage.server(LINES) as server:
        with stage.checkpoint.held("run"):
            said = threads.submit(stage.line, "under way")
            stage.checkpoint.wait_for("run")
            os.kill(server.process.pid, signal.SIGTERM)
            eventually(stage.said, lambda said: "stopping" in said, "the listener's stop")
            assert server.process.poll() is None
        assert said.result(HANG_GUARD_S) == "200"
        assert server.process.wait(HANG_GUARD_S) == 0
    times = {what: t for t, what in line_listener.notes(stage.folder)}
    events = {event.step: event.t for event in stage.checkpoint.events()}
    assert times["stopping"] < events["ran"] < times["returned"] < events["closed"]
