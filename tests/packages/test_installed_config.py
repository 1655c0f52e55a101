"""The configuration of a server that was given none: what it serves, and under which of OpenAI's names."""

from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.bootstrap import installed_config
from antiphon.packages import Installer
from antiphon.vocabulary.tasks import Task


@pytest.fixture
def served(workshop, models_root: Path):
    """Installs packages, a task by its id, and gives the aliases of each model then served."""

    def served(**tasks: Task) -> dict[str, tuple[str, ...]]:
        installer = Installer(models_root, workshop.shelf.copy)
        for name, task in tasks.items():
            package = replace(workshop.package(), id=name.replace("_", "-"), task=task)
            installer.install(package)
        config = installed_config(models_root, {}, parallel_jobs=False)
        return {model.id: model.aliases for model in config.models}

    return served


def test_the_first_model_of_a_task_answers_to_openais_names(served) -> None:
    assert served(b=Task.TTS, a=Task.TTS, c=Task.ASR, d=Task.VAD) == {
        "a": ("tts-1", "tts-1-hd", "gpt-4o-mini-tts"),
        "b": (),
        "c": ("whisper-1",),
        "d": (),
    }


def test_a_default_package_goes_before_others(served) -> None:
    given = served(a_asr=Task.ASR, whisper_tiny_en=Task.ASR, whisper_base=Task.ASR)
    assert given == {"a-asr": (), "whisper-base": ("whisper-1",), "whisper-tiny-en": ()}


def test_a_package_of_such_a_name_keeps_it(served) -> None:
    assert served(a=Task.TTS, tts_1=Task.VAD)["a"] == ("tts-1-hd", "gpt-4o-mini-tts")
