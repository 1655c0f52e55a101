"""Engines for the tests of validation: one that is right, and others that are wrong in one way each.

All are families of their own, found by "suspect_engines:CLASS"; the answer to a text is a digest of it. A run waits a
moment, so that runs which may overlap do.
"""

import hashlib
import mmap
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import Capability, ModelSpec
from antiphon.vocabulary.tasks import Final, Interface, Mode, StreamEvent, Task, TaskRequest, TaskResult, TextDelta

RUN_S = 0.03
LOAD_S = 0.1
LONG_LOAD_S = 0.5
"""Long enough for an unload to meet it, also where many others work."""
LONG_RUN_S = 0.05
MEETING_S = 0.3
REFUSED = "unspeakable"
LEAK_BYTES = 8 * 1024 * 1024


class SteadyAdapter:
    """The engine that is right: what it answers hangs on the text alone."""

    family = "steady"

    def inspect(self, spec: ModelSpec) -> Capability:
        return Capability(frozenset({Task.TTS}), frozenset(Mode), 16_000, 0)

    def load(self, spec: ModelSpec) -> "Weights":
        time.sleep(LOAD_S)
        return Weights(self, spec)

    def answer(self, weights: "Weights", text: str) -> str:
        time.sleep(RUN_S)
        return hashlib.sha256(text.encode()).hexdigest()

    def check(self, weights: "Weights", text: str) -> None:
        if text == REFUSED:
            raise InvalidRequest("this text is not to be spoken", param="text")


class SlowToLoadAdapter(SteadyAdapter):
    """The same, with a first load of each entry that is easily met."""

    family = "slow_to_load"
    loaded: ClassVar[set[str]] = set()

    def load(self, spec: ModelSpec) -> "Weights":
        if spec.id not in self.loaded:
            self.loaded.add(spec.id)
            time.sleep(LONG_LOAD_S)
        return super().load(spec)


class CrosstalkAdapter(SteadyAdapter):
    """All slots write into one place, and read it back later."""

    family = "crosstalk"

    def answer(self, weights: "Weights", text: str) -> str:
        weights.shared = text
        super().answer(weights, text)
        return hashlib.sha256(weights.shared.encode()).hexdigest()


class FickleAdapter(SteadyAdapter):
    """Counts its runs in every answer: no two are equal, on one slot either."""

    family = "fickle"
    runs = count()

    def answer(self, weights: "Weights", text: str) -> str:
        return f"{super().answer(weights, text)} {next(self.runs)}"


class LeakyAdapter(SteadyAdapter):
    """Keeps some memory of every run."""

    family = "leaky"

    def answer(self, weights: "Weights", text: str) -> str:
        kept = mmap.mmap(-1, LEAK_BYTES)
        kept[::4096] = b"\1" * len(range(0, LEAK_BYTES, 4096))
        weights.kept.append(kept)
        return super().answer(weights, text)


class TouchyAdapter(SteadyAdapter):
    """A bad request spoils what another slot is about to answer; both take their time, so that they meet."""

    family = "touchy"

    def check(self, weights: "Weights", text: str) -> None:
        if text == REFUSED:
            weights.spoilt = weights.at_work.wait(MEETING_S)
        super().check(weights, text)

    def answer(self, weights: "Weights", text: str) -> str:
        weights.at_work.set()
        time.sleep(LONG_RUN_S)
        right = super().answer(weights, text)
        weights.at_work.clear()
        spoilt, weights.spoilt = weights.spoilt, False
        return f"{right} spoilt" if spoilt else right


class CrowdedAdapter(SteadyAdapter):
    """Answers otherwise where it has more than one slot."""

    family = "crowded"

    def answer(self, weights: "Weights", text: str) -> str:
        return f"{super().answer(weights, text)} {min(weights.slots, 2)}"


class Weights:
    """What the slots of one load share."""

    def __init__(self, adapter: SteadyAdapter, spec: ModelSpec) -> None:
        self.adapter = adapter
        self.slots = spec.slots
        self.shared = ""
        self.spoilt = False
        self.at_work = threading.Event()
        self.kept: list[mmap.mmap] = []

    def open_session(self, spec: ModelSpec | None = None) -> "Slot":
        return Slot(self)

    def close(self) -> None: ...


@dataclass
class Slot:
    """A session."""

    weights: Weights
    task = Task.TTS
    mode = Mode.OFFLINE
    interfaces = frozenset({Interface.OFFLINE, Interface.STREAMING})
    sample_rate = 16_000
    channels = 1
    capacity = 16

    @property
    def family(self) -> str:
        return self.weights.adapter.family

    def clone(self) -> "Slot":
        return Slot(self.weights)

    def prepare(self, request: TaskRequest) -> None:
        self.weights.adapter.check(self.weights, request.text or "")

    def run(self, request: TaskRequest) -> TaskResult:
        return TaskResult(text=self.weights.adapter.answer(self.weights, request.text or ""))

    def stream(self, request: TaskRequest, audio: Iterator[AudioChunk] | None) -> Iterator[StreamEvent]:
        result = self.run(request)
        yield TextDelta(result.text or "")
        yield Final(result)

    def reset(self) -> None: ...

    def close(self) -> None: ...
