"""All numbers of the server as Prometheus reads them: those counted, and those of one snapshot.

docs/metrics.md explains each. It knows no route and no runtime.
"""

from collections.abc import Callable, Iterator
from platform import python_version

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from antiphon import __version__
from antiphon.observability.counts import Counts
from antiphon.observability.gauges import Gauges
from antiphon.observability.tallies import Definition, Gauge, Labels
from antiphon.ports.reading import ModelReading


class Metrics(Collector):
    """All of it, as text. `read` gives every model at one moment; it is called for each scrape, on the event loop."""

    def __init__(self, counts: Counts, read: Callable[[], list[ModelReading]], *, parallel: bool) -> None:
        self._counts = counts
        self._gauges = Gauges()
        self._build = Gauge(
            Definition("antiphon_build_info", ("version", "python", "runtime"), "Which server this is; always 1.")
        )
        self._labels: Labels = (__version__, python_version(), "parallel" if parallel else "serial")
        self._read = read
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def collect(self) -> Iterator[Metric]:
        """Every family, with those of one snapshot."""
        models = self._read()
        self._counts.know(it.registration.spec.id for it in models)
        yield self._build.family([(self._labels, 1)])
        yield from self._gauges.families(models)
        for counted in self._counts.all():
            yield counted.family()

    def describe(self) -> Iterator[Metric]:
        """Nothing: there is no other collector whose names could clash, and the models are not there yet."""
        return iter(())

    def definitions(self) -> list[tuple[Definition, str]]:
        """Each metric of ours and its kind, for the documentation."""
        return [(it.definition, it.kind) for it in (self._build, *self._gauges.all(), *self._counts.all())]

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """What a scrape is answered that accepts this: the text and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type
