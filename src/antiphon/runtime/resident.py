"""One registered model at run time: a record, which others change."""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager

from antiphon.ports.clock import Timer
from antiphon.residency.crashes import CrashRecord
from antiphon.residency.registry import Entry
from antiphon.runtime.owned import Told
from antiphon.runtime.pool import Pool
from antiphon.vocabulary.errors import WorkerDied


class Resident:
    """A model's entry, its pool while there is one, and the one attempt to load it.

    Units: `used_bytes` is what its process was last seen to take, None where that is not known; `next_sample` is when
    it may be measured again, in monotonic seconds.
    """

    __slots__ = (
        *("attempt", "crashes", "entry", "hearers", "idle_alarm", "max_slots", "next_sample", "pool", "used_bytes"),
    )

    def __init__(self, entry: Entry, max_slots: int) -> None:
        self.entry = entry
        self.max_slots = max_slots
        self.pool: Pool | None = None
        self.attempt: asyncio.Task[Pool] | None = None
        self.idle_alarm: Timer | None = None
        self.crashes = CrashRecord()
        self.hearers: set[Told] = set()
        self.used_bytes: int | None = None
        self.next_sample = -math.inf

    def require_rested(self, now: float) -> None:
        """Raise WorkerDied, which says when to come back, for a model that died too often lately."""
        wait_s = self.crashes.wait_s(now)
        if wait_s:
            told = f"the engine of model {self.entry.id!r} died {self.crashes.crashes} times in a row"
            raise WorkerDied(told, retry_after_s=wait_s)

    @contextmanager
    def hearing(self, told: Told | None) -> Iterator[None]:
        """Have somebody told, in this block, when a load of this model takes too long and cannot be stopped."""
        if told is None:
            yield
            return
        self.hearers.add(told)
        try:
            yield
        finally:
            self.hearers.discard(told)
