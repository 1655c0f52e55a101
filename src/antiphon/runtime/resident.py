"""One registered model at run time: a record, which others change."""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from antiphon.ports.clock import Timer
from antiphon.residency.crashes import CrashRecord
from antiphon.residency.registry import Entry
from antiphon.runtime.owned import Told, tell
from antiphon.runtime.pool import Pool
from antiphon.vocabulary.errors import AntiphonError, ServerBusy, WorkerDied


class Resident:
    """A model's entry, its pool while there is one, and the one attempt to load it.

    `waiters` are the callers that wait for this model's engine to load or to free it. `overdue` makes their error from
    the moment that it has taken too long until it has finished: only an engine in a thread can be in that state, since
    one in a process is killed. `forced_unloads` counts those that wait for their lease: until then nothing may load the
    model or run on it, not even what had queued before them.

    Units: `used_bytes` is what its process was last seen to take, None where that is not known; `next_sample` is when
    it may be measured again, in monotonic seconds.
    """

    __slots__ = (
        *("attempt", "crashes", "entry", "forced_unloads", "idle_alarm", "max_slots", "next_sample", "overdue", "pool"),
        *("used_bytes", "waiters"),
    )

    def __init__(self, entry: Entry, max_slots: int) -> None:
        self.entry = entry
        self.max_slots = max_slots
        self.pool: Pool | None = None
        self.attempt: asyncio.Task[Pool] | None = None
        self.idle_alarm: Timer | None = None
        self.crashes = CrashRecord()
        self.overdue: Callable[[], AntiphonError] | None = None
        self.waiters: set[Told] = set()
        self.forced_unloads = 0
        self.used_bytes: int | None = None
        self.next_sample = -math.inf

    def require_rested(self, now: float) -> None:
        """Raise WorkerDied, which says when to come back, for a model that died too often lately."""
        wait_s = self.crashes.wait_s(now)
        if wait_s:
            told = f"the engine of model {self.entry.id!r} died {self.crashes.crashes} times in a row"
            raise WorkerDied(told, retry_after_s=wait_s)

    def require_not_stopping(self) -> None:
        """Raise ServerBusy while a forced unload waits for what holds the model."""
        if self.forced_unloads:
            raise unloaded_by_force(self.entry.id)

    @contextmanager
    def releasing(self, told: Told | None) -> Iterator[None]:
        """Release a caller from its wait, in this block, if the engine takes too long and cannot be stopped.

        A caller that arrives when it is overdue already is released at once: the alarm does not ring for it again.
        """
        if told is None:
            yield
            return
        if self.overdue is not None:
            tell(told, self.overdue)
        self.waiters.add(told)
        try:
            yield
        finally:
            self.waiters.discard(told)

    def release_waiters(self, fault: Callable[[], AntiphonError]) -> None:
        """Release everyone who waits for this model, and everyone who arrives before `overdue` is cleared."""
        self.overdue = fault
        for waiter in self.waiters:
            tell(waiter, fault)


def unloaded_by_force(model_id: str) -> ServerBusy:
    """The error of whatever a forced unload stops."""
    return ServerBusy(f"model {model_id!r} was unloaded by force; the next request loads it again")
