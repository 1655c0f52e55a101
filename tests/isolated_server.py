"""A real server whose controlled engines run in worker processes, and what a test does to those. It asserts nothing."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from antiphon.testing import ControlledCheckpoint
from controlled_server import ControlledServer, controlled_server
from process_tree import workers_of


@contextmanager
def isolated_server(folder: Path, **config: object) -> Iterator[ControlledServer]:
    """Serve controlled models with two slots each, in processes; what is learned of them stays in the folder."""
    (folder / "root").mkdir(parents=True, exist_ok=True)
    settings = {"isolation": "process", "models_root": "root", "ui_management": True, **config}
    with controlled_server(folder, parallel=True, **settings) as server:
        yield server


@contextmanager
def doomed_server(folder: Path) -> Iterator[ControlledServer]:
    """Serve likewise, until the test kills the server."""
    try:
        with isolated_server(folder) as server:
            yield server
    except AssertionError as end:
        if "exit code -9" not in str(end):
            raise


def worker_of(checkpoint: ControlledCheckpoint) -> int:
    """The process in which a model's engine was last at work."""
    return checkpoint.events()[-1].pid


def kill_worker(checkpoint: ControlledCheckpoint) -> None:
    """Kill the process in which a model's engine is at work, as the kernel does when memory is out."""
    os.kill(worker_of(checkpoint), signal.SIGKILL)


def children_of(server: ControlledServer) -> list[psutil.Process]:
    """The processes that the server has started, dead ones that nobody has buried included."""
    return workers_of(server.process.process.pid)


def state_of(server: ControlledServer, model_id: str = "tts") -> dict:
    """A model as the status shows it."""
    return next(it for it in server.client.get("/v1/status").json()["models"] if it["id"] == model_id)
