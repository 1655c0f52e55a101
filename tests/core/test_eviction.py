"""Who would have to leave so that another may come."""

import pytest

from antiphon.residency.eviction import plan_eviction
from antiphon.residency.registry import Entry
from antiphon.vocabulary.spec import Capability, ModelSpec, Registration
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Mode, Task

READY, LOADING, UNLOADED = ModelState.READY, ModelState.LOADING, ModelState.UNLOADED


def entry(model_id: str, state: ModelState = READY, last_used: float = 0, *, pinned: bool = False) -> Entry:
    """A model in a state; the steps that led to it do not matter here."""
    spec = ModelSpec(id=model_id, family="controlled", path="/models/m", task=Task.TTS)
    capability = Capability(frozenset({Task.TTS}), frozenset({Mode.OFFLINE}), sample_rate=16_000, weight_bytes=1)
    made = Entry(Registration(spec, pinned=pinned), capability, last_used)
    made.state = state
    return made


def test_without_a_limit_nobody_has_to_leave() -> None:
    plan = plan_eviction([entry("a"), entry("b")], entry("new", UNLOADED), max_loaded_models=0)
    assert plan.excess == 0


@pytest.mark.parametrize(("limit", "excess"), [(1, 2), (2, 1), (3, 0), (4, 0)])
def test_as_many_leave_as_are_over_the_limit_with_the_newcomer(limit: int, excess: int) -> None:
    plan = plan_eviction([entry("a"), entry("b")], entry("new", UNLOADED), limit)
    assert plan.excess == excess


def test_the_least_recently_used_is_tried_first_and_ties_go_by_registration() -> None:
    entries = [entry("late", last_used=9), entry("early", last_used=1), entry("also_late", last_used=9)]
    plan = plan_eviction(entries, entry("new", UNLOADED), max_loaded_models=1)
    assert [it.id for it in plan.candidates] == ["early", "late", "also_late"]


def test_a_model_that_loads_or_is_reconfigured_has_its_place_and_keeps_it() -> None:
    entries = [entry("a", LOADING), entry("b", ModelState.RECONFIGURING), entry("c")]
    plan = plan_eviction(entries, entry("new", UNLOADED), max_loaded_models=3)
    assert plan.excess == 1
    assert [it.id for it in plan.candidates] == ["c"]


def test_a_model_that_unloads_has_given_its_place_up() -> None:
    # Of two places one is retiring and one is kept: a third model comes in without evicting the kept one.
    entries = [entry("retiring", ModelState.UNLOADING), entry("kept"), entry("cold", UNLOADED)]
    plan = plan_eviction(entries, entry("new", UNLOADED), max_loaded_models=2)
    assert plan.excess == 0


def test_the_newcomer_is_counted_once_and_never_a_candidate() -> None:
    newcomer = entry("new")
    plan = plan_eviction([entry("a"), newcomer], newcomer, max_loaded_models=1)
    assert plan.excess == 1
    assert [it.id for it in plan.candidates] == ["a"]


def test_a_pinned_model_takes_a_place_and_is_not_asked_to_leave() -> None:
    entries = [entry("pinned", last_used=1, pinned=True), entry("other", last_used=2)]
    plan = plan_eviction(entries, entry("new", UNLOADED), max_loaded_models=2)
    assert plan.excess == 1
    assert [it.id for it in plan.candidates] == ["other"]


def test_where_all_are_pinned_nobody_can_leave() -> None:
    plan = plan_eviction([entry("pinned", pinned=True)], entry("new", UNLOADED), max_loaded_models=1)
    assert plan.excess == 1
    assert plan.candidates == ()


def test_a_newcomer_that_is_pinned_makes_others_leave() -> None:
    plan = plan_eviction([entry("a")], entry("new", UNLOADED, pinned=True), max_loaded_models=1)
    assert [it.id for it in plan.candidates] == ["a"]
