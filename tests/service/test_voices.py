"""Which of a model's voices a request means."""

import pytest

from antiphon.runtime.api import BoundModel
from antiphon.service.binding import OPENAI_VOICES, bound_voice
from antiphon.vocabulary.errors import InvalidRequest
from antiphon.vocabulary.spec import Capability, ModelSpec, Registration
from antiphon.vocabulary.tasks import Mode, Task


def model(*voices: str) -> BoundModel:
    spec = ModelSpec(id="m", family="controlled", path="/models/m", task=Task.TTS)
    capability = Capability(frozenset({Task.TTS}), frozenset({Mode.OFFLINE}), 16_000, 1, voices=voices)
    return BoundModel(Registration(spec), capability)


@pytest.mark.parametrize("voices", [(), ("default",), ("default", "joe"), ("joe", "alloy")])
def test_no_voice_leaves_it_to_the_model(voices):
    assert bound_voice(model(*voices), None) is None


@pytest.mark.parametrize("voice", ["default", "joe", "alloy"])
def test_a_voice_of_the_model_is_taken_as_it_is(voice):
    assert bound_voice(model("default", "joe", "alloy"), voice) == voice


@pytest.mark.parametrize("voice", OPENAI_VOICES)
@pytest.mark.parametrize(("voices", "meant"), [((), None), (("default",), None), (("default", "joe"), "joe")])
def test_every_openai_voice_is_the_only_voice_of_a_model_that_has_one(voice, voices, meant):
    assert bound_voice(model(*voices), voice) == meant


def test_openai_voices_are_shared_out_in_order_among_the_voices_of_a_model_with_several():
    given = [bound_voice(model("default", "p1", "p2", "p3"), voice) for voice in OPENAI_VOICES]
    assert given[:4] == ["p1", "p2", "p3", "p1"]
    assert {given.count(voice) for voice in ("p1", "p2", "p3")} == {4, 5}


@pytest.mark.parametrize("voice", ["Alloy", "joe2", ""])
def test_any_other_voice_is_refused(voice):
    with pytest.raises(InvalidRequest, match="the model has default, joe") as caught:
        bound_voice(model("default", "joe"), voice)
    assert caught.value.param == "voice"
