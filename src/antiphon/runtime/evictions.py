"""Who leaves so that another may come, and who may not: idle models are retired here, each under its own lease."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

from antiphon.admission.gate import Lease
from antiphon.ports.observer import Observer
from antiphon.residency.eviction import EvictionPlan, plan_eviction
from antiphon.residency.registry import Entry, Registry
from antiphon.runtime.leases import LeaseDesk
from antiphon.runtime.owned import OwnedTasks, log_unheard
from antiphon.runtime.pool import Pool
from antiphon.runtime.resident import Resident
from antiphon.vocabulary.errors import ServerBusy
from antiphon.vocabulary.states import EvictionCause, Operation


class Evictions:
    """Retires idle models. `detach` takes a pool out of use at once, `destroy` frees it.

    `max_loaded_models` is 0 for no limit.
    """

    def __init__(
        self,
        registry: Registry,
        desk: LeaseDesk,
        tasks: OwnedTasks,
        *,
        observer: Observer,
        max_loaded_models: int,
        detach: Callable[[Resident], Pool | None],
        destroy: Callable[[Resident, Pool | None], Awaitable[None]],
    ) -> None:
        self._registry = registry
        self._desk = desk
        self._tasks = tasks
        self._observer = observer
        self._max_loaded_models = max_loaded_models
        self._detach = detach
        self._destroy = destroy
        self._beside: list[Resident] = []  # one for each pool that is being built beside its model's first

    def plan(self, newcomer: Entry | None) -> EvictionPlan:
        """What a load has to evict now; None is a model that is not registered yet."""
        # A second pool takes a place that no entry shows, until it is swapped in or given up. At least one place is
        # left for the newcomer, since 0 would mean no limit.
        limit = self._max_loaded_models and max(1, self._max_loaded_models - len(self._beside))
        plan = plan_eviction(self._registry, newcomer, limit)
        spared = {resident.entry.id for resident in self._beside}
        return replace(plan, candidates=tuple(entry for entry in plan.candidates if entry.id not in spared))

    def require_room_beside(self, resident: Resident) -> None:
        """Raise ServerBusy where there is no room for a second pool of this model."""
        limit = self._max_loaded_models - len(self._beside) - 1
        if self._max_loaded_models and (limit < 1 or plan_eviction(self._registry, resident.entry, limit).excess):
            raise ServerBusy("there is no room for a second pool beside the first (max_loaded_models)")

    @contextmanager
    def sparing(self, resident: Resident) -> Iterator[None]:
        """Count a second pool of a model in this block, and let its first one be; raises as `require_room_beside`."""
        self.require_room_beside(resident)
        self._beside.append(resident)
        try:
            yield
        finally:
            self._beside.remove(resident)

    def evict_some(
        self, candidates: Iterable[Resident], count: int, cause: EvictionCause, newcomer: str
    ) -> "list[asyncio.Task[None]]":
        """Retire as many of these as are idle, `count` at most, the first ones first, for the model `newcomer`."""
        attempts = (self.evict(candidate, cause, newcomer) for candidate in candidates)
        return list(islice((it for it in attempts if it is not None), count))

    def evict(self, victim: Resident, cause: EvictionCause, newcomer: str | None = None) -> "asyncio.Task[None] | None":
        """Retire a model if it is idle now; its memory is freed under its own lease, by a task that is returned."""
        if victim in self._beside:
            return None
        lease = self._desk.try_exclusive(victim.entry.id, Operation.EVICT)
        if lease is None:
            return None
        try:
            pool = self._detach(victim)
        except BaseException:
            self._desk.release(lease)
            raise
        self._observer.evicted(victim.entry.id, cause, newcomer)
        eviction = self._tasks.start(self._free(victim, pool, lease))
        eviction.add_done_callback(log_unheard)
        return eviction

    async def _free(self, resident: Resident, pool: Pool | None, lease: Lease) -> None:
        with self._desk.holding(lease):
            await self._destroy(resident, pool)
