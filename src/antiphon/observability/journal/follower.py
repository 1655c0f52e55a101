"""One who follows a journal from a point on. It keeps nothing but its place, so a slow one costs no memory."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from antiphon.observability.journal.entries import AnyEntry
from antiphon.observability.journal.journal import Journal
from antiphon.ports.clock import Clock

HEARTBEAT_S = 15.0
"""After so long without an entry somebody who follows hears that all is well."""
_AT_ONCE = 200


class Gap(StrEnum):
    """Why entries are missed."""

    TOO_OLD = "too_old"
    """They are not kept any more."""
    RESTARTED = "restarted"
    """The place is one of another run of the server."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to begin. `gap` says that entries are missed before it, and how many where that can be known."""

    after: int
    gap: Gap | None = None
    missed: int | None = None


def place_of(journal: Journal, event_id: str | None) -> Place:
    """Where somebody goes on who has seen this event; without one, with the next entry. "0" is all that is kept.

    Raises ValueError for what is no id.
    """
    if event_id is None:
        return Place(journal.last)
    run, _, number = event_id.rpartition("-")
    if not (number.isascii() and number.isdigit() and len(number) <= 20) or (not run and event_id != "0"):
        raise ValueError(event_id)
    after, kept = int(number), journal.oldest - 1
    if run and (run != journal.run or after > journal.last):
        return Place(kept, Gap.RESTARTED)
    if after < kept and run:
        return Place(kept, Gap.TOO_OLD, kept - after)
    return Place(max(after, kept))


class Follower:
    """Reads on from `after`, the entries of these models alone, or of all where none is named."""

    def __init__(self, journal: Journal, clock: Clock, after: int, models: Collection[str] = ()) -> None:
        self.after = after
        self._journal = journal
        self._clock = clock
        self._models = frozenset(models)

    @property
    def missed(self) -> int:
        """How many entries are gone that were not read."""
        return max(0, self._journal.oldest - 1 - self.after)

    @property
    def ended(self) -> bool:
        """Whether all is read, and no more is to be waited for."""
        return self._journal.ended and self.after >= self._journal.last

    async def news(self) -> Sequence[AnyEntry]:
        """The next entries, some at once; none after a while without any, where some are missed, or at the end."""
        heartbeat_at = self._clock.now() + HEARTBEAT_S
        while not self.missed and not self.ended:
            if entries := self._read():
                return entries
            if self._clock.now() >= heartbeat_at:
                break
            if self.after >= self._journal.last and not self._journal.ended:
                await self._wait(heartbeat_at)
        return ()

    def _read(self) -> Sequence[AnyEntry]:
        entries = self._journal.between(self.after, _AT_ONCE)
        if entries:
            self.after = entries[-1].seq
        return [it for it in entries if it.model in self._models] if self._models else entries

    async def _wait(self, heartbeat_at: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heartbeat = self._clock.call_at(heartbeat_at, partial(_resolve, woken))
        self._journal.news(woken)
        try:
            await woken
        finally:
            heartbeat.cancel()
            self._journal.forget(woken)


def _resolve(woken: "asyncio.Future[None]") -> None:
    if not woken.done():
        woken.set_result(None)
