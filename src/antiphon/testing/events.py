"""The log of a controlled checkpoint: `events.jsonl`, one JSON line an event. It decides nothing."""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_NAME = "events.jsonl"


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a controlled engine.

    Units: `t` in seconds of the machine's monotonic clock, which its processes share. `request` is the request's text.
    """

    t: float
    pid: int
    step: str
    session: str | None
    request: str | None
    revision: str


def append_event(
    folder: Path, step: str, revision: str, *, session: str | None = None, request: str | None = None
) -> None:
    """Write one event at the log's end, whole: many threads and processes may append to one log."""
    event = Event(time.monotonic(), os.getpid(), step, session, request, revision)
    line = json.dumps(asdict(event)).encode() + b"\n"
    log = os.open(folder / FILE_NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(log, line)
    finally:
        os.close(log)


def read_events(folder: Path) -> list[Event]:
    """The events so far, in the order in which they were written; none when no engine was here yet."""
    try:
        data = (folder / FILE_NAME).read_bytes()
    except FileNotFoundError:
        return []
    whole = data[: data.rfind(b"\n") + 1]  # a line that is just being written counts next time
    return [Event(**json.loads(line)) for line in whole.splitlines()]
