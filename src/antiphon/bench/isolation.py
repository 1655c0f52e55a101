"""The cases of isolation: what a worker process costs, against the engine in a thread of the server."""

import asyncio
import os
import time
from collections.abc import Sequence

from antiphon.bench.comparisons import Case, Comparison, Sense, Side
from antiphon.bench.lab import Lab, configured
from antiphon.bench.material import CLIENTS, NOOP, SENTENCES, clips_of, speech_request, transcription_request
from antiphon.bench.processes import Measured
from antiphon.bench.samples import Basis, Sample
from antiphon.packages import InstalledModel
from antiphon.runtime.discovery import AdapterFinder
from antiphon.runtime.hosts.process import ProcessHost
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.states import Isolation

_SLOTS = 2


def isolation(lab: Lab) -> Case:
    """A request that has nothing to do. By the wall clock: half of the work is in another process."""
    pair = _pair(lab, "no-op", lab.null_model(), [NOOP] * lab.scale.noop_requests, CLIENTS)
    return Case("isolation", pair, (_comparison(pair, 0.65),))


def isolated_engines(lab: Lab) -> Case:
    """Piper and Whisper, with two slots each."""
    pairs = [
        _pair(lab, model.family, {**configured(model), "slots": _SLOTS, "threads": 1}, requests, _SLOTS)
        for model, requests in _engines(lab)
    ]
    sides = tuple(side for pair in pairs for side in pair)
    return Case("isolated-engines", sides, tuple(_comparison(pair, 0.97) for pair in pairs))


def worker_start(lab: Lab) -> Case:
    """From nothing to an open session: a worker, against an interpreter that does nothing but load the engine."""
    sides: list[Side] = []
    comparisons: list[Comparison] = []
    for model, _ in _engines(lab):
        worker, bare = _WorkerStart(model), _BareStart(model)
        sides += [worker, bare]
        title = f"{model.family}: start of a worker / bare load"
        comparisons.append(Comparison(title, worker.name, (bare.name,), Sense.COST, Basis.WALL, 1.2))
    for side in sides:
        side.measure()  # the first start of each reads its files from the disk
    return Case("worker-start", tuple(sides), tuple(comparisons))


class _WorkerStart:
    """A process host, until its primary is open."""

    def __init__(self, model: InstalledModel) -> None:
        self.name = f"worker, {model.family}"
        self._spec = _spec(model)
        self._adapter = AdapterFinder().target(model.family)

    def measure(self) -> Sample:
        """Start one, and end it again."""
        return asyncio.run(self._measure())

    async def _measure(self) -> Sample:
        host = ProcessHost(self._adapter, self._spec, _unexpected)
        before_s, started_s = _children_s(), time.perf_counter()
        await host.load()
        await host.open()
        wall_s = time.perf_counter() - started_s
        await host.close()
        await host.terminate()
        return Sample(1, wall_s, _children_s() - before_s)


class _BareStart:
    """An interpreter that imports the adapter, loads the model and opens a session."""

    _PROGRAM = """
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Task
from {module} import {adapter}
{adapter}().load(ModelSpec("bare", {family!r}, {path!r}, Task({task!r}))).open_session()
print("open", flush=True)
input()
"""

    def __init__(self, model: InstalledModel) -> None:
        self.name = f"bare, {model.family}"
        module, _, adapter = AdapterFinder().target(model.family).partition(":")
        self._program = self._PROGRAM.format(
            module=module, adapter=adapter, family=model.family, path=str(model.path), task=str(model.task)
        )

    def measure(self) -> Sample:
        """Start one, and end it again."""
        started_s = time.perf_counter()
        with Measured(["-c", self._program]) as process:
            process.wait_for(lambda line: line == "open")
            return Sample(1, time.perf_counter() - started_s, process.cpu_s())


def _pair(lab: Lab, what: str, model: dict[str, object], requests: Sequence[bytes], clients: int) -> tuple[Side, Side]:
    """The same server twice."""

    def side(where: Isolation) -> Side:
        return lab.serve([model], parallel=True, isolation=where).warm_side(f"{what}, {where}", requests, clients)

    return side(Isolation.PROCESS), side(Isolation.THREAD)


def _comparison(pair: tuple[Side, Side], target: float) -> Comparison:
    ours, theirs = (side.name for side in pair)
    return Comparison(f"{ours} / {theirs}", ours, (theirs,), Sense.RATE, Basis.WALL, target)


def _engines(lab: Lab) -> list[tuple[InstalledModel, list[bytes]]]:
    """The installed engines with what a turn asks of each; raises NotInstalledError where there is none."""
    piper, whisper = lab.installed("piper"), lab.installed("whisper")
    texts = SENTENCES[: lab.scale.sentences]
    return [
        (piper, [speech_request(piper.id, text) for text in texts]),
        (whisper, [transcription_request(whisper.id, clip) for clip in clips_of(lab)]),
    ]


def _spec(model: InstalledModel) -> ModelSpec:
    return ModelSpec("worker", model.family, str(model.path), model.task, isolation=Isolation.PROCESS)


def _children_s() -> float:
    """The processor time of the processes that have ended, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def _unexpected() -> None:
    """The turn fails anyhow when its worker dies."""
