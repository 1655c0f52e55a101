"""The lifecycle's table: what is in it, what is not, and the page that is generated from it."""

from itertools import product
from pathlib import Path

import pytest

from antiphon.residency.lifecycle import TRANSITIONS, Step, diagram, next_state
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import ModelState
from lifecycle_page import page

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"

LEGAL = {
    "unloaded": {"load": "loading", "adopt": "ready"},
    "loading": {"publish": "ready", "fail": "unloaded"},
    "ready": {"retire": "unloading", "reconfigure": "reconfiguring"},
    "reconfiguring": {"preserve": "ready", "publish": "ready", "fail": "unloaded"},
    "unloading": {"destroy": "unloaded"},
}
"""Written out once more by hand: a slip in the table must not pass as the truth."""


@pytest.mark.parametrize(("state", "step"), list(product(ModelState, Step)))
def test_a_step_leads_where_it_should_or_is_refused(state: ModelState, step: Step) -> None:
    expected = LEGAL[state].get(step)
    if expected is None:
        with pytest.raises(InvariantError, match=f"a model that is {state} cannot {step}"):
            next_state(state, step)
    else:
        assert next_state(state, step) == expected


def test_every_state_can_be_reached_and_left() -> None:
    reached = {ModelState.UNLOADED}
    for _ in ModelState:
        reached |= {after for (before, _), after in TRANSITIONS.items() if before in reached}
    assert reached == set(ModelState)
    assert {before for before, _ in TRANSITIONS} == set(ModelState)


def test_only_a_whole_pool_makes_a_model_ready() -> None:
    leading_to_ready = {step for (_, step), after in TRANSITIONS.items() if after is ModelState.READY}
    assert leading_to_ready == {Step.PUBLISH, Step.PRESERVE, Step.ADOPT}


def test_the_diagram_has_one_edge_a_row() -> None:
    edges = [line for line in diagram().splitlines() if ": " in line]
    assert len(edges) == len(TRANSITIONS)
    assert "    ready --> unloading: retire" in edges


def test_the_page_is_generated_from_the_table() -> None:
    assert PAGE.read_text() == page(), "run: python tests/lifecycle_page.py > docs/lifecycle.md"
