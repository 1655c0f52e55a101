"""When an idle model may be retired."""

import pytest

from antiphon.residency.idle import idle_deadline
from antiphon.residency.registry import Entry
from antiphon.vocabulary.spec import Capability, ModelSpec, Registration
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Mode, Task


def entry(state: ModelState, *, pinned: bool = False) -> Entry:
    """A model that was last used at 100."""
    spec = ModelSpec(id="m", family="controlled", path="/models/m", task=Task.TTS)
    capability = Capability(frozenset({Task.TTS}), frozenset({Mode.OFFLINE}), sample_rate=16_000, weight_bytes=1)
    made = Entry(Registration(spec, pinned=pinned), capability, 100)
    made.state = state
    return made


def test_the_time_runs_from_the_last_use() -> None:
    assert idle_deadline(entry(ModelState.READY), 7) == 107


@pytest.mark.parametrize("state", [it for it in ModelState if it is not ModelState.READY])
def test_only_a_model_that_is_ready_can_be_idle(state: ModelState) -> None:
    assert idle_deadline(entry(state), 7) is None


def test_zero_keeps_an_idle_model() -> None:
    assert idle_deadline(entry(ModelState.READY), 0) is None


def test_a_pinned_model_stays_however_idle_it_is() -> None:
    assert idle_deadline(entry(ModelState.READY, pinned=True), 7) is None
