"""The sessions of one model, built privately and published together or not at all."""

import logging
from dataclasses import dataclass, replace

from antiphon.ports.host import SlotHost
from antiphon.vocabulary.errors import AntiphonError, LoadFailed
from antiphon.vocabulary.spec import SessionFacts

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pool:
    """A complete pool: an open session behind each slot of `host`, all with the same `facts`."""

    host: SlotHost
    facts: SessionFacts

    async def close(self) -> None:
        """Close the sessions, the weights and the host; the engine's first fault is raised when all is done."""
        await _close(self.host)


async def build_pool(host: SlotHost, slots: int, max_slots: int) -> Pool:
    """Load the weights, open the primary and clone it until there are `slots` sessions.

    `max_slots` caps what the session advertises (the audit list). Raises LoadFailed, and leaves nothing of the engine.
    """
    try:
        return await _build(host, slots, max_slots)
    except BaseException as fault:
        try:
            await _close(host)
        except Exception:
            log.exception("what a failed load had built could not be closed")
        if not isinstance(fault, Exception):
            raise
        raise load_failure(fault) from fault


def load_failure(fault: Exception) -> LoadFailed:
    """What those who waited for a load are told of its fault; only the domain's own messages are fit for them."""
    if isinstance(fault, LoadFailed):
        return LoadFailed(fault.message)
    told = fault.message if isinstance(fault, AntiphonError) else "internal error"
    return LoadFailed(f"the model could not be loaded: {told}")


async def _build(host: SlotHost, slots: int, max_slots: int) -> Pool:
    await host.load()
    primary = await host.open()
    if primary is None:
        raise LoadFailed("the engine opened no session")
    facts = replace(primary, capacity=min(primary.capacity, max_slots))
    if slots > facts.capacity:
        raise LoadFailed(f"it can serve {facts.capacity} slots, not {slots}")
    for slot in range(1, slots):
        clone = await host.clone(slot)
        if clone is None:
            raise LoadFailed(f"the engine opened no session for slot {slot}")
        if replace(clone, capacity=primary.capacity) != primary:
            raise LoadFailed(f"the session of slot {slot} is not like the first")
    return Pool(host, facts)


async def _close(host: SlotHost) -> None:
    try:
        await host.close()
    finally:
        await host.terminate()
