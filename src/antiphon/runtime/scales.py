"""What a load or an unload does to the memory of the server's process, where that can be told; it moves no model."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from antiphon.ports.clock import Clock
from antiphon.ports.memory import MemoryMeter
from antiphon.residency.registry import Entry, Registry
from antiphon.runtime.api import MemoryChange
from antiphon.runtime.leases import LeaseDesk


@dataclass(frozen=True, slots=True)
class Weighing:
    """A first reading. Units: `since` monotonic seconds, from before it was taken."""

    since: float
    resident_bytes: int | None
    builds: int
    alone: bool


class Scales:
    """Reads the process before and after, and knows whether anything else moved meanwhile.

    The process is one for all models: a difference is one model's only while the others are idle. What uploads that
    come in meanwhile take is not told apart, so a difference is "about".
    """

    def __init__(self, meter: MemoryMeter, clock: Clock, registry: Registry, desk: LeaseDesk) -> None:
        self._meter = meter
        self._clock = clock
        self._registry = registry
        self._desk = desk
        self._builds = 0
        self._building = 0

    @contextmanager
    def building_beside(self) -> Iterator[None]:
        """Say that something is built for the length of the block that holds no lease."""
        self._builds += 1
        self._building += 1
        try:
            yield
        finally:
            self._building -= 1

    async def weigh(self) -> Weighing:
        """Take the first reading."""
        since, builds, alone = self._clock.now(), self._builds, not self._building
        return Weighing(since, await self._meter.resident_bytes(), builds, alone)

    async def change(self, before: Weighing, entry: Entry) -> MemoryChange:
        """Take the second one; `entry` is the model that was moved, under a lease of its own."""
        after_bytes = await self._meter.resident_bytes()
        alone = before.alone and before.builds == self._builds and self._others_idle_since(before.since, entry)
        return MemoryChange(before.resident_bytes, after_bytes, alone)

    def _others_idle_since(self, since: float, entry: Entry) -> bool:
        return all(
            self._desk.is_idle(other.id) and other.last_used < since for other in self._registry if other is not entry
        )
