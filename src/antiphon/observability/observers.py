"""Several observers as one."""

from collections.abc import Sequence

from antiphon.ports.observer import Observer, SilentObserver
from antiphon.vocabulary.states import EvictionCause, ModelState


class Observers:
    """Tells each of them everything, in their order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)
        # What every request tells goes only to those that make something of it.
        self._asked = [it.asked for it in observers if type(it).asked is not SilentObserver.asked]
        self._granted = [it.granted for it in observers if type(it).granted is not SilentObserver.granted]
        self._ran = [it.ran for it in observers if type(it).ran is not SilentObserver.ran]

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
        for asked in self._asked:
            asked(model_id)

    def granted(self, model_id: str, queue_s: float) -> None:
        """Hand on."""
        for granted in self._granted:
            granted(model_id, queue_s)

    def ran(self, model_id: str, load_s: float, run_s: float) -> None:
        """Hand on."""
        for ran in self._ran:
            ran(model_id, load_s, run_s)

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
