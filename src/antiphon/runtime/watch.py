"""How long an engine may take, or ignore a cancellation: past that its caller is told, its host killed if it can be."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Generic, Self, TypeVar

from antiphon.ports.clock import Clock, Timer
from antiphon.ports.host import Flow, SlotHost
from antiphon.runtime.owned import Told, either, tell
from antiphon.vocabulary.errors import AntiphonError, EngineError, LoadFailed, RunTimeout, WorkerDied
from antiphon.vocabulary.tasks import TaskRequest

T = TypeVar("T")

STOP_GRACE_S = 1.0
"""How long an engine that took too long may take to heed the cancellation before its host is killed, in seconds."""


class RunWatch:
    """The time of one request, or of one batch, in its engine.

    Units: `limit_s` without progress, and `cancel_s` from a cancellation to the engine's end, in seconds, 0 for no
    limit. `on_overdue` hears of the fault, once.
    """

    def __init__(
        self,
        clock: Clock,
        limit_s: float,
        requests: Sequence[TaskRequest],
        on_overdue: Callable[[AntiphonError], None],
        told: Told | None,
        *,
        cancel_s: float,
    ) -> None:
        self.told = told
        self.was_stopped = False
        """Whether `stop` was called."""
        self._clock = clock
        self._limit_s = limit_s
        self._cancel_s = cancel_s
        # Not the requests: a reader may hold on to a stream that has long ended, and they have the audio.
        self._cancellations = [request.cancellation for request in requests]
        self._on_overdue = on_overdue
        self._overdue: Callable[[], RunTimeout] | None = None
        self._reported = False
        self._alarm: Timer | None = None
        self._cancel_alarm: Timer | None = None
        self._host: SlotHost | None = None
        self._is_resting = False
        self._is_cancelled = False

    def cancel(self) -> None:
        """Let the engine know that nobody waits for its answer any more; it must stop within `cancel_s`."""
        self._is_cancelled = True
        for cancellation in self._cancellations:
            cancellation.cancel()
        self._limit_cancellation()

    def stop(self, fault: Callable[[], AntiphonError]) -> None:
        """Cancel the run, and release its caller if nothing else would before the engine's end."""
        self.was_stopped = True
        tell(self.told, fault)
        self.cancel()

    @contextmanager
    def running(self, host: SlotHost) -> Iterator[None]:
        """The engine owes something in this block: the limit runs anew in each.

        Raises RunTimeout where that took too long, whatever the engine has made of it since.
        """
        self._host = host
        self._start()
        self._limit_cancellation()
        try:
            yield
        except (AntiphonError, StopAsyncIteration) as outcome:
            if self._overdue is not None:
                raise self._late(self._overdue) from outcome
            raise
        finally:
            self._host = None
            if self._overdue is None:
                self._pause()
        if self._overdue is not None:
            raise self._late(self._overdue)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """The engine waits for its client in this block, and owes nothing; afterwards its time begins anew."""
        self._is_resting = True
        if self._overdue is None:
            self._pause()
        try:
            yield
        finally:
            self._is_resting = False
            self._start()

    def ended(self) -> None:
        """The engine is quiescent: it will not be killed for this."""
        self._pause()
        if self._cancel_alarm is not None:
            self._cancel_alarm.cancel()
            self._cancel_alarm = None

    def _pause(self) -> None:
        """The engine owes no progress now; that it was cancelled is not forgotten, since it may not have stopped."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _start(self) -> None:
        if self._limit_s and self._overdue is None and not self._is_resting and self._host is not None:
            self._alarm = self._clock.call_at(self._clock.now() + self._limit_s, partial(self._ring, self._host))

    def _ring(self, host: SlotHost) -> None:
        self._overdue = self._too_slow
        self.cancel()
        if host.killable:
            self._alarm = self._clock.call_at(self._clock.now() + STOP_GRACE_S, host.kill)
        else:
            self._alarm = None
            tell(self.told, self._too_slow)
            self._late(self._too_slow)

    def _limit_cancellation(self) -> None:
        """Limit how long the engine may ignore that it was cancelled: from now, or from when it begins to run.

        A request that takes too long is on its way out already, with `STOP_GRACE_S`.
        """
        if not (self._cancel_s and self._is_cancelled) or self._host is None:
            return
        if self._cancel_alarm is None and self._overdue is None:
            deadline = self._clock.now() + self._cancel_s
            self._cancel_alarm = self._clock.call_at(deadline, partial(self._ring_cancelled, self._host))

    def _ring_cancelled(self, host: SlotHost) -> None:
        if self._overdue is not None:
            return
        self._overdue = self._ignored
        self._pause()
        if host.killable:
            host.kill()  # reported in `running`, once the host is dead
        else:
            self._late(self._ignored)

    def _late(self, make_fault: Callable[[], RunTimeout]) -> RunTimeout:
        """The fault; the first one is reported, after the death of the host, whose reason it is."""
        fault = make_fault()
        if not self._reported:
            self._reported = True
            self._on_overdue(fault)
        return fault

    def _too_slow(self) -> RunTimeout:
        return RunTimeout(f"the engine made no progress for {self._limit_s * 1000:g} ms (run_timeout_ms)")

    def _ignored(self) -> RunTimeout:
        """Nobody waits for this answer, so it is for the log and for `last_error`."""
        limit = f"{self._cancel_s * 1000:g} ms (cancel_timeout_ms)"
        return RunTimeout(f"the engine went on with a cancelled request for more than {limit}")


class WatchedFlow(Generic[T]):
    """A flow whose engine is timed while somebody waits for it: for its next item, or for its end.

    `succeeded` is told once it has yielded all that it had.
    """

    def __init__(self, flow: Flow[T], watch: RunWatch, host: SlotHost, succeeded: Callable[[], None]) -> None:
        self._flow = flow
        self._watch = watch
        self._host = host
        self._succeeded = succeeded

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        try:
            if self._watch.told is None:  # then nothing is limited
                return await anext(self._flow)
            with self._watch.running(self._host):
                return await _first(_next(self._flow), self._watch.told)
        except StopAsyncIteration:
            self._succeeded()
            raise

    async def aclose(self) -> None:
        """Stop the engine and wait until it is quiescent, or killed."""
        try:
            with suppress(RunTimeout), self._watch.running(self._host):
                self._watch.cancel()
                await self._flow.aclose()
        finally:
            self._watch.ended()


class Limit:
    """Calls `ring` if its block takes longer than `limit_s` seconds; 0 is no limit."""

    def __init__(self, clock: Clock, limit_s: float, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._limit_s = limit_s
        self._ring = ring
        self._alarm: Timer | None = None

    def __enter__(self) -> None:
        if self._limit_s:
            self._alarm = self._clock.call_at(self._clock.now() + self._limit_s, self._ring)

    def __exit__(self, *exc: object) -> None:
        if self._alarm is not None:
            self._alarm.cancel()


class LifecycleLimits:
    """The time that one load may spend in its engine, and that freeing it may take afterwards.

    An instance belongs to one load. Its parts (weights and primary session, then the clones) draw on one budget, so
    a load in several parts never gets the configured limit more than once. Waiting for room or for memory, and freeing
    the pool that is replaced, cost nothing of it.

    An engine in a process is killed when the time is up, and the load raises LoadFailed. A thread cannot be killed:
    the load goes on, and `release` is called once: with "load" or "unload", and the error for those who wait for it.

    Units: seconds, 0 for no limit.
    """

    def __init__(
        self,
        clock: Clock,
        load_s: float,
        teardown_s: float,
        release: Callable[[str, Callable[[], AntiphonError]], None],
    ) -> None:
        self.now = clock.now
        self._clock = clock
        self._load_s = load_s
        self._left_s = load_s
        self._teardown_s = teardown_s
        self._release = release
        self._is_overdue = False

    @contextmanager
    def loading(self, host: SlotHost) -> Iterator[None]:
        """Spend the load's budget on the part of the load that is done in this block."""
        started, alarm = self.now(), None
        if self._load_s and not self._is_overdue:
            alarm = self._clock.call_at(started + max(0.0, self._left_s), partial(self._stop_load, host))
        try:
            yield
        except WorkerDied as death:
            if self._is_overdue:  # the kill below is why it died
                raise self._too_slow() from death
            raise
        finally:
            self._left_s -= self.now() - started
            if alarm is not None:
                alarm.cancel()

    @contextmanager
    def inspecting(self) -> Iterator[None]:
        """Spend the load's budget on reading the model's files; those who wait are released when it is used up."""
        alarm = self._clock.call_at(self.now() + self._load_s, self._release_load) if self._load_s else None
        try:
            yield
        finally:
            if alarm is not None:
                alarm.cancel()

    def require_in_time(self) -> None:
        """Raise LoadFailed if the load has ended too late, in a thread that could not be killed.

        For work that nothing depends on yet: its caller has been told that it failed, so it must not take effect.
        """
        if self._is_overdue:
            raise self._too_slow()

    def closing(self, host: SlotHost) -> Limit:
        """Limit the teardown that is done in this block."""
        return Limit(self._clock, self._teardown_s, partial(self._stop_teardown, host))

    def _stop_load(self, host: SlotHost) -> None:
        self._is_overdue = True
        host.kill()
        if not host.killable:
            self._release("load", self._too_slow)

    def _release_load(self) -> None:
        self._release("load", self._too_slow)

    def _stop_teardown(self, host: SlotHost) -> None:
        host.kill()
        if not host.killable:
            self._release("unload", self._too_slow_to_free)

    def _too_slow(self) -> LoadFailed:
        return LoadFailed(f"the model did not load within {self._load_s * 1000:g} ms (load_timeout_ms)")

    def _too_slow_to_free(self) -> EngineError:
        return EngineError(f"the model was not freed within {self._teardown_s * 1000:g} ms (teardown_timeout_ms)")


async def _next(flow: AsyncIterator[T]) -> T:
    return await anext(flow)


async def _first(step: Coroutine[Any, Any, T], told: Told) -> T:
    """Await a step, or go with what is told before it has ended."""
    task = asyncio.ensure_future(step)
    try:
        await either(task, told)
        if task.done():
            return task.result()
        fault = told.result()
        raise fault()
    finally:
        task.cancel()  # only the waiting: the engine goes on until the flow is closed
        del task
