"""The case of observation: what it costs a request that it is counted, and leaves lines in the log and the journal."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from antiphon.admission.gate import Gate, Granted
from antiphon.bench.comparisons import Case, Comparison, Sense, Side
from antiphon.bench.lab import Lab
from antiphon.bench.material import CLIENTS, NOOP
from antiphon.bench.samples import Basis, Sample
from antiphon.http.ledger import RequestLedger
from antiphon.observability.counts import Counts
from antiphon.observability.journal.gate import JournaledGate
from antiphon.observability.journal.journal import Journal
from antiphon.observability.journal.lines import JournalLines
from antiphon.observability.observers import Observers
from antiphon.observability.records import RecordKeeper
from antiphon.ports.observer import Observer, SilentObserver
from antiphon.runtime.clock import LoopClock
from antiphon.runtime.line_file import LineFile
from antiphon.vocabulary.states import Operation

_MODEL = "null"
_FILE_BYTES = 64 * 1024 * 1024
_PAUSE_CYCLES = 100
_HEADERS = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"5")]


def observation(lab: Lab) -> Case:
    """A request that has nothing to do, observed and not; and the observing alone."""
    model, requests = lab.null_model(), [NOOP] * lab.scale.noop_requests
    plain = lab.serve_unobserved([model]).warm_side("no-op, unobserved", requests, CLIENTS)
    quiet = lab.serve([model], parallel=True, flags=["--log-level", "warning"])
    counted = quiet.warm_side("no-op, counted", requests, CLIENTS)
    logged = lab.serve([model], parallel=True).warm_side("no-op, counted and logged", requests, CLIENTS)
    flags = ["--log-level", "warning", "--journal", str(lab.file("journal.jsonl", b""))]
    journaled = lab.serve([model], parallel=True, flags=flags).warm_side("no-op, counted, journal", requests, CLIENTS)
    alone = CountingCycle("counting and journal alone", lab.scale.gate_cycles, lab.file("alone.jsonl", b""))
    sides: tuple[Side, ...] = (plain, counted, journaled, logged, alone)
    comparisons = (
        Comparison("counted / unobserved", counted.name, (plain.name,), Sense.RATE, Basis.CPU, 0.97),
        Comparison("counted and logged / unobserved", logged.name, (plain.name,), Sense.RATE, Basis.CPU),
        Comparison("counted, journal / unobserved", journaled.name, (plain.name,), Sense.RATE, Basis.CPU, 0.97),
        Comparison(
            "counting and journal alone / no-op request", alone.name, (plain.name,), Sense.COST, Basis.CPU, 0.03
        ),
    )
    return Case("observation", sides, comparisons)


class CountingCycle:
    """What it adds to one request that it is entered, counted and kept in the journal, which is written to a file.

    Around an application that has its slot of a gate and does nothing else: what that takes by itself is taken off.
    """

    def __init__(self, name: str, cycles: int, file: Path) -> None:
        self.name = name
        self._cycles = cycles
        self._file = file
        self._clock = LoopClock()
        self._journal = Journal(self._clock)
        counts = Counts()
        observer = Observers([RecordKeeper(), counts, self._journal])
        counted = _Application(JournaledGate(_MODEL, 1, self._journal), self._clock, observer)
        self._counted = RequestLedger(counts).around(counted)
        self._bare = _Application(Gate(_MODEL, 1), self._clock, SilentObserver())

    def measure(self) -> Sample:
        """Enter so many, and let as many through that are not entered."""
        return asyncio.run(self._measure())

    async def _measure(self) -> Sample:
        counted = await self._timed(self._counted_cycles)
        bare = await self._timed(partial(self._cycles_of, self._bare))
        return Sample(self._cycles, counted.wall_s - bare.wall_s, counted.cpu_s - bare.cpu_s)

    async def _timed(self, cycles: Callable[[], Awaitable[None]]) -> Sample:
        before_s, started_s = time.process_time(), time.perf_counter()
        await cycles()
        return Sample(self._cycles, time.perf_counter() - started_s, time.process_time() - before_s)

    async def _counted_cycles(self) -> None:
        file = LineFile(self._file, "the journal", kept=1)
        file.open()
        lines = JournalLines(self._journal, file, self._clock, max_bytes=_FILE_BYTES)
        lines.start()
        await self._cycles_of(self._counted)
        await lines.close()

    async def _cycles_of(self, application: ASGIApp) -> None:
        for cycle in range(self._cycles):
            await application({"type": "http", "method": "POST", "path": "/", "headers": _HEADERS}, _hear, _drop)
            if not cycle % _PAUSE_CYCLES:
                await asyncio.sleep(0)  # what is due is written


class _Application:
    """Gives every request its slot, and answers it."""

    def __init__(self, gate: Gate, clock: LoopClock, observer: Observer) -> None:
        self._gate = gate
        self._clock = clock
        self._observer = observer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await receive()
        self._observer.asked(_MODEL)
        _, decisions = self._gate.submit(Operation.INFER, self._clock.now(), 0)
        granted = decisions[0]
        assert isinstance(granted, Granted), "nobody else has it"
        self._observer.granted(_MODEL, 0.0001)
        self._observer.ran(_MODEL, 0.0, 0.01)
        self._gate.release(granted.lease, self._clock.now())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


async def _hear() -> Message:
    return {"type": "http.request", "body": b"asked", "more_body": False}


async def _drop(message: Message) -> None:
    del message
