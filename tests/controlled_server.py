"""A real server of controlled models, with a client and the checkpoints that steer them. It asserts nothing."""

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

import audio_assets
from antiphon.testing import ControlledCheckpoint
from server_process import HANG_GUARD_S, HELD_GUARD_S, ServerProcess, running_server

SPEECH = "/v1/audio/speech"
TRANSCRIPTIONS = "/v1/audio/transcriptions"
TASK_RUN = "/v1/tasks/run"
CLIP = audio_assets.wav_bytes(audio_assets.tone(440, 0.5))
"""Half a second of sound, as a file."""

SLASHED = "org/tts one"
"""The id of a model that needs percent-encoding in a URL."""


@dataclass(frozen=True, slots=True)
class ControlledServer:
    """The models `tts`, `asr` and `SLASHED`; `threads` make requests that overlap."""

    process: ServerProcess
    client: httpx.Client
    checkpoints: Mapping[str, ControlledCheckpoint]
    threads: ThreadPoolExecutor
    parallel: bool

    def speak(self, text: str, **fields: object) -> httpx.Response:
        """Have `text` spoken by the model `tts`, unless the fields name another."""
        return self.client.post(SPEECH, json={"model": "tts", "input": text, **fields})

    def transcribe(self, file: bytes = CLIP, **fields: object) -> httpx.Response:
        """Have a file transcribed by the model `asr`, as a form, unless the fields name another."""
        return self.client.post(TRANSCRIPTIONS, data={"model": "asr", **fields}, files={"file": ("a.wav", file)})

    def later(self, text: str, **fields: object) -> "Future[httpx.Response]":
        """Have `text` spoken meanwhile."""
        body = {"model": "tts", "input": text, **fields}
        return self.threads.submit(lambda: self.client.post(SPEECH, json=body, timeout=HELD_GUARD_S))

    def model(self, model_id: str = "tts") -> Mapping[str, object]:
        """What the server says of a model."""
        return self.client.get(f"/v1/models/{model_id}").json()

    @contextmanager
    def steered(self, name: str, text: str = "", model_id: str = "tts") -> Iterator[ControlledCheckpoint]:
        """Keep one steering file for the length of a block."""
        checkpoint = self.checkpoints[model_id]
        checkpoint.set(name, text)
        try:
            yield checkpoint
        finally:
            (checkpoint.path / name).unlink(missing_ok=True)


@contextmanager
def controlled_server(
    folder: Path,
    *,
    parallel: bool,
    start: Callable[..., subprocess.Popen[str]] | None = None,
    flags: Sequence[str] = (),
    **config: object,
) -> Iterator[ControlledServer]:
    """Serve the controlled models; `parallel` gives them two slots each, the rest is as in `running_server`."""
    folders = {"tts": "tts", "asr": "asr", SLASHED: "slashed"}
    slots: dict[str, object] = {"slots": 2} if parallel else {}
    models = [
        {"id": name, "family": "controlled", "path": path, "task": "asr" if name == "asr" else "tts", **slots}
        for name, path in folders.items()
    ]
    checkpoints = {name: ControlledCheckpoint(folder / path) for name, path in folders.items()}
    flags = [*flags, "--parallel-jobs"] if parallel else flags
    with (
        running_server(folder, {"models": models, "lazy_load": True, **config}, *flags, start=start) as process,
        httpx.Client(base_url=process.url, timeout=HANG_GUARD_S) as client,
        ThreadPoolExecutor(16) as threads,
    ):
        yield ControlledServer(process, client, checkpoints, threads, parallel)
