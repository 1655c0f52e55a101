"""The page about metrics and the dashboard know the metrics that there are, and no others."""

import json
import re
from pathlib import Path

import pytest

from antiphon.observability.counts import Counts
from antiphon.observability.metrics import Metrics
from antiphon.ports.reading import ModelReading
from antiphon.vocabulary.spec import ModelSpec, Registration
from antiphon.vocabulary.states import EvictionCause, ModelState
from antiphon.vocabulary.tasks import Task
from metrics_scrape import parsed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "metrics.md"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "antiphon.json").read_text())

_NAME = re.compile(r"\b(?:antiphon|process)_[a-z_]+")
_LABEL = re.compile(r"([a-z_]+)\s*(?:=~|!~|!=|=)\s*\"")


@pytest.fixture(scope="module")
def metrics():
    """A server's metrics of which every one has a series."""
    spec = ModelSpec("m", "controlled", "/x", Task.TTS)
    counts = Counts()
    counts.answered("/v1/audio/speech", "POST", 200, 0.1)
    counts.refused({"server_busy": 1}, "m")
    counts.granted("m", 0.1)
    counts.ran("m", 0.1, 0.1)
    counts.loaded("m", 0.1)
    counts.evicted("m", EvictionCause.IDLE, None)
    reading = ModelReading(Registration(spec), ModelState.READY, 2, 1, 0, 3, 0, 2**20)
    return Metrics(counts, lambda: [reading], parallel=True)


@pytest.fixture(scope="module")
def scrape(metrics):
    return parsed(metrics.exposition("")[0].decode())


def expressions():
    shown = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return shown + [it["query"]["query"] for it in DASHBOARD["templating"]["list"] if it["type"] == "query"]


def test_the_page_has_a_row_for_each_metric(metrics):
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `antiphon_")]
    assert rows == [
        f"| `{it.name}` | {kind} | {', '.join(f'`{label}`' for label in it.labels)} | {it.meaning} |"
        for it, kind in metrics.definitions()
    ]


def test_each_metric_is_shown_under_its_name(metrics, scrape):
    assert {it.name for it, _ in metrics.definitions()} == {it for it in scrape.families if it.startswith("antiphon_")}


@pytest.mark.parametrize("page", [PAGE.read_text().split("## Alerts")[1], *expressions()])
def test_what_is_asked_for_is_there(scrape, page):
    names = set(_NAME.findall(page))
    assert names
    assert names <= set(scrape.series)


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_selects_by_labels_that_its_metrics_have(scrape, expression):
    labels = {name for it in _NAME.findall(expression) for series in scrape.series[it] for name, _ in series}
    assert set(_LABEL.findall(expression)) <= labels
    assert expression.count("(") == expression.count(")")
    assert expression.count("{") == expression.count("}")


def test_the_panels_of_the_dashboard_lie_beside_each_other():
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_a_model_that_is_registered_no_more_has_no_gauges(scrape):
    assert scrape.value("antiphon_model_slots", model="m") == 2
    counts = Counts()
    counts.granted("m", 0.1)
    later = parsed(Metrics(counts, list, parallel=True).exposition("")[0].decode())
    gauges = {name: rows for name, rows in later.series.items() if name.startswith("antiphon_model_") and rows}
    assert gauges == {}
    assert later.value("antiphon_request_queue_seconds_count", model="m") == 1
