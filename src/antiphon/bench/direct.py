"""The engine without a server: a process that loads a model by its adapter and has N threads call N sessions.

`python -m antiphon.bench.direct FILE` reads a `DirectWork` as JSON, loads, says "ready", and then answers each line
of its input, a number of callers, with "done" when they have worked off every piece.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self, cast

from antiphon.audio.convert import convert
from antiphon.audio.decode import DecodeLimits, decode
from antiphon.bench.crowd import work_off
from antiphon.ports.adapter import OfflineSession, Session
from antiphon.runtime.discovery import AdapterFinder
from antiphon.vocabulary.errors import LoadFailed
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task, TaskRequest

READY = "ready"
DONE = "done"
_LONGEST_CLIP_S = 600


@dataclass(frozen=True, slots=True)
class DirectWork:
    """What to load and what to ask it. `texts` are spoken, `clips`, paths of audio files, are transcribed.

    A model is loaded for each number in `callers`, with that many slots of one intra-op thread.
    """

    family: str
    path: str
    task: str
    callers: tuple[int, ...]
    texts: tuple[str, ...] = ()
    clips: tuple[str, ...] = ()

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        given = json.loads(text)
        return cls(
            family=given["family"],
            path=given["path"],
            task=given["task"],
            callers=tuple(given["callers"]),
            texts=tuple(given["texts"]),
            clips=tuple(given["clips"]),
        )


def main(work: DirectWork) -> None:
    """Load, then serve the lines of the standard input until it ends."""
    crowds = {callers: _sessions(work, callers) for callers in work.callers}
    requests = _requests(work, crowds[work.callers[0]][0])
    for sessions in crowds.values():
        work_off(requests[:1] * len(sessions), [_caller(session) for session in sessions])
    _say(READY)
    for line in sys.stdin:
        work_off(requests, [_caller(session) for session in crowds[int(line)]])
        _say(DONE)


def _sessions(work: DirectWork, callers: int) -> list[Session]:
    task = Task(work.task)
    spec = ModelSpec(id="direct", family=work.family, path=work.path, task=task, slots=callers, threads=1)
    primary = AdapterFinder().find(work.family).load(spec).open_session()
    if primary is None:
        raise LoadFailed("the engine opened no session")
    sessions = [primary]
    for _ in range(1, callers):
        clone = primary.clone()
        if clone is None:
            raise LoadFailed("the engine opened no further session")
        sessions.append(clone)
    return sessions


def _requests(work: DirectWork, session: Session) -> list[TaskRequest]:
    """The inputs, audio as the session takes it: nothing but the engine is left to be measured."""
    requests = [TaskRequest(text=text) for text in work.texts]
    for clip in work.clips:
        with Path(clip).open("rb") as file:
            pcm = decode(file, DecodeLimits(max_seconds=_LONGEST_CLIP_S))
        requests.append(TaskRequest(audio=convert(pcm, session.sample_rate, session.channels)))
    return requests


def _caller(session: Session) -> Callable[[TaskRequest], object]:
    offline = cast("OfflineSession", session)

    def call(request: TaskRequest) -> object:
        offline.prepare(request)
        return offline.run(request)

    return call


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(DirectWork.from_json(Path(sys.argv[1]).read_text("utf-8")))
