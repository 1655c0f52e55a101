"""The sessions of one model, built privately and published together or not at all."""

import logging
from dataclasses import dataclass, replace

from antiphon.ports.host import SlotHost
from antiphon.runtime.watch import LifecycleLimits
from antiphon.vocabulary.errors import AntiphonError, InsufficientMemory, LoadFailed, UnsupportedSlots, WorkerDied
from antiphon.vocabulary.spec import ModelSpec, SessionFacts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pool:
    """A complete pool: an open session behind each slot of `host`, all with the same `facts`.

    Units: `load_s` is how long it took to build, in seconds; `resident_bytes` is the memory that it takes, None where
    that could not be told.
    """

    host: SlotHost
    facts: SessionFacts
    limits: LifecycleLimits
    load_s: float
    resident_bytes: int | None = None

    async def close(self) -> None:
        """Close the sessions, the weights and the host; the engine's first fault is raised when all is done."""
        await _close(self.host, self.limits)

    async def abandon(self) -> None:
        """Close it as what is not to be used."""
        await abandon(self.host, self.limits)


@dataclass(frozen=True, slots=True)
class Staged:
    """A host whose weights are loaded and whose primary is open, before it is known whether it will be a pool.

    Units: `load_s` is how long that took, in seconds.
    """

    host: SlotHost
    primary: SessionFacts
    limits: LifecycleLimits
    load_s: float

    async def abandon(self) -> None:
        """Close it as what is not to be used."""
        await abandon(self.host, self.limits)


async def stage(host: SlotHost, limits: LifecycleLimits) -> Staged:
    """Load the weights and open the primary. Raises LoadFailed, and then leaves nothing of the engine."""
    try:
        started = limits.now()
        with limits.loading(host):
            primary = await _primary(host)
        return Staged(host, primary, limits, limits.now() - started)
    except BaseException as fault:
        await abandon(host, limits)
        if not isinstance(fault, Exception):
            raise
        raise load_failure(fault) from fault


async def build_pool(staged: Staged, spec: ModelSpec, max_slots: int) -> Pool:
    """Clone the primary until there is a session for each slot.

    `max_slots` caps what the session advertises (the audit list). Raises LoadFailed, UnsupportedSlots where the count
    is too large, and then leaves nothing of the engine.
    """
    try:
        with staged.limits.loading(staged.host):
            return await _fill(staged, spec, max_slots)
    except BaseException as fault:
        await staged.abandon()
        if not isinstance(fault, Exception):
            raise
        raise load_failure(fault) from fault


def require_slots(spec: ModelSpec, capacity: int) -> None:
    """Raise UnsupportedSlots where the model is to have more slots than that."""
    if spec.slots > capacity:
        raise UnsupportedSlots(f"the model can serve {capacity} slots, not {spec.slots}")


async def abandon(host: SlotHost, limits: LifecycleLimits) -> None:
    """Close what was built and is not to be used; an engine that fails at that is only logged."""
    try:
        await _close(host, limits)
    except WorkerDied:
        log.debug("what was built for nothing had died before it was closed")
    except Exception:
        log.exception("what was built for nothing could not be closed")


def load_failure(fault: Exception) -> AntiphonError:
    """What those who waited for a load are told of its fault; only the domain's own messages are fit for them."""
    if isinstance(fault, LoadFailed | InsufficientMemory | WorkerDied):
        return type(fault)(fault.message)
    told = fault.message if isinstance(fault, AntiphonError) else "internal error"
    return LoadFailed(f"the model could not be loaded: {told}")


async def _primary(host: SlotHost) -> SessionFacts:
    await host.load()
    primary = await host.open()
    if primary is None:
        raise LoadFailed("the engine opened no session")
    return primary


async def _fill(staged: Staged, spec: ModelSpec, max_slots: int) -> Pool:
    facts = replace(staged.primary, capacity=min(staged.primary.capacity, max_slots))
    require_slots(spec, facts.capacity)
    started = staged.limits.now()
    for slot in range(1, spec.slots):
        clone = await staged.host.clone(slot)
        if clone is None:
            raise LoadFailed(f"the engine opened no session for slot {slot}")
        if replace(clone, capacity=staged.primary.capacity) != staged.primary:
            raise LoadFailed(f"the session of slot {slot} is not like the first")
    return Pool(staged.host, facts, staged.limits, staged.load_s + staged.limits.now() - started)


async def _close(host: SlotHost, limits: LifecycleLimits) -> None:
    with limits.closing(host):
        try:
            await host.close()
        finally:
            await host.terminate()
