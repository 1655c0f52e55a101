"""An engine that does what its request's text says, in the process that it runs in: for tests of hosts."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping

from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Interface, Mode, StreamEvent, Task, TaskRequest, TaskResult, TextDelta

TARGET = "odd_engine:OddAdapter"
NOISE_BYTES = 10 * 1024 * 1024


class OddRequest(InvalidRequest):
    """A domain error that only this engine knows."""


class OddAdapter:
    """Adapter, model and session in one, without any state but how many events its streams have made."""

    family, task, mode, sample_rate, channels, capacity = "odd", Task.ASR, Mode.OFFLINE, 16_000, 1, 4
    interfaces = frozenset({Interface.OFFLINE, Interface.STREAMING})
    made = 0

    def inspect(self, spec: ModelSpec) -> Capability:
        return Capability(frozenset(Task), frozenset(Mode), 16_000, 0)

    def load(self, spec: ModelSpec) -> "OddAdapter":
        return self

    def open_session(self, spec: ModelSpec | None = None) -> "OddAdapter":
        return self

    def clone(self) -> "OddAdapter":
        return self

    def prepare(self, request: TaskRequest) -> None: ...

    def run(self, request: TaskRequest) -> TaskResult:
        return ACTS[request.text or "echo"](request)

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        while True:
            OddAdapter.made += 1
            yield TextDelta(str(OddAdapter.made))

    def reset(self) -> None: ...

    def close(self) -> None: ...


def _echo(request: TaskRequest) -> TaskResult:
    return TaskResult(text=request.language, audio=request.audio, sample_rate=16_000)


def _noise(request: TaskRequest) -> TaskResult:
    line = b"x" * 99 + b"\n"
    for _ in range(NOISE_BYTES // len(line)):
        os.write(2, line)
    return TaskResult(text="said")


def _print(request: TaskRequest) -> TaskResult:
    print("a line of an engine")
    print("no newline, and a \0", end="")
    return TaskResult(text="said")


def _refuse(request: TaskRequest) -> TaskResult:
    raise OddRequest("odd", param="input")


ACTS: Mapping[str, Callable[[TaskRequest], TaskResult]] = {
    "echo": _echo,
    "noise": _noise,
    "print": _print,
    "refuse": _refuse,
    "made": lambda _: TaskResult(text=str(OddAdapter.made)),
    "modules": lambda _: TaskResult(text=" ".join(sorted(sys.modules))),
    "options": lambda request: TaskResult(text=repr(dict(request.options))),
    "garbage": lambda _: TaskResult(text=object()),  # type: ignore[arg-type]  # what a careless engine may answer
}
