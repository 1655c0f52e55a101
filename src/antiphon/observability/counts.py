"""What has happened since the server started, counted as it is told. It asks nobody, and shows nothing itself.

Labels take few values: models that are registered, routes as they are written, codes of errors; never what a client
made up.
"""

from collections.abc import Iterable, Mapping

from antiphon.observability.tallies import Definition, Distribution, Labels, Tally
from antiphon.ports.observer import SilentObserver
from antiphon.vocabulary.states import EvictionCause

LOADED, FAILED = "loaded", "failed"

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"})
_OTHER_METHOD = "other"


class Counts(SilentObserver):
    """What has happened since the server started. `refused` and `answered` are told by what serves HTTP."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str, int], tuple[Labels, Labels]] = {}
        self.http_requests = Tally(
            Definition(
                "antiphon_http_requests_total",
                ("route", "method", "status"),
                "Requests that were answered, or given up: 499 is a client that left before there was an answer.",
            )
        )
        self.http_seconds = Distribution(
            Definition(
                "antiphon_http_request_seconds", ("route",), "From the head of a request to the end of its answer."
            )
        )
        self.refusals = Tally(
            Definition(
                "antiphon_refusals_total",
                ("reason", "model"),
                "Errors that clients were told, by code; the model is empty where the request had not come to one.",
            )
        )
        self.queue_seconds = Distribution(
            Definition("antiphon_request_queue_seconds", ("model",), "How long requests waited that got a slot.")
        )
        self.run_seconds = Distribution(
            Definition(
                "antiphon_request_run_seconds",
                ("model",),
                "How long engines ran for a request, or for its stream, however that ended.",
            )
        )
        self.load_seconds = Distribution(
            Definition("antiphon_model_load_seconds", ("model",), "How long loads took that succeeded.")
        )
        self.loads = Tally(
            Definition("antiphon_model_loads_total", ("model", "result"), "Loads that began, and how they ended.")
        )
        self.evictions = Tally(
            Definition(
                "antiphon_model_evictions_total", ("model", "cause"), "Idle models that were taken out of memory."
            )
        )
        self.deaths = Tally(
            Definition(
                "antiphon_worker_deaths_total",
                ("model",),
                "Worker processes that crashed or had to be killed; the next request restarts one.",
            )
        )

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request has ended; `route` is a template of ours, or a word for none."""
        known = method if method in _METHODS else _OTHER_METHOD
        labels = self._answers.get((route, known, status))
        if labels is None:
            labels = self._answers[route, known, status] = (route, known, str(status)), (route,)
        self.http_requests.add(labels[0])
        self.http_seconds.observe(labels[1], seconds)

    def refused(self, reasons: Mapping[str, int], model_id: str | None) -> None:
        """A request was told these errors."""
        for reason, count in reasons.items():
            self.refusals.add((reason, model_id or ""), count)

    def granted(self, model_id: str, queue_s: float) -> None:
        """A request has its slot."""
        self.queue_seconds.observe((model_id,), queue_s)

    def ran(self, model_id: str, load_s: float, run_s: float) -> None:
        """An engine is through with a request."""
        del load_s
        self.run_seconds.observe((model_id,), run_s)

    def loaded(self, model_id: str, load_s: float) -> None:
        """A model is in memory."""
        self.loads.add((model_id, LOADED))
        self.load_seconds.observe((model_id,), load_s)

    def load_failed(self, model_id: str) -> None:
        """A model is not."""
        self.loads.add((model_id, FAILED))

    def evicted(self, model_id: str, cause: EvictionCause, newcomer: str | None) -> None:
        """A model is in memory no more."""
        del newcomer
        self.evictions.add((model_id, cause))

    def died(self, model_id: str) -> None:
        """A worker is gone."""
        self.deaths.add((model_id,))

    def know(self, model_ids: Iterable[str]) -> None:
        """Show what has not happened to these models as 0: a series that begins at 1 has no rate."""
        for model_id in model_ids:
            self.deaths.add((model_id,), 0)
            for result in (LOADED, FAILED):
                self.loads.add((model_id, result), 0)
            for cause in EvictionCause:
                self.evictions.add((model_id, cause), 0)

    def all(self) -> tuple[Tally | Distribution, ...]:
        """Each of them."""
        return (
            *(self.http_requests, self.http_seconds, self.refusals, self.queue_seconds, self.run_seconds),
            *(self.load_seconds, self.loads, self.evictions, self.deaths),
        )
