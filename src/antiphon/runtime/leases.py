"""Turns the core's decisions into leases that coroutines can await; it knows nothing of models or engines."""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, assert_never

from antiphon.admission.estimates import RunTimes, drain_s, retry_after_s
from antiphon.admission.gate import Decision, Gate, GateView, Granted, Lease, Refusal, Refused, Waiter
from antiphon.admission.scheduler import PublicationError, Scheduler
from antiphon.ports.clock import Clock, Timer
from antiphon.runtime.owned import AbandonedError
from antiphon.vocabulary.errors import AntiphonError, InvariantError, ServerBusy, ShuttingDown
from antiphon.vocabulary.states import Operation

_UNMEASURED_S = 1.0
"""When to come back to a model of which no request has been measured, in seconds."""


class Claim:
    """A place in a model's queue, or what came of it. It must be awaited, once; the caller releases the lease.

    Raises ServerBusy there when the wait ended without a lease, or would have been hopeless, and ShuttingDown when all
    who waited were dismissed.
    """

    __slots__ = ("_desk", "_future", "_gate", "_waiter")

    def __init__(self, desk: "LeaseDesk", gate: Gate, waiter: Waiter, future: "asyncio.Future[Lease]") -> None:
        self._desk = desk
        self._gate = gate
        self._waiter = waiter
        self._future: asyncio.Future[Lease] | None = future

    @property
    def waiter(self) -> Waiter:
        """Who claims."""
        return self._waiter

    @property
    def lease(self) -> Lease | None:
        """The lease, where it is granted already and was not taken yet."""
        future = self._future
        if future is None or not future.done() or future.cancelled() or future.exception() is not None:
            return None
        return future.result()

    def give_up(self) -> None:
        """Hold and wait for nothing any more; instead of awaiting it."""
        self._desk.give_up(self._gate, self._waiter, self._take_future())

    def withdraw(self) -> None:
        """Leave the queue if this claim still waits there: awaiting it then raises AbandonedError.

        A claim that has been granted keeps its lease, whether or not its coroutine has run since.
        """
        self._desk.withdraw(self._gate, self._waiter)

    def __await__(self) -> Generator[Any, Any, Lease]:
        return self._desk.granted(self._gate, self._waiter, self._take_future()).__await__()

    def _take_future(self) -> "asyncio.Future[Lease]":
        # Kept here, a refusal would refer to itself through the frames that hold this claim.
        future, self._future = self._future, None
        if future is None:
            raise InvariantError(f"{self._waiter} is awaited a second time")
        return future


