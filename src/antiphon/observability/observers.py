"""Several observers as one."""

from collections.abc import Sequence

from antiphon.ports.observer import Observer
from antiphon.vocabulary.states import EvictionCause, ModelState


class Observers:
    """Tells each of them everything, in their order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def transitioned(self, model_id: str, before: ModelState, after: ModelState) -> None:
        """As `Observer` has it; so are the others."""
        for it in self._observers:
            it.transitioned(model_id, before, after)

    def failed(self, model_id: str, what: str, error: BaseException) -> None:
        """Hand on."""
        for it in self._observers:
            it.failed(model_id, what, error)

    def asked(self, model_id: str) -> None:
        """Hand on."""
        for it in self._observers:
            it.asked(model_id)

    def granted(self, model_id: str, queue_s: float) -> None:
        """Hand on."""
        for it in self._observers:
            it.granted(model_id, queue_s)

    def ran(self, model_id: str, load_s: float, run_s: float) -> None:
        """Hand on."""
        for it in self._observers:
            it.ran(model_id, load_s, run_s)

    def registered(self, model_id: str) -> None:
        """Hand on."""
        for it in self._observers:
            it.registered(model_id)

    def loaded(self, model_id: str, load_s: float) -> None:
        """Hand on."""
        for it in self._observers:
            it.loaded(model_id, load_s)

    def load_failed(self, model_id: str) -> None:
        """Hand on."""
        for it in self._observers:
            it.load_failed(model_id)

    def evicted(self, model_id: str, cause: EvictionCause, newcomer: str | None) -> None:
        """Hand on."""
        for it in self._observers:
            it.evicted(model_id, cause, newcomer)

    def died(self, model_id: str) -> None:
        """Hand on."""
        for it in self._observers:
            it.died(model_id)
