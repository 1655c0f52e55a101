"""How one model stands at one moment, as numbers. It knows neither the runtime nor who shows them."""

from dataclasses import dataclass

from antiphon.vocabulary.spec import Registration
from antiphon.vocabulary.states import ModelState


@dataclass(frozen=True, slots=True)
class ModelReading:
    """One model. `resident_bytes` is None where it is not known, or not in memory.

    `leases` and `waiting` are those of requests, the `managing` ones those of management; one lease of either kind is
    one slot, or the whole model.
    """

    registration: Registration
    state: ModelState
    slots: int
    leases: int
    managing_leases: int
    waiting: int
    managing_waiting: int
    resident_bytes: int | None
