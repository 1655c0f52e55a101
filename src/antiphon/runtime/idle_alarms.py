"""When idle models are to be retired: one timer a model. Who retires them is told, and decides."""

from collections.abc import Callable
from contextvars import Context
from functools import partial

from antiphon.ports.clock import Clock
from antiphon.residency.idle import idle_deadline
from antiphon.runtime.resident import Resident


class IdleAlarms:
    """Calls `retire` with a model that has been idle for `idle_unload_s` seconds; 0 is never."""

    def __init__(self, clock: Clock, idle_unload_s: float, retire: Callable[[Resident], object]) -> None:
        self._clock = clock
        self._idle_unload_s = idle_unload_s
        self._retire = retire

    def set(self, resident: Resident) -> None:
        """See to it that a model's alarm will ring; one that is set already rings first, and is set anew then."""
        deadline = idle_deadline(resident.entry, self._idle_unload_s)
        if deadline is not None and resident.idle_alarm is None:
            # In a context of its own: it is not the work of the request that happens to set it.
            resident.idle_alarm = self._clock.call_at(deadline, partial(Context().run, self._ring_idle, resident))

    def cancel(self, resident: Resident) -> None:
        """Let a model's alarm not ring any more."""
        if resident.idle_alarm is not None:
            resident.idle_alarm.cancel()

    def _ring_idle(self, resident: Resident) -> None:
        """Retire a model that has been idle for long enough; one that was used meanwhile has another whole window."""
        resident.idle_alarm = None
        deadline = idle_deadline(resident.entry, self._idle_unload_s)
        if deadline is not None and deadline <= self._clock.now():
            self._retire(resident)  # a busy one is looked at again when it becomes idle
        else:
            self.set(resident)
