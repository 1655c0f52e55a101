"""One cycle of admission, with any number of waiters behind it: our gate and `asyncio.Semaphore`, decisions alone.

Both are called directly, without tasks: what is measured is entering a queue and leaving it, not an event loop. Full
means that every slot is taken, so a cycle queues one claim and grants the oldest; the number of waiters stays.
"""

import asyncio
import time
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from antiphon.admission.gate import Gate, GateView, Granted, Lease
from antiphon.bench.samples import Sample
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import Operation

_SLOTS = 2
_TIMEOUT_S = 300.0
_STEP_S = 1e-6


class GateCycle:
    """Submit one request, release one lease, ask for the next deadline: what the runtime does for each request."""

    def __init__(self, name: str, waiters: int, cycles: int) -> None:
        self.name = name
        self._cycles = cycles
        self._now = 0.0
        self._gate = Gate("bench", _SLOTS)
        self._leases: deque[Lease] = deque()
        for _ in range(waiters + _SLOTS if waiters else 0):
            self._submit()

    def measure(self) -> Sample:
        """Take a turn."""
        started_s, started_cpu_s = time.perf_counter(), time.process_time()
        for _ in range(self._cycles):
            self._submit()
            self._release()
            self._gate.next_deadline()
        return Sample(self._cycles, time.perf_counter() - started_s, time.process_time() - started_cpu_s)

    def snapshot(self) -> GateView:
        """The gate as the last turn left it."""
        return self._gate.snapshot(self._now, limit=0)

    def _submit(self) -> None:
        self._now += _STEP_S
        _, decisions = self._gate.submit(Operation.INFER, self._now, _TIMEOUT_S)
        for decision in decisions:
            self._keep(decision)

    def _release(self) -> None:
        self._now += _STEP_S
        for decision in self._gate.release(self._leases.popleft(), self._now):
            self._keep(decision)

    def _keep(self, decision: object) -> None:
        if not isinstance(decision, Granted):
            raise InvariantError("nothing is refused in a benchmark of grants")
        self._leases.append(decision.lease)


class SemaphoreCycle:
    """Acquire and release; its coroutines are stepped by hand, as many as there are waiters."""

    def __init__(self, name: str, waiters: int, cycles: int) -> None:
        self.name = name
        self._waiters = waiters
        self._cycles = cycles

    def measure(self) -> Sample:
        """Take a turn, on a loop of its own, as futures need one."""
        return asyncio.run(self._turn())

    async def _turn(self) -> Sample:
        semaphore = asyncio.Semaphore(_SLOTS)
        acquiring: deque[Coroutine[Any, Any, bool]] = deque()
        for _ in range(self._waiters + _SLOTS if self._waiters else 0):
            _enter(semaphore, acquiring)
        started_s, started_cpu_s = time.perf_counter(), time.process_time()
        for _ in range(self._cycles):
            _enter(semaphore, acquiring)
            semaphore.release()
            if acquiring:
                _leave(acquiring.popleft())
        sample = Sample(self._cycles, time.perf_counter() - started_s, time.process_time() - started_cpu_s)
        while acquiring:
            semaphore.release()
            _leave(acquiring.popleft())
        return sample


def _enter(semaphore: asyncio.Semaphore, acquiring: "deque[Coroutine[Any, Any, bool]]") -> None:
    """Begin to acquire; a coroutine that has to wait joins `acquiring`."""
    acquire = semaphore.acquire()
    with suppress(StopIteration):  # it holds the semaphore already
        acquire.send(None)
        acquiring.append(acquire)


def _leave(acquire: Coroutine[Any, Any, bool]) -> None:
    """End the waiting of the one who was woken."""
    with suppress(StopIteration):
        acquire.send(None)
        raise InvariantError("the oldest waiter was not the one who was woken")
