"""The audit list: how many slots a model may use, known without loading it."""

from dataclasses import replace

import pytest

from antiphon.runtime.audit import audited_slots, check_slots
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.tasks import Mode, Task


def spec(family, task=Task.TTS, **changes):
    return replace(ModelSpec("m", family, "/nowhere", task), **changes)


@pytest.mark.parametrize(
    ("family", "task", "slots"),
    [
        ("controlled", Task.DIAR, 16),
        ("piper", Task.TTS, 4),
        ("whisper", Task.ASR, 4),
        ("piper", Task.ASR, 1),
        ("whisper", Task.VAD, 1),
        ("silero_vad", Task.VAD, 4),
        ("speaker_clustering", Task.DIAR, 4),
        ("unheard-of", Task.TTS, 1),
    ],
)
@pytest.mark.parametrize("mode", Mode)
def test_a_model_may_use_on_cpu_what_its_line_says(family, task, slots, mode):
    assert audited_slots(spec(family, task, mode=mode)) == slots


@pytest.mark.parametrize("device", ["cuda", "vulkan"])
@pytest.mark.parametrize(("family", "task"), [("controlled", Task.TTS), ("piper", Task.TTS), ("whisper", Task.ASR)])
def test_no_model_may_use_more_than_one_slot_on_an_accelerator(device, family, task):
    assert audited_slots(spec(family, task, device=device)) == 1
    with pytest.raises(ConfigError, match=f"slots is 2, and {family} on {device} may use 1"):
        check_slots(spec(family, task, device=device, slots=2))


def test_a_count_within_the_list_passes():
    check_slots(spec("piper", slots=4))
    check_slots(spec("unheard-of", slots=1))


def test_a_count_beyond_the_list_is_refused_by_the_models_name():
    with pytest.raises(ConfigError, match="model 'm': slots is 5"):
        check_slots(spec("piper", slots=5))


def test_another_limit_can_stand_for_the_list():
    check_slots(spec("unheard-of", slots=3), lambda it: 3)
    with pytest.raises(ConfigError, match="slots is 4, and unheard-of on cpu may use 3"):
        check_slots(spec("unheard-of", slots=4), lambda it: 3)
