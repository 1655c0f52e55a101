"""The observer that writes to the log."""

import logging

from antiphon.ports.observer import SilentObserver
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.states import ModelState

log = logging.getLogger("antiphon.models")


class LogObserver(SilentObserver):
    """One line a change of state; an engine's own exception comes with its traceback, which no client ever sees."""

    def transitioned(self, model_id: str, before: ModelState, after: ModelState) -> None:
        """A model changed its state."""
        log.info("%s: %s -> %s", model_id, before, after)

    def failed(self, model_id: str, what: str, error: BaseException) -> None:
        """Something failed that the runtime goes on without."""
        log.error("%s: %s failed: %s", model_id, what, error, exc_info=_root(error))


def _root(error: BaseException) -> BaseException | None:
    """The exception below the domain's that wraps it; None where there is none, and the domain's says it all."""
    while isinstance(error, AntiphonError) and error.__cause__ is not None:
        error = error.__cause__
    return None if isinstance(error, AntiphonError) else error
