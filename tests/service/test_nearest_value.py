"""A wish that a model may not be able to meet is met as nearly as it can be."""

import pytest

from antiphon.runtime.api import BoundModel
from antiphon.service.binding import nearest_value
from antiphon.vocabulary.spec import Capability, ModelSpec, OptionSpec, Registration
from antiphon.vocabulary.tasks import Mode, Task


def model(*options: OptionSpec) -> BoundModel:
    spec = ModelSpec(id="m", family="controlled", path="/models/m", task=Task.ASR)
    capability = Capability(frozenset({Task.ASR}), frozenset({Mode.OFFLINE}), 16_000, 1, options=options)
    return BoundModel(Registration(spec), capability)


@pytest.mark.parametrize(("wanted", "met"), [(0, 200), (200, 200), (450, 450), (5000, 5000), (9000, 5000)])
def test_a_wish_is_met_within_the_options_range(wanted, met):
    assert nearest_value(model(OptionSpec("silence_ms", "integer", "", 200, 5000)), "silence_ms", wanted) == met


def test_an_option_without_a_range_takes_any_wish():
    assert nearest_value(model(OptionSpec("silence_ms", "integer", "")), "silence_ms", 7) == 7


def test_a_model_without_the_option_keeps_its_own_way():
    assert nearest_value(model(OptionSpec("step_ms", "integer", "", 1, 9)), "silence_ms", 7) is None
