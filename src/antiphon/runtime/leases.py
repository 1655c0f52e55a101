"""Turns the core's decisions into leases that coroutines can await; it knows nothing of models or engines."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, assert_never

from antiphon.admission.gate import Decision, Gate, GateView, Granted, Lease, Refusal, Refused, Waiter
from antiphon.admission.scheduler import Scheduler
from antiphon.ports.clock import Clock, Timer
from antiphon.vocabulary.errors import ServerBusy
from antiphon.vocabulary.states import Operation


class LeaseDesk:
    """The one place that calls the scheduler, always on the event loop and never across an await.

    Rule 2 of "leases in asyncio" is kept here: a claim that is cancelled is withdrawn if it waits, and given back if it
    was granted before its coroutine could run.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scheduler = Scheduler()
        self._pending: dict[Waiter, asyncio.Future[Lease]] = {}
        self._alarms: dict[str, tuple[float, Timer]] = {}

    def open_gate(self, model_id: str, capacity: int) -> None:
        """Add the gate of a new model."""
        self._scheduler.add(Gate(model_id, capacity))

    def view(self, model_id: str, limit: int = 1000) -> GateView:
        """The gate's leases and queue at this moment, with at most `limit` waiters listed."""
        return self._scheduler.gate(model_id).snapshot(self._clock.now(), limit)

    def acquire(self, model_id: str, operation: Operation, timeout_s: float) -> Coroutine[Any, Any, Lease]:
        """Enter the queue now, and await the lease: `timeout_s` at most and 0 without bound; the caller releases it.

        The order of these calls is the order of the queue, whenever what they return is awaited; it must be awaited.
        Raises ServerBusy there when the wait ends without a lease, or would be hopeless.
        """
        gate = self._scheduler.gate(model_id)
        waiter, decisions = gate.submit(operation, self._clock.now(), timeout_s)
        future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._pending[waiter] = future
        self._deliver(gate, decisions)
        return self._granted(gate, waiter, future)

    @asynccontextmanager
    async def lease(self, model_id: str, operation: Operation, timeout_s: float) -> AsyncIterator[Lease]:
        """Hold a lease for the length of a block."""
        lease = await self.acquire(model_id, operation, timeout_s)
        try:
            yield lease
        finally:
            self.release(lease)

    def release(self, lease: Lease) -> None:
        """Give a lease back, once; whoever waits next has his in the same call."""
        gate = self._scheduler.gate(lease.waiter.gate)
        self._deliver(gate, gate.release(lease, self._clock.now()))

    def close(self) -> None:
        """Stop the alarms."""
        for _, timer in self._alarms.values():
            timer.cancel()
        self._alarms.clear()

    async def _granted(self, gate: Gate, waiter: Waiter, future: asyncio.Future[Lease]) -> Lease:
        try:
            # A grant that is there already is taken without a suspension, so nothing can come between.
            return future.result() if future.done() else await future
        except asyncio.CancelledError:
            self._give_up(gate, waiter, future)
            raise
        finally:
            del future  # a refusal must not refer to itself through this frame

    def _give_up(self, gate: Gate, waiter: Waiter, future: asyncio.Future[Lease]) -> None:
        if self._pending.pop(waiter, None) is not None:
            self._deliver(gate, gate.withdraw(waiter, self._clock.now()))
        elif not future.cancelled() and future.exception() is None:
            self.release(future.result())

    def _deliver(self, gate: Gate, decisions: Iterable[Decision]) -> None:
        """Tell each claim what was decided; a grant that nobody awaits any more goes straight back."""
        todo = deque(decisions)
        while todo:
            match todo.popleft():
                case Granted(lease):
                    future = self._pending.pop(lease.waiter)
                    if future.cancelled():
                        todo.extend(gate.release(lease, self._clock.now()))
                    else:
                        future.set_result(lease)
                case Refused(waiter, reason):
                    future = self._pending.pop(waiter)
                    if not future.cancelled():
                        future.set_exception(_busy(waiter, reason))
                case unknown:
                    assert_never(unknown)
        self._set_alarm(gate)

    def _set_alarm(self, gate: Gate) -> None:
        """Have the gate expire its waiters in time: one timer a gate, never later than its next deadline."""
        deadline = gate.next_deadline()
        armed = self._alarms.get(gate.name)
        if deadline is None or (armed is not None and armed[0] <= deadline):
            return
        if armed is not None:
            armed[1].cancel()
        self._alarms[gate.name] = deadline, self._clock.call_at(deadline, lambda: self._ring(gate))

    def _ring(self, gate: Gate) -> None:
        del self._alarms[gate.name]
        self._deliver(gate, gate.expire(self._clock.now()))


def _busy(waiter: Waiter, reason: Refusal) -> ServerBusy:
    waited_ms = round((waiter.deadline - waiter.since) * 1000)
    match reason:
        case Refusal.EXPIRED:
            return ServerBusy(f"no slot of model {waiter.gate!r} came free within {waited_ms} ms")
        case Refusal.OVERDUE:
            return ServerBusy(f"all that occupies model {waiter.gate!r} has run for longer than {waited_ms} ms")
        case unknown:
            assert_never(unknown)
