"""Loads that wait for room: first come first served among themselves, and never in a victim's queue."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextvars import copy_context

from antiphon.ports.clock import Clock
from antiphon.vocabulary.errors import AntiphonError, ServerBusy


class WaitingRoom:
    """Retries a reservation whenever room may have come, oldest first; the reservation is made on the waiter's behalf.

    Units: `wait_s` seconds; 0 refuses at once, which is the contract's behaviour (residency_wait_ms).
    """

    def __init__(self, clock: Clock, wait_s: float) -> None:
        self._clock = clock
        self._wait_s = wait_s
        self._waiting: OrderedDict[asyncio.Future[None], Callable[[], bool]] = OrderedDict()

    async def enter(self, reserve: Callable[[], bool], refusal: Callable[[], ServerBusy]) -> None:
        """Return once `reserve` has succeeded, which is tried at once unless an earlier load waits.

        Raises the refusal when it has not succeeded in time, and what `reserve` raises.
        """
        if not self._waiting and reserve():
            return
        if not self._wait_s:
            raise refusal()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_at(self._clock.now() + self._wait_s, lambda: self._expire(future, refusal))
        # It is this load's work, whoever makes the room: a copy each time, since a context cannot be entered twice.
        context = copy_context()
        self._waiting[future] = lambda: context.copy().run(reserve)
        try:
            await future
        finally:
            alarm.cancel()
            self._waiting.pop(future, None)

    def retry(self) -> None:
        """Room may have come: serve who has waited longest, and the next as long as that succeeds."""
        while self._waiting:
            future, reserve = next(iter(self._waiting.items()))
            try:
                # One that was cancelled has not come to leave yet; no room is taken for it.
                if not future.cancelled() and not reserve():
                    return
            except Exception as fault:  # noqa: BLE001 (it is for the load that waits, not for whoever made room)
                future.set_exception(fault)
            del self._waiting[future]
            if not future.done():
                future.set_result(None)

    def dismiss(self, refusal: Callable[[], AntiphonError]) -> None:
        """Refuse every load that waits."""
        waiting = [future for future in self._waiting if not future.done()]
        self._waiting.clear()
        for future in waiting:
            future.set_exception(refusal())

    def _expire(self, future: asyncio.Future[None], refusal: Callable[[], ServerBusy]) -> None:
        if self._waiting.pop(future, None) is not None and not future.cancelled():
            try:
                future.set_exception(refusal())
            except Exception as fault:  # noqa: BLE001 (as above: what cannot be worded must still be told)
                future.set_exception(fault)
        self.retry()
