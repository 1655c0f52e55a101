"""The memory that loads may take: what is free, less what loads under way have reserved. It evicts nothing."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from antiphon.ports.memory import MemoryMeter
from antiphon.vocabulary.errors import InsufficientMemory


class MemoryGuard:
    """Keeps `floor_bytes` free; 0 keeps nothing, and reserves nothing.

    A load's reservation stands until it has ended, although it takes the memory bit by bit: so it is counted twice for
    a while, on the safe side. Loads that do not fit beside those under way wait for them, first come first served.
    """

    def __init__(self, meter: MemoryMeter, floor_bytes: int) -> None:
        self.keeps = bool(floor_bytes)
        self._meter = meter
        self._floor_bytes = floor_bytes
        self._reserved_bytes = 0
        self._loads = 0
        self._waiting: OrderedDict[asyncio.Future[bool], int] = OrderedDict()

    def missing_bytes(self, needed_bytes: int) -> int:
        """How much memory must come free before a load may begin that needs so much; 0 where it may begin now."""
        if not self.keeps:
            return 0
        return max(0, needed_bytes + self._floor_bytes + self._reserved_bytes - self._meter.available_bytes())

    def require_at_once(self, needed_bytes: int, refusal: str) -> None:
        """Raise InsufficientMemory with this message where `reserved_at_once` would."""
        if self.missing_bytes(needed_bytes):
            raise InsufficientMemory(refusal)

    @contextmanager
    def reserved_at_once(self, needed_bytes: int, refusal: str) -> Iterator[None]:
        """Reserve memory for this block, or raise InsufficientMemory with this message."""
        self.require_at_once(needed_bytes, refusal)
        self._take(needed_bytes)
        try:
            yield
        finally:
            self.release(needed_bytes)

    async def reserve(self, needed_bytes: int) -> bool:
        """Reserve memory as soon as it fits, which the caller releases; False where it would not though nothing loads.

        Checked and reserved in one step. A load is never cancelled, and so neither is this.
        """
        if not self._waiting:
            verdict = self._try(needed_bytes)
            if verdict is not None:
                return verdict
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[future] = needed_bytes
        return await future

    def release(self, needed_bytes: int) -> None:
        """A load has ended: give back what it had reserved, and serve those who wait."""
        self._reserved_bytes -= needed_bytes
        self._loads -= 1
        while self._waiting:
            future, needed = next(iter(self._waiting.items()))
            try:
                verdict = self._try(needed)
                if verdict is None:
                    return
                future.set_result(verdict)
            except Exception as fault:  # noqa: BLE001 (it is for the load that waits, not for the one that ended)
                future.set_exception(fault)
            del self._waiting[future]

    def _try(self, needed_bytes: int) -> bool | None:
        """Reserve if it fits; None where it may fit once those under way have ended."""
        if not self.missing_bytes(needed_bytes):
            self._take(needed_bytes)
            return True
        return None if self._loads else False

    def _take(self, needed_bytes: int) -> None:
        self._reserved_bytes += needed_bytes
        self._loads += 1
