"""The registered models and their records."""

from dataclasses import replace

import pytest

from antiphon.residency.lifecycle import Step
from antiphon.residency.registry import Entry, Metadata, Registry
from antiphon.vocabulary.errors import InvalidRequest, InvariantError, ModelNotFound
from antiphon.vocabulary.spec import Capability, ModelSpec, Registration
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Mode, Task


def entry(model_id: str, now: float = 0) -> Entry:
    """A registered model that nobody has loaded."""
    spec = ModelSpec(id=model_id, family="controlled", path="/models/m", task=Task.TTS)
    capability = Capability(frozenset({Task.TTS}), frozenset({Mode.OFFLINE}), sample_rate=16_000, weight_bytes=1)
    return Entry(Registration(spec), capability, now)


def test_a_new_entry_is_unloaded_and_has_no_facts() -> None:
    made = entry("m", now=7)
    assert (made.id, made.state, made.facts, made.last_used, made.last_error) == (
        "m",
        ModelState.UNLOADED,
        None,
        7,
        None,
    )


def test_an_entry_takes_the_steps_of_the_table() -> None:
    made = entry("m")
    made.take(Step.LOAD)
    made.take(Step.PUBLISH)
    assert made.state is ModelState.READY
    assert repr(made) == "<Entry m ready>"


def test_an_illegal_step_leaves_the_state_as_it_was() -> None:
    made = entry("m")
    made.take(Step.LOAD)
    with pytest.raises(InvariantError):
        made.take(Step.RETIRE)
    assert made.state is ModelState.LOADING


def test_what_is_known_of_a_model_is_replaced_whole() -> None:
    made = entry("m")
    before = made.metadata
    registration, capability = replace(made.registration, lazy=True), replace(made.capability, sample_rate=8_000)
    made.commit(registration, capability)
    assert (made.registration, made.capability) == (registration, capability)
    assert made.metadata == Metadata(registration, capability)
    assert (before.registration.lazy, before.capability.sample_rate) == (False, 16_000)


def test_a_commit_of_the_same_can_be_told_from_none() -> None:
    made = entry("m")
    before = made.metadata
    made.commit(made.registration, made.capability)
    assert made.metadata == before
    assert made.metadata is not before


def test_neither_half_of_what_is_known_can_be_changed_alone() -> None:
    made = entry("m")
    for half in ("registration", "capability", "metadata"):
        with pytest.raises(AttributeError):
            setattr(made, half, None)


def test_an_entry_stays_one_models_for_ever() -> None:
    made, other = entry("m"), entry("other")
    before = made.metadata
    with pytest.raises(InvariantError):
        made.commit(other.registration, other.capability)
    assert made.metadata is before


def test_entries_are_found_by_id_and_listed_in_the_order_of_registration() -> None:
    registry = Registry()
    entries = [entry(model_id) for model_id in ("b", "a", "c")]
    for each in entries:
        registry.insert(each)
    assert registry.find("a") is entries[1]
    assert list(registry) == entries
    assert len(registry) == 3


def test_an_unknown_model_is_the_callers_fault() -> None:
    with pytest.raises(ModelNotFound) as caught:
        Registry().find("nobody")
    assert caught.value.param == "model"
    assert caught.value.message == "there is no model 'nobody'"


def test_an_id_is_registered_once() -> None:
    registry = Registry()
    first = entry("m")
    registry.insert(first)
    with pytest.raises(InvariantError):
        registry.insert(entry("m"))
    assert list(registry) == [first]


def test_the_listing_is_a_snapshot_that_registration_does_not_disturb() -> None:
    registry = Registry()
    registry.insert(entry("a"))
    listing = iter(registry)
    registry.insert(entry("b"))
    assert [it.id for it in listing] == ["a"]


def named(model_id: str, *aliases: str) -> Entry:
    """A registered model with aliases."""
    made = entry(model_id)
    made.commit(replace(made.registration, aliases=aliases), made.capability)
    return made


def test_an_alias_finds_its_model_for_as_long_as_the_model_has_it() -> None:
    registry, made = Registry(), named("m", "one", "two")
    registry.insert(made)
    assert registry.find("two") is made
    assert [it.id for it in registry] == ["m"]
    made.commit(replace(made.registration, aliases=("three",)), made.capability)
    assert registry.find("three") is made
    with pytest.raises(ModelNotFound):
        registry.find("two")


@pytest.mark.parametrize("late", [named("one"), named("n", "one"), named("n", "m")])
def test_a_name_is_one_models(late: Entry) -> None:
    registry = Registry()
    registry.insert(named("m", "one"))
    with pytest.raises(InvariantError):
        registry.insert(late)


@pytest.mark.parametrize(
    ("late", "param"), [(named("one"), "id"), (named("n", "one"), "aliases"), (named("n", "m"), "aliases")]
)
def test_a_registration_with_another_models_name_is_the_callers_fault(late: Entry, param: str) -> None:
    registry = Registry()
    registry.insert(named("m", "one"))
    with pytest.raises(InvalidRequest, match="is a name of the model 'm'") as caught:
        registry.require_free(late.registration)
    assert caught.value.param == param


def test_a_models_own_names_are_free_to_it() -> None:
    registry = Registry()
    registry.insert(named("m", "one"))
    registry.require_free(named("m", "one", "two").registration)


def test_a_claimed_name_is_kept_from_others_until_the_claim_ends() -> None:
    registry = Registry()
    first, second = named("m", "one").registration, named("n", "one").registration
    registry.claim(first)
    with pytest.raises(InvalidRequest):
        registry.claim(second)
    with pytest.raises(ModelNotFound):
        registry.find("one")
    registry.unclaim(first)
    registry.claim(second)
