"""A real server under a supervisor like systemd: when it is told what, and by whom."""

import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from antiphon.testing import ControlledCheckpoint
from process_tree import processes_of
from server_process import HANG_GUARD_S, running_server


@pytest.fixture
def notices(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(str(tmp_path / "notify"))
        bound.settimeout(HANG_GUARD_S)
        yield bound


def wait_for(notices, word):
    """The first notice that begins with this; other ones are passed over."""
    while not (notice := notices.recv(4096).decode()).startswith(word):
        pass
    return notice


def test_it_is_ready_once_it_answers_and_stopping_while_accepted_work_still_runs(tmp_path, notices):
    checkpoint = ControlledCheckpoint(tmp_path / "checkpoint")
    model = {"id": "m", "family": "controlled", "path": "checkpoint", "task": "tts"}
    watch = {"NOTIFY_SOCKET": notices.getsockname(), "WATCHDOG_USEC": "200000"}
    config = {"models": [model], "isolation": "process"}
    with running_server(tmp_path, config, env=watch) as server, ThreadPoolExecutor(1) as threads:
        assert wait_for(notices, "READY=1") == f"READY=1\nSTATUS=answering at {server.url}, models: 1"
        assert httpx.get(f"{server.url}/health", timeout=HANG_GUARD_S).status_code == 200
        with checkpoint.held("run"):
            body = {"model": "m", "input": "accepted"}
            running = threads.submit(httpx.post, f"{server.url}/v1/audio/speech", json=body, timeout=HANG_GUARD_S)
            checkpoint.wait_for("run")
            _, *workers = processes_of(server)
            assert workers
            assert not any(names & watch.keys() for names in map(environment_of, workers))
            server.process.send_signal(signal.SIGTERM)
            wait_for(notices, "STOPPING=1")
            wait_for(notices, "WATCHDOG=1")  # it lives while it drains
        assert running.result(HANG_GUARD_S).status_code == 200
        assert server.process.wait(HANG_GUARD_S) == 0


def test_a_server_that_cannot_start_never_says_that_it_is_ready(tmp_path, notices):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config, env = {"port": taken.getsockname()[1]}, {"NOTIFY_SOCKET": notices.getsockname()}
        with pytest.raises(AssertionError, match="did not come to listen"), running_server(tmp_path, config, env=env):
            pass

    notices.setblocking(False)
    with pytest.raises(BlockingIOError):
        notices.recv(4096)


def environment_of(process):
    """The names in the environment that a process was started with."""
    entries = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    return {entry.partition(b"=")[0].decode() for entry in entries}
