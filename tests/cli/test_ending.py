"""A command that is told to end by SIGTERM or SIGHUP leaves none of the processes that it has started."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from antiphon.testing import ControlledCheckpoint
from fake_hub import FakeHub, serving
from hub_packages import REPOSITORY, REVISION, catalogue_text, know_only, package_of
from server_process import ANTIPHON, HANG_GUARD_S


class Command:
    """A command under way, in a folder for temporary files of its own."""

    def __init__(self, process: subprocess.Popen[str], temp: Path) -> None:
        self.process = process
        self._temp = temp
        self._told = signal.SIGTERM

    def await_line(self, beginning: str) -> None:
        """Read what it says until a line begins so."""
        assert self.process.stderr is not None
        assert any(line.startswith(beginning) for line in self.process.stderr)

    def is_told_to_end(self, number: signal.Signals = signal.SIGTERM) -> list[psutil.Process]:
        """Send a signal; returns the processes that it had started, of which there are some."""
        started = psutil.Process(self.process.pid).children(recursive=True)
        assert started
        self.process.send_signal(number)
        self._told = number
        return started

    def leaves_nothing(self, started: Sequence[psutil.Process]) -> bool:
        """Wait for its end."""
        assert self.process.wait(HANG_GUARD_S) == 128 + self._told
        return not any(it.is_running() for it in started) and not list(self._temp.iterdir())


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[Command]:
    temp = folder / "temp"
    temp.mkdir()
    environment = {**os.environ, "TMPDIR": str(temp)}
    with subprocess.Popen(
        [str(ANTIPHON), *arguments], stderr=subprocess.PIPE, text=True, cwd=folder, env=environment
    ) as it:
        try:
            yield Command(it, temp)
        finally:
            it.kill()


@pytest.mark.slow
def test_validate_ends_its_server_whose_requests_are_under_way(tmp_path):
    checkpoint = ControlledCheckpoint(tmp_path / "model")
    models = [{"id": "voice", "family": "controlled", "path": "model", "task": "tts"}]
    (tmp_path / "server.json").write_text(json.dumps({"models": models}))
    small = ["--slots", "1", "--starts", "1", "--waves", "1", "--mode", "offline", "--isolation", "thread"]
    checkpoint.hold("run")
    with running(tmp_path, "validate", "voice", "--config", "server.json", "--text", "x", *small) as command:
        checkpoint.wait_for("run")
        started = command.is_told_to_end()
        checkpoint.release("run")
        assert command.leaves_nothing(started)
    assert not (tmp_path / "voice.json").exists()


@pytest.mark.slow
def test_bench_ends_its_servers(tmp_path):
    with running(tmp_path, "bench", "--only", "noop", "--quick") as command:
        command.await_line("noop: round 1")
        assert command.leaves_nothing(command.is_told_to_end())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_install_ends_its_download(tmp_path, monkeypatch, number):
    files = {"model.bin": bytes(4 * 1024 * 1024)}
    with serving(FakeHub(REPOSITORY, REVISION, files)) as hub:
        know_only(hub, tmp_path / "hf", monkeypatch)
        (tmp_path / "root").mkdir()
        (tmp_path / "root" / "catalogue.toml").write_text(catalogue_text(package_of(files, "big")))
        hub.held = threading.Event()
        with running(tmp_path, "models", "install", "big", "--models-root", "root") as command:
            assert hub.half_sent.wait(HANG_GUARD_S)
            assert command.leaves_nothing(command.is_told_to_end(number))
        hub.held.set()
