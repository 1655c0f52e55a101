"""How the models stand when somebody looks: numbers of one snapshot. It keeps none of them."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import Metric

from antiphon.observability.tallies import Definition, Gauge, Labels
from antiphon.ports.reading import ModelReading
from antiphon.vocabulary.states import ClaimKind, ModelState


class Gauges:
    """How the models stand; one that is registered no more is not among them."""

    def __init__(self) -> None:
        one = ("model",)
        self.info = Gauge(
            Definition(
                "antiphon_model_info",
                ("model", "family", "task", "mode", "device", "isolation"),
                "What a model is registered as; always 1.",
            )
        )
        self.state = Gauge(Definition("antiphon_model_state", ("model", "state"), "1 for the state that it is in."))
        self.slots = Gauge(Definition("antiphon_model_slots", one, "How many requests it serves at once."))
        self.leases = Gauge(
            Definition("antiphon_model_leases", ("model", "kind"), "Leases that are out, of slots or of the whole.")
        )
        self.waiting = Gauge(Definition("antiphon_model_waiting", ("model", "kind"), "Who waits in its queue."))
        self.resident = Gauge(
            Definition("antiphon_model_resident_bytes", one, "What it takes in memory, where that is known.")
        )

    def all(self) -> tuple[Gauge, ...]:
        """Each of them."""
        return self.info, self.state, self.slots, self.leases, self.waiting, self.resident

    def families(self, models: Iterable[ModelReading]) -> Iterator[Metric]:
        """All of them, from one snapshot."""
        named = [(it.registration.spec.id, it) for it in models]
        yield self.info.family((_info(it), 1) for _, it in named)
        yield self.state.family(((name, state), float(it.state is state)) for name, it in named for state in ModelState)
        yield self.slots.family(((name,), it.slots) for name, it in named)
        yield self.leases.family(_by_kind((name, it.leases, it.managing_leases) for name, it in named))
        yield self.waiting.family(_by_kind((name, it.waiting, it.managing_waiting) for name, it in named))
        yield self.resident.family(((name,), it.resident_bytes) for name, it in named if it.resident_bytes is not None)


def _info(it: ModelReading) -> Labels:
    spec = it.registration.spec
    return spec.id, spec.family, spec.task, spec.mode, spec.device, spec.isolation


def _by_kind(rows: Iterable[tuple[str, int, int]]) -> Iterator[tuple[Labels, float]]:
    for name, requests, managers in rows:
        yield (name, ClaimKind.REQUEST), requests
        yield (name, ClaimKind.MANAGEMENT), managers
