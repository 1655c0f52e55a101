"""What a server's `/metrics` say, as numbers by name and labels. It asserts nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Scrape:
    """One scrape: the value of each series of each sample's name, and the names of all families."""

    series: Mapping[str, Mapping[Labels, float]]
    families: frozenset[str]

    def value(self, name: str, **labels: str) -> float:
        """One series; 0 where there is none."""
        return self.series.get(name, {}).get(frozenset(labels.items()), 0.0)

    def by(self, name: str, *labels: str, without: tuple[str, ...] = ()) -> dict[tuple[str, ...], float]:
        """All series of a name that are not 0, by the values of these labels; not those with a value of `without`."""
        rows = ((dict(series), value) for series, value in self.series.get(name, {}).items())
        named = {tuple(series[label] for label in labels): value for series, value in rows if value}
        return {key: value for key, value in named.items() if not set(key) & set(without)}


def parsed(text: str) -> Scrape:
    """Read the text of a scrape."""
    families = list(text_string_to_metric_families(text))
    series: dict[str, dict[Labels, float]] = {}
    for sample in (sample for family in families for sample in family.samples):
        series.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    return Scrape(series, frozenset(names))


def scraped(client: httpx.Client) -> Scrape:
    """Ask a server now."""
    answer = client.get("/metrics")
    answer.raise_for_status()
    return parsed(answer.text)
