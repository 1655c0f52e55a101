"""Where the runtime tells what happened; whoever listens must neither block nor raise.

Every call comes on the event loop. What concerns one request is told in that request's context (`contextvars`), so a
listener can know whose it is.
"""

from typing import Protocol

from antiphon.vocabulary.states import EvictionCause, ModelState


class Observer(Protocol):
    """Hears of every change of a model's state, of what requests go through, and of every fault that was absorbed.

    Units: seconds. `asked`, `granted` and `ran` are of inference alone.
    """

    def transitioned(self, model_id: str, before: ModelState, after: ModelState) -> None: ...
    def failed(self, model_id: str, what: str, error: BaseException) -> None: ...

    def asked(self, model_id: str) -> None:
        """A request enters the model's queue."""
        ...

    def granted(self, model_id: str, queue_s: float) -> None:
        """It has its slot."""
        ...

    def ran(self, model_id: str, load_s: float, run_s: float) -> None:
        """The engine is through with it, or with its stream, however that ended; `load_s` it waited for the model."""
        ...

    def registered(self, model_id: str) -> None:
        """A model is new, or is registered as something else from now on."""
        ...

    def loaded(self, model_id: str, load_s: float) -> None:
        """A pool was built, in this time, and is in use from now on."""
        ...

    def load_failed(self, model_id: str) -> None:
        """A load that had begun left nothing that could be used."""
        ...

    def evicted(self, model_id: str, cause: EvictionCause, newcomer: str | None) -> None:
        """An idle model is out of use, for the model `newcomer`; None where it was idle for too long."""
        ...

    def died(self, model_id: str) -> None:
        """The process that the model's engine ran in has ended without being told to."""
        ...


class SilentObserver:
    """Hears everything and makes nothing of it: the base of those that listen to a part."""

    def transitioned(self, model_id: str, before: ModelState, after: ModelState) -> None:
        """As `Observer` has it; so are the others."""

    def failed(self, model_id: str, what: str, error: BaseException) -> None: ...
    def asked(self, model_id: str) -> None: ...
    def granted(self, model_id: str, queue_s: float) -> None: ...
    def ran(self, model_id: str, load_s: float, run_s: float) -> None: ...
    def registered(self, model_id: str) -> None: ...
    def loaded(self, model_id: str, load_s: float) -> None: ...
    def load_failed(self, model_id: str) -> None: ...
    def evicted(self, model_id: str, cause: EvictionCause, newcomer: str | None) -> None: ...
    def died(self, model_id: str) -> None: ...