class LeaseDesk:
    """The one place that calls the scheduler, always on the event loop and never across an await.

    Rule 2 of "leases in asyncio" is kept here: a claim that is cancelled is withdrawn if it waits, and given back if it
    was granted before its coroutine could run.
    """

    def __init__(self, clock: Clock, make_gate: Callable[[str, int], Gate] = Gate) -> None:
        self._clock = clock
        self._make_gate = make_gate
        self._scheduler = Scheduler()
        self._pending: dict[Waiter, asyncio.Future[Lease]] = {}
        self._alarms: dict[str, tuple[float, Timer]] = {}
        self._run_times: dict[str, RunTimes] = {}
        self._refusals: dict[str, int] = {}
        self.on_idle: Callable[[str], None] = _nobody_listens
        """Told the id of a model whose last lease was given back with nobody waiting."""

    def open_gate(self, model_id: str, capacity: int) -> None:
        """Add the gate of a new model."""
        self._scheduler.add(self._make_gate(model_id, capacity))

    def open_held_gate(self, model_id: str, capacity: int, operation: Operation) -> Lease:
        """Add the gate of a new model with its exclusive lease taken: nobody can come between."""
        gate = self._make_gate(model_id, capacity)
        lease, _ = gate.try_exclusive(operation, self._clock.now())
        if lease is None:
            raise InvariantError(f"the new {gate} is not idle")
        self._scheduler.add(gate)
        return lease

    def drop_gate(self, lease: Lease) -> None:
        """Take back `open_held_gate`, before anyone else has seen the gate."""
        self._scheduler.remove(lease.waiter.gate)

    def view(self, model_id: str, limit: int = 1000) -> GateView:
        """The gate's leases and queue at this moment, with at most `limit` waiters listed."""
        return self._scheduler.gate(model_id).snapshot(self._clock.now(), limit)

    def is_wanted(self, model_id: str) -> bool:
        """Whether anyone waits for a lease on the model."""
        return self.view(model_id, limit=0).waiting > 0

    def refusals(self, model_id: str) -> int:
        """How many claims on the model have been refused so far."""
        return self._refusals.get(model_id, 0)

    def is_idle(self, model_id: str) -> bool:
        """Whether nobody holds or waits for a lease on the model."""
        return self._scheduler.gate(model_id).is_idle

    def run_times(self, model_id: str) -> RunTimes:
        """What is known of how long the model's requests run."""
        return self._run_times.setdefault(model_id, RunTimes())

    def acquire(self, model_id: str, operation: Operation, timeout_s: float) -> Claim:
        """Enter the queue now, and await the lease: `timeout_s` at most and 0 without bound; the caller releases it.

        The order of these calls is the order of the queue, whenever what they return is awaited; it must be awaited.
        Raises ServerBusy there when the wait ends without a lease, or would be hopeless.
        """
        gate = self._scheduler.gate(model_id)
        future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        waiter, decisions = gate.submit(operation, self._clock.now(), timeout_s)
        self._pending[waiter] = future
        claim = Claim(self, gate, waiter, future)
        try:
            self._deliver(gate, decisions)
        except BaseException:
            claim.give_up()
            raise
        return claim

    def hopeless(self, model_id: str, timeout_s: float) -> ServerBusy | None:
        """The error that a manager's claim would get at once if it entered now; None if it would wait or be granted."""
        gate, now = self._scheduler.gate(model_id), self._clock.now()
        return self._busy(gate, Refusal.OVERDUE, timeout_s) if gate.is_hopeless(now, timeout_s) else None

    def publish(self, model_ids: Sequence[str], operation: Operation) -> list[Claim]:
        """Enter a barrier without a bound on each model, all in this call or none (rule.bulk_two_phase)."""
        gates = [self._scheduler.gate(model_id) for model_id in dict.fromkeys(model_ids)]
        futures: list[asyncio.Future[Lease]] = [asyncio.get_running_loop().create_future() for _ in gates]
        try:
            barriers, decisions = self._scheduler.publish(model_ids, operation, self._clock.now())
        except PublicationError as fault:
            self._deliver_all(gates, fault.decisions)
            raise
        claims = []
        for gate, future in zip(gates, futures, strict=True):
            waiter = barriers[gate.name]
            self._pending[waiter] = future
            claims.append(Claim(self, gate, waiter, future))
        try:
            self._deliver_all(gates, decisions)
        except BaseException:
            for claim in claims:
                claim.give_up()
            raise
        return claims

    def dismiss(self, spare: Iterable[Claim]) -> None:
        """Refuse all who wait for any model, in one call, but for these claims."""
        gates = self._scheduler.gates()
        self._deliver_all(gates, self._scheduler.dismiss(self._clock.now(), {claim.waiter for claim in spare}))

    def try_exclusive(self, model_id: str, operation: Operation) -> Lease | None:
        """Take a model whole if it is idle and nobody waits for it; never wait (rule.retire_try_acquire)."""
        gate = self._scheduler.gate(model_id)
        lease, decisions = gate.try_exclusive(operation, self._clock.now())
        try:
            self._deliver(gate, decisions)
        except BaseException:
            if lease is not None:
                self.release(lease)
            raise
        return lease

    def resize(self, lease: Lease, capacity: int) -> None:
        """Give the model another number of slots, under its exclusive lease."""
        gate = self._scheduler.gate(lease.waiter.gate)
        gate.resize(lease, capacity, self._clock.now())

    def release(self, lease: Lease) -> None:
        """Give a lease back, once; whoever waits next has his in the same call."""
        gate = self._scheduler.gate(lease.waiter.gate)
        self._deliver(gate, gate.release(lease, self._clock.now()))
        if gate.is_idle:
            self.on_idle(gate.name)

    @contextmanager
    def holding(self, lease: Lease) -> Iterator[Lease]:
        """Give a lease back at the end of the block, however that ends."""
        try:
            yield lease
        finally:
            self.release(lease)

    def drain_s(self, model_id: str) -> float | None:
        """How long all that the model does and has waiting will take; None where it is busy and was never measured."""
        view, mean_s = self.view(model_id, limit=0), self.run_times(model_id).mean_run_s
        if view.leases and mean_s is None:
            return None
        return drain_s(view, mean_s or 0.0)

    def close(self) -> None:
        """Stop the alarms."""
        for _, timer in self._alarms.values():
            timer.cancel()
        self._alarms.clear()

    async def granted(self, gate: Gate, waiter: Waiter, future: asyncio.Future[Lease]) -> Lease:
        """Wait for a claim's lease; a claim whose wait is cancelled holds and waits for nothing afterwards."""
        try:
            # A grant that is there already is taken without a suspension, so nothing can come between.
            return future.result() if future.done() else await future
        except asyncio.CancelledError:
            self.give_up(gate, waiter, future)
            raise
        finally:
            del future  # a refusal must not refer to itself through this frame

    def give_up(self, gate: Gate, waiter: Waiter, future: asyncio.Future[Lease]) -> None:
        """Withdraw a claim that waits, and give back what it was granted."""
        if self._pending.pop(waiter, None) is not None:
            self._deliver(gate, gate.withdraw(waiter, self._clock.now()))
        elif not future.cancelled() and future.exception() is None:
            self.release(future.result())

    def withdraw(self, gate: Gate, waiter: Waiter) -> None:
        """Take a claim that waits out of its queue; awaiting it raises AbandonedError from now on."""
        future = self._pending.pop(waiter, None)
        if future is None:
            return  # granted, refused or given up already
        if not future.cancelled():
            future.set_exception(AbandonedError())
        self._deliver(gate, gate.withdraw(waiter, self._clock.now()))

    def _deliver_all(self, gates: Iterable[Gate], decisions: Iterable[Decision]) -> None:
        """Tell what was decided at several gates: all of it, before anything can fail."""
        by_gate: dict[str, list[Decision]] = {}
        for decision in decisions:
            waiter = decision.lease.waiter if isinstance(decision, Granted) else decision.waiter
            by_gate.setdefault(waiter.gate, []).append(decision)
        told = [gate for gate in gates if gate.name in by_gate]
        for gate in told:
            self._tell(gate, by_gate[gate.name])
        for gate in told:
            self._set_alarm(gate)

    def _deliver(self, gate: Gate, decisions: Iterable[Decision]) -> None:
        self._tell(gate, decisions)
        self._set_alarm(gate)

    def _tell(self, gate: Gate, decisions: Iterable[Decision]) -> None:
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
                    self._refusals[gate.name] = self._refusals.get(gate.name, 0) + 1
                    future = self._pending.pop(waiter)
                    if not future.cancelled():
                        future.set_exception(self._refusal(gate, waiter, reason))
                case unknown:
                    assert_never(unknown)

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

    def _refusal(self, gate: Gate, waiter: Waiter, reason: Refusal) -> Exception:
        """What a refused claim is told; what goes wrong in saying so is told to it too, and to nobody else."""
        try:
            return self._refused(gate, waiter, reason)
        except Exception as fault:  # noqa: BLE001 (it is the claim's outcome)
            return fault

    def _refused(self, gate: Gate, waiter: Waiter, reason: Refusal) -> AntiphonError:
        if reason is Refusal.SHUTTING_DOWN:
            return ShuttingDown()
        return self._busy(gate, reason, waiter.deadline - waiter.since)

    def _busy(self, gate: Gate, reason: Refusal, timeout_s: float) -> ServerBusy:
        """The error of a claim that would have waited for `timeout_s` at most."""
        timeout_ms = round(timeout_s * 1000)
        if reason is Refusal.OVERDUE:
            message = f"all that occupies model {gate.name!r} has run for longer than {timeout_ms} ms"
        else:
            message = f"no slot of model {gate.name!r} came free within {timeout_ms} ms"
        view = gate.snapshot(self._clock.now(), limit=0)
        mean_run_s = self.run_times(gate.name).mean_run_s
        wait_s = _UNMEASURED_S if mean_run_s is None else retry_after_s(view, mean_run_s)
        return ServerBusy(message, retry_after_s=wait_s)


def _nobody_listens(model_id: str) -> None:
    """The default of `LeaseDesk.on_idle`."""
