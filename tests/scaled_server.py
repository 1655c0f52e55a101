"""A server of controlled models over two replicas on two nodes, with a client. It asserts nothing but how it ends."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from antiphon.testing import ControlledCheckpoint
from controlled_server import CLIP, SPEECH, TRANSCRIPTIONS
from ray_nodes import two_nodes
from server_process import ANTIPHON, LISTENING

START_GUARD_S = 300.0
"""Two nodes, a controller and two replicas are ten processes that import Ray: 20 s of CPU. Units: seconds."""

API_KEY, ADMIN_KEY = "a-key-for-clients", "a-key-for-admins"
MODELS = ("first", "second", "third", "asr")


@dataclass(frozen=True, slots=True)
class ScaledServer:
    """The models `MODELS`, each with one slot at each of the two replicas; `threads` make requests that overlap."""

    url: str
    process: subprocess.Popen[bytes]
    client: httpx.Client
    checkpoints: Mapping[str, ControlledCheckpoint]
    threads: ThreadPoolExecutor

    def speak(self, model: str, text: str, **fields: object) -> httpx.Response:
        """Have a text spoken."""
        return self.client.post(SPEECH, json={"model": model, "input": text, **fields})

    def later(self, model: str, text: str) -> "Future[httpx.Response]":
        """Have it spoken meanwhile."""
        return self.threads.submit(self.speak, model, text)

    def transcribe(self) -> httpx.Response:
        """Have a clip transcribed, from a form in which the model comes last."""
        form = [("file", ("a.wav", CLIP)), ("model", (None, "asr"))]
        return self.client.post(TRANSCRIPTIONS, files=form)

    def manage(self, path: str, body: Mapping[str, object], **query: int) -> httpx.Response:
        """A call that changes something, with the admin's key."""
        key = {"authorization": f"Bearer {ADMIN_KEY}"}
        return self.client.post(path, json=body, params=query, headers=key)

    def status(self, model: str) -> dict[str, Mapping[str, object]]:
        """A model's status, by replica."""
        models = self.client.get("/v1/status").json()["models"]
        return {it["replica"]: it for it in models if it["id"] == model}

    def holders(self, model: str) -> set[str]:
        """The replicas that have it in memory."""
        return {name for name, it in self.status(model).items() if it["loaded"]}

    def replica_of(self, model: str) -> psutil.Process:
        """The process of the replica whose engine was the last at work on a model: the parent of that engine's."""
        parent = psutil.Process(self.checkpoints[model].events()[-1].pid).parent()
        assert parent is not None
        return parent


@contextmanager
def scaled_server(folder: Path) -> Iterator[ScaledServer]:
    """Serve them on nodes of their own; the command must end with the exit code 0, and leave no process behind."""
    checkpoints = {name: ControlledCheckpoint(folder / name) for name in MODELS}
    checkpoints["asr"].set("live.echo")
    environment = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_raylet_start_wait_time_s": f"{START_GUARD_S:.0f}",  # it gives up after 30 s, which a busy machine takes
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": os.urandom(32).hex(),  # else Ray puts one into the home of whoever runs the tests
    }
    with two_nodes(environment) as address, ThreadPoolExecutor(8) as threads:
        command = ["scale", "--config", str(_config(folder)), "--ray-address", address, "--parallel-jobs"]
        keys = {"ANTIPHON_API_KEYS": API_KEY, "ANTIPHON_ADMIN_KEYS": ADMIN_KEY}
        with _running([*command, "--replicas", "2", "--per-node", "1"], {**environment, **keys}, folder) as (
            url,
            process,
        ):
            headers = {"authorization": f"Bearer {API_KEY}"}
            with httpx.Client(base_url=url, timeout=START_GUARD_S, headers=headers) as client:
                yield ScaledServer(url, process, client, checkpoints, threads)


def _config(folder: Path) -> Path:
    models = [
        {"id": name, "family": "controlled", "path": name, "task": "asr" if name == "asr" else "tts", "slots": 1}
        for name in MODELS
    ]
    settings = {"port": 0, "lazy_load": True, "ui_management": True, "drain_timeout_ms": 60_000, "models_root": "root"}
    (folder / "root").mkdir()
    file = folder / "server.json"
    file.write_text(json.dumps({**settings, "models": models}))
    return file


@contextmanager
def _running(
    command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    log = folder / "scale.log"
    with (
        log.open("wb") as written,
        subprocess.Popen(
            [str(ANTIPHON), *command], stdout=written, stderr=written, env={**os.environ, **environment}, cwd=folder
        ) as process,
    ):
        guard = threading.Timer(START_GUARD_S, process.kill)
        guard.start()
        try:
            url = _url(log, lambda: process.poll() is None)
            guard.cancel()
            yield url, process
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(START_GUARD_S)
        finally:
            guard.cancel()
            process.kill()  # harmless to one that has ended
    assert process.returncode == 0, f"exit code {process.returncode}:\n{log.read_text()}"
    assert "internal error" not in log.read_text()  # Ray's own words of a replica that was killed are none of ours


def _url(log: Path, runs: Callable[[], bool]) -> str:
    """Where it listens, as its log says once it does."""
    while runs():
        for line in log.read_text().splitlines():
            if line.startswith(LISTENING):
                return line.removeprefix(LISTENING)
        threading.Event().wait(0.05)
    raise AssertionError(log.read_text())
