"""What is known of the request that is being served: it lies in the request's context, where whoever learns adds to it.

Tasks, and calls of engines in threads, that are begun in the context of a request share its record.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field

from antiphon.ports.observer import SilentObserver


@dataclass(slots=True)
class RequestRecord:
    """One request. Units: seconds, each the sum over its inferences, None where there was none that came so far.

    `refusals` counts what it was told that went wrong, by the error's code: one, or several in a long session.
    """

    id: str
    model: str | None = None
    queue_s: float | None = None
    load_s: float | None = None
    run_s: float | None = None
    refusals: dict[str, int] = field(default_factory=dict)


CURRENT: ContextVar[RequestRecord | None] = ContextVar("antiphon.request", default=None)
"""The record of the request in whose context this is asked."""


def current_id() -> str | None:
    """The id of that request; None outside of any."""
    record = CURRENT.get()
    return None if record is None else record.id


def note_refusal(reason: str) -> None:
    """The client is told that something went wrong."""
    record = CURRENT.get()
    if record is not None:
        record.refusals[reason] = record.refusals.get(reason, 0) + 1


class RecordKeeper(SilentObserver):
    """The observer that writes down, with each request, what the runtime tells of it."""

    def asked(self, model_id: str) -> None:
        """It is for this model."""
        record = CURRENT.get()
        if record is not None:
            record.model = model_id

    def granted(self, model_id: str, queue_s: float) -> None:
        """It waited so long for its slot."""
        del model_id
        record = CURRENT.get()
        if record is not None:
            record.queue_s = (record.queue_s or 0.0) + queue_s

    def ran(self, model_id: str, load_s: float, run_s: float) -> None:
        """It waited so long for the model, and ran so long."""
        del model_id
        record = CURRENT.get()
        if record is not None:
            record.load_s = (record.load_s or 0.0) + load_s
            record.run_s = (record.run_s or 0.0) + run_s
