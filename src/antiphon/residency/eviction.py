"""Which models would have to leave so that another may come, least recently used first."""

from collections.abc import Iterable
from dataclasses import dataclass

from antiphon.residency.registry import Entry
from antiphon.vocabulary.states import ModelState

RESIDENT = frozenset({ModelState.LOADING, ModelState.READY, ModelState.RECONFIGURING})
"""A model that loads has its place reserved, one that is reconfigured keeps it, one that unloads has given it up."""


@dataclass(frozen=True, slots=True)
class EvictionPlan:
    """How many models must leave, and those that may be tried for it, in order.

    A candidate is only a wish: whoever acts must find it idle (`try_exclusive`) in the same step.
    """

    excess: int
    candidates: tuple[Entry, ...]


def plan_eviction(entries: Iterable[Entry], newcomer: Entry | None, max_loaded_models: int) -> EvictionPlan:
    """Make room for `newcomer`, None for one that is not registered yet, under `max_loaded_models`, 0 for no limit.

    A pinned model takes its place as any other does, and is never a candidate.
    """
    others = [entry for entry in entries if entry is not newcomer and entry.state in RESIDENT]
    excess = max(0, len(others) + 1 - max_loaded_models) if max_loaded_models else 0
    movable = [entry for entry in others if entry.state is ModelState.READY and not entry.registration.pinned]
    return EvictionPlan(excess, tuple(sorted(movable, key=lambda entry: entry.last_used)))
