"""What a long recording, or a book, takes in memory: `PYTHONPATH=tests python -m long_audio_costs [MODEL...]`.

A server of installed models in process isolation gets 70 minutes of mu-law at 8 kHz, of which half is speech of its own
voice, or for the voice itself a text of 100,000 characters. Printed are the highest sizes of each process, in MiB, and
what came of the ends of the recording.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import psutil
import soundfile
import soxr

from installed_models import DEFAULT, installed_model
from process_tree import processes_of
from server_process import ServerProcess, running_server, started_alone

MINUTES = 70
RATE = 8_000
MODELS = ("silero-vad", "speaker-turns", "whisper-tiny-en")
VOICE = "piper-en-joe"
BOOK_SPEED = 2.0
FIRST, LAST = "This is the very beginning of the recording.", "Here the recording comes to its end."
BETWEEN = (
    "The committee met on Tuesday to talk about the new bridge over the river.",
    "Nobody had expected that so many people would come.",
    "After a short break the engineer explained how the old one was built.",
    "It will take two years, and cost more than they had hoped.",
)
EVERY_S = 0.25
MIB = 2**20


def recording(client: httpx.Client, file: Path) -> None:
    """Five minutes of speech, five of silence, and so on; the first and the last words are known."""
    first, last = spoken(client, FIRST), spoken(client, LAST)
    talk = np.concatenate(
        [piece for text in BETWEEN for piece in (spoken(client, text), np.zeros(RATE // 2, np.float32))]
    )
    samples = np.zeros(MINUTES * 60 * RATE, np.float32)
    for start in range(0, len(samples), 600 * RATE):
        samples[start : start + 300 * RATE] = np.resize(talk, 300 * RATE)
    samples[: len(first) + RATE] = np.pad(first, (0, RATE))
    samples[-len(last) - RATE :] = np.pad(last, (RATE, 0))
    soundfile.write(file, samples, RATE, format="WAV", subtype="ULAW")


def spoken(client: httpx.Client, text: str) -> "np.ndarray":
    answer = client.post("/v1/audio/speech", json={"model": VOICE, "input": text, "response_format": "pcm"})
    answer.raise_for_status()
    return soxr.resample(np.frombuffer(answer.content, "<i2").astype(np.float32) / 2**15, 22_050, RATE)


@contextmanager
def watched(server: ServerProcess) -> Iterator[dict[str, dict[str, int]]]:
    """The highest sizes of each process, by what it is, while the block runs."""
    highest: dict[str, dict[str, int]] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(EVERY_S):
            for process in processes_of(server):
                note(highest, process)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield highest
    finally:
        over.set()
        watcher.join()


def note(highest: dict[str, dict[str, int]], process: psutil.Process) -> None:
    try:
        name = f"{process.pid} {' '.join(process.cmdline()[4:5]) or 'server'}"
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        files = sum(
            fd.stat().st_size for fd in Path(f"/proc/{process.pid}/fd").iterdir() if "(deleted)" in str(fd.readlink())
        )
    except (psutil.Error, OSError):
        return
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines[1:]}
    seen = {"rss": sizes["Rss"], "pss": sizes["Pss"], "own": sizes["Anonymous"], "open files": files}
    before = highest.setdefault(name, seen)
    highest[name] = {key: max(before[key], size) for key, size in seen.items()}


def measure(models: list[str]) -> None:
    config = {
        "isolation": "process",
        "lazy_load": True,
        "allowed_audio_roots": ["."],
        "models": [installed_model(package, threads="auto") for package in (VOICE, *MODELS)],
    }
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder), config, start=started_alone) as server:
        file = Path(folder) / "long.wav"
        with httpx.Client(base_url=server.url, timeout=None) as client:
            recording(client, file)
            for model in models:
                ask(client, server, model, file)


def ask(client: httpx.Client, server: ServerProcess, model: str, file: Path) -> None:
    with watched(server) as highest:
        began = time.monotonic()
        answer = speak_a_book(client) if model == VOICE else hear(client, model, file)
        took_s = time.monotonic() - began
    print(model, answer.status_code, f"{took_s:.0f} s")
    for name, sizes in highest.items():
        print("  ", name, {key: round(size / MIB) for key, size in sizes.items()})
    if DEFAULT[model][1] == "asr":
        found = answer.json()
        times = [time for it in found["segments"] for time in (it["start"], it["end"])]
        print("   first:", found["text"][:80], "| last:", found["text"][-80:])
        print("   in order:", times == sorted(times), "| inside:", times[-1] <= found["duration"])
    else:
        print("  ", len(answer.content), "bytes")


def hear(client: httpx.Client, model: str, file: Path) -> httpx.Response:
    if DEFAULT[model][1] == "vad":
        return client.post("/v1/tasks/run", json={"model": model, "request": {"audio": {"path": str(file)}}})
    fields = {"model": model, "response_format": "verbose_json" if DEFAULT[model][1] == "asr" else "json"}
    with file.open("rb") as body:
        return client.post("/v1/audio/transcriptions", data=fields, files={"file": body})


def speak_a_book(client: httpx.Client) -> httpx.Response:
    text = (" ".join(BETWEEN) + " ") * 1000
    return client.post("/v1/audio/speech", json={"model": VOICE, "input": text[:100_000], "speed": BOOK_SPEED})


if __name__ == "__main__":
    measure(sys.argv[1:] or [*MODELS, VOICE])
