"""The numbers of several servers as one page for Prometheus: every sample gets the label `replica`. It sums nothing."""

from collections.abc import Mapping

from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry


def labelled(pages: Mapping[str, str]) -> tuple[bytes, str]:
    """One page of these, by replica, and its content type; none is OpenMetrics.

    Source: prometheus.io, "Exposition formats".
    """
    families: dict[str, Metric] = {}
    for replica, page in pages.items():
        for family in text_string_to_metric_families(page):
            merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for it in family.samples:
                merged.add_sample(it.name, {"replica": replica, **it.labels}, it.value, it.timestamp, it.exemplar)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(list(families.values())))
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Collected(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families
