"""Which replica a request goes to: one that has its model in memory and a free slot, before all others.

It knows how many requests the front has at each replica, and what those said last; neither Ray nor HTTP.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

RECENT_S = 5.0
"""How long a model counts as in memory where a request for it was sent, whatever the replica said last: what it says is
as old as the period of Ray Serve's routing statistics. Units: seconds.
"""


@dataclass(frozen=True, slots=True)
class Residency:
    """How a replica has one model."""

    loaded: bool
    slots: int


@dataclass(frozen=True, slots=True)
class Seat:
    """A replica that may be chosen, and what it said last of its models, by every name that they have."""

    replica: str
    models: Mapping[str, Residency] = field(default_factory=lambda: MappingProxyType({}))


class Underway:
    """The requests that are at the replicas now. Ray Serve chooses in a thread of its own, so a lock keeps the counts.

    A request that is chosen for is counted in the same step: two that come at once see each other.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._totals: Counter[str] = Counter()
        self._visits: dict[tuple[str, str], float] = {}

    def claim(self, model: str) -> "Claim":
        """A request for this model; "" where it names none."""
        return Claim(self, model)

    def best_first(self, model: str, seats: Sequence[Seat]) -> Sequence[str]:
        """The replicas in the order in which this model is best served.

        1. Those that have it in memory and a slot free, the one with the fewest requests first.
        2. Those that have a slot free and would load it: those with the fewest requests, then the fewest models.
        3. Where every slot is taken, those that have it in memory first, by the requests for each slot.

        A request that names no model goes where the fewest requests are.
        """
        with self._lock:
            return [seat.replica for seat in sorted(seats, key=lambda seat: self._rank(model, seat))]

    def begin(self, replica: str, model: str) -> None:
        """A request is sent there."""
        with self._lock:
            self._counts[replica, model] += 1
            self._totals[replica] += 1
            self._visits[replica, model] = self._now()

    def end(self, replica: str, model: str) -> None:
        """It has ended."""
        with self._lock:
            self._counts[replica, model] -= 1
            self._totals[replica] -= 1
            self._visits[replica, model] = self._now()
            if not self._totals[replica]:
                self._forget_old_visits()

    def _rank(self, model: str, seat: Seat) -> tuple[int, float, int, int, str]:
        total, known = self._totals[seat.replica], seat.models.get(model)
        if known is None:
            return 1, total, total, 0, seat.replica
        here = self._counts[seat.replica, model]
        loaded = known.loaded or self._is_recent(seat.replica, model)
        models = sum(self._is_recent(seat.replica, name) or it.loaded for name, it in seat.models.items())
        if here < known.slots:
            return (0, here, total, 0, seat.replica) if loaded else (1, total, total, models, seat.replica)
        return (2 if loaded else 3), here / known.slots, total, 0, seat.replica

    def _is_recent(self, replica: str, model: str) -> bool:
        visited = self._visits.get((replica, model))
        return visited is not None and self._now() - visited < RECENT_S

    def _forget_old_visits(self) -> None:
        self._visits = {visit: at for visit, at in self._visits.items() if self._is_recent(*visit)}
        self._counts = +self._counts


class Claim:
    """One request's place at a replica, from the choice on. Close it when the request has ended."""

    def __init__(self, underway: Underway, model: str) -> None:
        self.model = model
        self._underway = underway
        self._replica: str | None = None

    def choose(self, seats: Sequence[Seat]) -> Sequence[str]:
        """The replicas, best first; it is at the first from now on. A further choice replaces this one."""
        self.close()
        names = self._underway.best_first(self.model, seats)
        if names:
            self.settle(names[0])
        return names

    def settle(self, replica: str) -> None:
        """It is at this replica."""
        if replica != self._replica:
            self.close()
            self._replica = replica
            self._underway.begin(replica, self.model)

    def close(self) -> None:
        """It is nowhere any more; harmless when done twice."""
        if self._replica is not None:
            self._underway.end(self._replica, self.model)
            self._replica = None
