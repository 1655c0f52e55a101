"""The log of a controlled checkpoint: `events.jsonl`, one JSON line an event. It decides nothing."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from antiphon.vocabulary.tasks import TaskRequest

FILE_NAME = "events.jsonl"


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a controlled engine.

    Units: `t` in seconds of the machine's monotonic clock, which its processes share. `request` is the request's text,
    `terms` is what it says beside that: its voice, language, seed and options, and the rate, channels and frames of its
    `voice_ref`; what is at its default is left out. `at_work` is what it said of the number of calls under way.
    """

    t: float
    pid: int
    step: str
    session: str | None
    request: str | None
    revision: str
    terms: Mapping[str, object] = field(default_factory=dict)
    at_work: int | None = None


def append_event(
    folder: Path, step: str, revision: str, *, session: str | None = None, request: TaskRequest | None = None
) -> None:
    """Write one event at the log's end, whole: many threads and processes may append to one log."""
    event = Event(time.monotonic(), os.getpid(), step, session, None, revision)
    if request is not None:
        event = replace(event, request=request.text, terms=_terms_of(request), at_work=request.at_work())
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


def _terms_of(request: TaskRequest) -> dict[str, object]:
    heard = request.voice_ref
    said = {
        "voice": request.voice,
        "language": request.language,
        "seed": request.seed,
        "options": dict(request.options),
        "voice_ref": heard and {"rate": heard.rate, "channels": heard.channels, "frames": heard.frames},
    }
    return {name: value for name, value in said.items() if value}
