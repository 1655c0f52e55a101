"""A real server whose controlled models hear words, tell speakers apart and notice speech. It asserts nothing."""

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from antiphon.testing import ControlledCheckpoint
from controlled_server import CLIP, TRANSCRIPTIONS
from server_process import HANG_GUARD_S, ServerProcess, running_server

POLL_S = 0.01
TASKS = {"heard": "asr", "told": "diar", "noticed": "vad", "spoken": "tts"}


@dataclass(frozen=True, slots=True)
class SpeakersServer:
    """Its models have one slot each; `threads` make requests that overlap."""

    process: ServerProcess
    client: httpx.Client
    checkpoints: Mapping[str, ControlledCheckpoint]
    threads: ThreadPoolExecutor

    def listen(self, model: str, path: str = TRANSCRIPTIONS, file: bytes = CLIP, **fields: object) -> httpx.Response:
        """Have a file heard by a model."""
        return self.client.post(path, data={"model": model, **fields}, files={"file": ("a.wav", file)})

    def diarize(self, prompt: str, **fields: object) -> httpx.Response:
        """Have a file transcribed with its speakers, by `heard` and `told` unless the fields say otherwise."""
        given = {"model": "heard", "prompt": prompt, "response_format": "diarized_json", **fields}
        return self.listen(**given)

    def later(self, call: Callable[..., httpx.Response], *args: object, **fields: object) -> "Future[httpx.Response]":
        """Make a call meanwhile."""
        return self.threads.submit(call, *args, **fields)

    def diarize_unheard(self, prompt: str) -> HTTPConnection:
        """Ask as `diarize` does, and wait for no answer: close the connection to leave."""
        address = urlsplit(self.process.url)
        connection = HTTPConnection(address.hostname or "", address.port, timeout=HANG_GUARD_S)
        audio = base64.b64encode(CLIP).decode()
        body = {"model": "heard", "prompt": prompt, "response_format": "diarized_json", "audio": audio}
        connection.request("POST", TRANSCRIPTIONS, json.dumps(body), {"content-type": "application/json"})
        return connection

    def await_model(self, model_id: str, **fields: object) -> None:
        """Wait until the server says this of a model; raises AssertionError where it never does."""
        deadline = time.monotonic() + HANG_GUARD_S
        while (said := self.client.get(f"/v1/models/{model_id}").json()) | fields != said:
            assert time.monotonic() < deadline, said
            time.sleep(POLL_S)

    def await_queue(self, model_id: str, *operations: str) -> None:
        """Wait until just these operations wait for a model."""
        deadline = time.monotonic() + HANG_GUARD_S
        while True:
            models = {it["id"]: it["queue"] for it in self.client.get("/v1/status").json()["models"]}
            if [it["operation"] for it in models[model_id]] == list(operations):
                return
            assert time.monotonic() < deadline, models
            time.sleep(POLL_S)


@contextmanager
def speakers_server(folder: Path, tasks: Mapping[str, str] = TASKS, **config: object) -> Iterator[SpeakersServer]:
    """Serve a controlled model of one slot for each of the `tasks`."""
    checkpoints = {name: ControlledCheckpoint(folder / name) for name in tasks}
    models = [{"id": name, "family": "controlled", "path": name, "task": task} for name, task in tasks.items()]
    with (
        running_server(folder, {"models": models, "lazy_load": True, **config}, "--parallel-jobs") as process,
        httpx.Client(base_url=process.url, timeout=HANG_GUARD_S) as client,
        ThreadPoolExecutor(8) as threads,
    ):
        yield SpeakersServer(process, client, checkpoints, threads)
