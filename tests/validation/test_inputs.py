"""What models are asked, by their task and by what they say that they can do."""

import io
import wave
from pathlib import Path

import pytest

from antiphon.validation.errors import ValidationError
from antiphon.validation.inputs import Inputs, Material, inputs_for
from antiphon.validation.recordings import Clip, joined, own_clips, retuned, silence
from antiphon.validation.texts import TEXTS, languages_for
from antiphon.vocabulary.spec import Capability, OptionSpec
from antiphon.vocabulary.tasks import Mode, Task

CLIPS = (Clip("one", silence(), "Words."), Clip("two", silence()), Clip("three", silence(), "More words."))
RECORDED = Material(clips=CLIPS)


def asked(task: Task, material: Material = RECORDED, **facts: object) -> Inputs:
    capability = Capability(frozenset({task}), frozenset(Mode), 16_000, 0, **facts)  # type: ignore[arg-type]  # as given
    return inputs_for(task, capability, material)


def names(inputs: Inputs) -> list[str]:
    return [it.name for it in inputs.good]


def frames(wav: bytes) -> int:
    with wave.open(io.BytesIO(wav)) as file:
        return file.getnframes()


@pytest.mark.parametrize("task", Task)
def test_the_inputs_of_a_task_have_names_and_contents_of_their_own(task: Task) -> None:
    material = Material() if task is Task.TTS else RECORDED
    inputs = asked(task, material)
    assert len(set(names(inputs))) == len(inputs.good) >= 2
    assert inputs.bad


def test_a_voice_speaks_texts_of_its_languages() -> None:
    inputs = asked(Task.TTS, Material(), languages=("de", "en", "fr"))
    assert {"short", "de-short"} <= set(names(inputs))
    assert "fr-short" not in names(inputs)  # two languages are enough


def test_a_voice_of_a_language_without_texts_speaks_english() -> None:
    assert languages_for(("xx",), 2) == ["en"]


def test_every_language_has_the_same_texts() -> None:
    assert len({frozenset(texts) for texts in TEXTS.values()}) == 1


def test_speeds_and_voices_are_asked_for_where_there_are_some() -> None:
    plain = names(asked(Task.TTS, Material()))
    speed = OptionSpec("speed", "number", "")
    rich = names(asked(Task.TTS, Material(), options=(speed,), voices=("a", "b")))
    assert set(rich) - set(plain) == {"faster", "other-voice"}


def test_a_users_texts_take_the_place_of_ours() -> None:
    inputs = asked(Task.TTS, Material(texts=("Eins.", "Zwei.")))
    assert names(inputs) == ["text-1", "text-2", "seeded"]


def test_a_recording_is_aligned_with_its_words_where_they_are_known() -> None:
    assert names(asked(Task.ALIGN)) == ["one", "three"]


def test_one_input_is_too_few() -> None:
    with pytest.raises(ValidationError, match="at least two inputs"):
        asked(Task.ALIGN, Material(clips=CLIPS[:2]))


def test_a_users_recordings_bring_the_words_beside_them(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(silence())
    (tmp_path / "a.txt").write_text("Some words.\n")
    (tmp_path / "b.wav").write_bytes(silence())
    assert [(clip.name, clip.text) for clip in own_clips([tmp_path / "a.wav", tmp_path / "b.wav"])] == [
        ("a", "Some words."),
        ("b", None),
    ]


def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"none\.wav cannot be read"):
        own_clips([tmp_path / "none.wav"])


def test_recordings_are_joined_and_retuned() -> None:
    second = silence()
    assert frames(joined([second, second])) == 2 * frames(second)
    assert frames(retuned(second)) == pytest.approx(frames(second) * 6 / 7, abs=6)


def test_what_is_no_plain_wav_is_left_as_it_is() -> None:
    assert retuned(b"an mp3") == b"an mp3"
    assert joined([b"an mp3"]) == silence()
