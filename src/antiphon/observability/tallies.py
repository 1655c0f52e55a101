"""Counts and distributions by label, as Prometheus knows them; for one thread, and read as the library's families.

The library's own `Counter` and `Histogram` take a lock for each number, several for one observation: here everything
happens on the event loop, and a request is counted for a tenth of that.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The upper bounds of a distribution's buckets, in seconds; one more takes the rest."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What a metric is called, what tells its series apart, and what it means."""

    name: str
    labels: Labels
    meaning: str


class Tally:
    """Something that is counted."""

    kind = "counter"

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._counts: dict[Labels, int] = {}

    def add(self, labels: Labels, count: int = 1) -> None:
        """Count so many more."""
        self._counts[labels] = self._counts.get(labels, 0) + count

    def family(self) -> CounterMetricFamily:
        """All of it, now."""
        family = CounterMetricFamily(self.definition.name, self.definition.meaning, labels=self.definition.labels)
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        return family


class Distribution:
    """Durations, counted by their length. Units: seconds."""

    kind = "histogram"

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._rows: dict[Labels, tuple[list[int], list[float]]] = {}

    def observe(self, labels: Labels, seconds: float) -> None:
        """Count one more."""
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = [0] * (len(BOUNDS_S) + 1), [0.0]
        counts, total = row
        counts[bisect_left(BOUNDS_S, seconds)] += 1
        total[0] += seconds

    def family(self) -> HistogramMetricFamily:
        """All of it, now."""
        family = HistogramMetricFamily(self.definition.name, self.definition.meaning, labels=self.definition.labels)
        bounds = [*map(floatToGoString, BOUNDS_S), "+Inf"]
        for labels, (counts, (total,)) in self._rows.items():
            family.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)
        return family


class Gauge:
    """Something that stands as it does when it is asked for."""

    kind = "gauge"

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    def family(self, series: Iterable[tuple[Labels, float]]) -> GaugeMetricFamily:
        """All of it: the value of each series."""
        family = GaugeMetricFamily(self.definition.name, self.definition.meaning, labels=self.definition.labels)
        for labels, value in series:
            family.add_metric(labels, value)
        return family
