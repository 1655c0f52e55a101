"""Counts and distributions, as a scrape reads them."""

import pytest

from antiphon.observability.tallies import BOUNDS_S, Definition, Distribution, Tally

NAMED = Definition("antiphon_things_total", ("kind",), "Things.")
TIMED = Definition("antiphon_things_seconds", ("kind",), "Their time.")


def buckets(distribution):
    return {it.labels["le"]: it.value for it in distribution.family().samples if it.name.endswith("_bucket")}


def test_a_tally_counts_each_series_for_itself():
    tally = Tally(NAMED)
    tally.add(("a",))
    tally.add(("a",), 2)
    tally.add(("b",), 0)
    assert {(it.name, it.labels["kind"]): it.value for it in tally.family().samples} == {
        ("antiphon_things_total", "a"): 3,
        ("antiphon_things_total", "b"): 0,
    }


@pytest.mark.parametrize("bound", BOUNDS_S)
def test_a_duration_on_a_bound_is_within_it(bound):
    distribution = Distribution(TIMED)
    distribution.observe(("a",), bound)
    assert {float(le): count for le, count in buckets(distribution).items()} == {
        it: float(it >= bound) for it in (*BOUNDS_S, float("inf"))
    }


def test_a_duration_beyond_all_bounds_is_counted_and_summed():
    distribution = Distribution(TIMED)
    for seconds in (0.0, 0.25, 1e6):
        distribution.observe(("a",), seconds)
    samples = {it.name: it.value for it in distribution.family().samples if "le" not in it.labels}
    assert samples == {"antiphon_things_seconds_count": 3, "antiphon_things_seconds_sum": 1_000_000.25}
    assert buckets(distribution)["300.0"] == 2
