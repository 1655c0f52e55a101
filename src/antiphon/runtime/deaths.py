"""Which hosts have died, and which are alive and could be killed; it knows nothing of models or pools."""

from collections.abc import Callable
from weakref import WeakSet, ref

from antiphon.ports.host import SlotHost
from antiphon.vocabulary.errors import ShuttingDown, WorkerDied


class Deaths:
    """Knows every host that was made, until nobody holds it any more. After `close` none is made."""

    def __init__(self) -> None:
        self._made: WeakSet[SlotHost] = WeakSet()
        self._dead: WeakSet[SlotHost] = WeakSet()
        self.closed = False

    def watched(self, make: Callable[[Callable[[], None]], SlotHost], died: Callable[[SlotHost], None]) -> SlotHost:
        """Make a host whose death is noted first and then told; raises ShuttingDown after `close`."""
        if self.closed:
            raise ShuttingDown

        def on_death() -> None:
            if (gone := known()) is not None:
                self._dead.add(gone)
                died(gone)

        host = make(on_death)
        known = ref(host)  # or the host would refer to itself through the callback that it keeps
        self._made.add(host)
        return host

    def require_alive(self, host: SlotHost) -> None:
        """Raise WorkerDied for a host that has died."""
        if host in self._dead:
            raise death_of(host)

    def close(self) -> None:
        """Let no host be made any more."""
        self.closed = True

    def kill_all(self) -> None:
        """Kill every host there is that can be killed."""
        for host in tuple(self._made):
            host.kill()


def death_of(host: SlotHost) -> WorkerDied:
    """What is said of a host that has died."""
    return WorkerDied(f"the process of the model's engine ended unexpectedly: {host.death or 'nobody knows how'}")
