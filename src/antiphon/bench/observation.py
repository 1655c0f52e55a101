"""The case of observation: what it costs a request that it is counted, and that it leaves a line in the log."""

import asyncio
import time

from starlette.types import Message, Receive, Scope, Send

from antiphon.bench.comparisons import Case, Comparison, Sense, Side
from antiphon.bench.lab import Lab
from antiphon.bench.material import CLIENTS, NOOP
from antiphon.bench.samples import Basis, Sample
from antiphon.http.ledger import RequestLedger
from antiphon.observability.counts import Counts
from antiphon.observability.observers import Observers
from antiphon.observability.records import RecordKeeper

_MODEL = "null"
_HEADERS = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"5")]


def observation(lab: Lab) -> Case:
    """A request that has nothing to do, observed and not; and the observing alone."""
    model, requests = lab.null_model(), [NOOP] * lab.scale.noop_requests
    plain = lab.serve_unobserved([model]).warm_side("no-op, unobserved", requests, CLIENTS)
    quiet = lab.serve([model], parallel=True, flags=["--log-level", "warning"])
    counted = quiet.warm_side("no-op, counted", requests, CLIENTS)
    logged = lab.serve([model], parallel=True).warm_side("no-op, counted and logged", requests, CLIENTS)
    alone = CountingCycle("counting alone", lab.scale.gate_cycles)
    sides: tuple[Side, ...] = (plain, counted, logged, alone)
    comparisons = (
        Comparison("counted / unobserved", counted.name, (plain.name,), Sense.RATE, Basis.CPU, 0.97),
        Comparison("counted and logged / unobserved", logged.name, (plain.name,), Sense.RATE, Basis.CPU),
        Comparison("counting alone / no-op request", alone.name, (plain.name,), Sense.COST, Basis.CPU, 0.03),
    )
    return Case("observation", sides, comparisons)


class CountingCycle:
    """All that is done to enter and count one request, around an application that does nothing else."""

    def __init__(self, name: str, cycles: int) -> None:
        self.name = name
        self._cycles = cycles
        counts = Counts()
        self._observer = Observers([RecordKeeper(), counts])
        self._entered = RequestLedger(counts).around(self._answer)

    def measure(self) -> Sample:
        """Enter so many."""
        return asyncio.run(self._measure())

    async def _measure(self) -> Sample:
        before_s, started_s = time.process_time(), time.perf_counter()
        for _ in range(self._cycles):
            await self._entered({"type": "http", "method": "POST", "path": "/", "headers": _HEADERS}, _hear, _drop)
        return Sample(self._cycles, time.perf_counter() - started_s, time.process_time() - before_s)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await receive()
        self._observer.asked(_MODEL)
        self._observer.granted(_MODEL, 0.0001)
        self._observer.ran(_MODEL, 0.0, 0.01)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


async def _hear() -> Message:
    return {"type": "http.request", "body": b"asked", "more_body": False}


async def _drop(message: Message) -> None:
    del message
