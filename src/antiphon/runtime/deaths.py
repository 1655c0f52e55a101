"""Which hosts have died, and which are alive and could be killed; of a model it knows the id, and of pools nothing."""

from collections.abc import Callable
from weakref import WeakKeyDictionary, WeakSet, ref

from antiphon.ports.host import SlotHost
from antiphon.vocabulary.errors import ShuttingDown, WorkerDied


class Deaths:
    """Knows every host that was made, until nobody holds it any more. After `close` none is made."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[SlotHost, str] = WeakKeyDictionary()  # with the model that each is for
        self._dead: WeakSet[SlotHost] = WeakSet()
        self.closed = False

    def watched(
        self, model_id: str, make: Callable[[Callable[[], None]], SlotHost], died: Callable[[SlotHost], None]
    ) -> SlotHost:
        """Make a model's host whose death is noted first and then told; raises ShuttingDown after `close`."""
        if self.closed:
            raise ShuttingDown

        def on_death() -> None:
            if (gone := known()) is not None:
                self._dead.add(gone)
                died(gone)

        host = make(on_death)
        known = ref(host)  # or the host would refer to itself through the callback that it keeps
        self._made[host] = model_id
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

    def kill_hosts_of(self, model_id: str) -> None:
        """Kill every host of a model that can be killed: its pool's, and those that load or are being freed."""
        for host, owner in tuple(self._made.items()):
            if owner == model_id:
                host.kill()


def death_of(host: SlotHost) -> WorkerDied:
    """What is said of a host that has died."""
    return WorkerDied(f"the process of the model's engine ended unexpectedly: {host.death or 'nobody knows how'}")
