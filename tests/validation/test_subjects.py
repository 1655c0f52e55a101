"""What `antiphon validate` is asked to run with."""

from pathlib import Path

import pytest

from antiphon.validation.errors import ValidationError
from antiphon.validation.site import Subject
from antiphon.validation.subjects import find_subject
from antiphon.vocabulary.errors import ConfigError
from antiphon.vocabulary.states import Isolation


def subject(folder: Path, threads: str) -> Subject:
    checkpoint = folder / "model"
    checkpoint.mkdir(exist_ok=True)
    config = folder / "server.toml"
    config.write_text('models = [{id = "m", family = "controlled", path = "model", task = "tts"}]')
    found, _ = find_subject(
        "m", config=config, models_root=folder, families=(), threads=threads, isolation=Isolation.THREAD
    )
    return found


@pytest.mark.parametrize(("threads", "asked"), [("3", 3), ("auto", "auto")])
def test_the_threads_are_those_of_the_command(tmp_path: Path, threads: str, asked: object) -> None:
    assert subject(tmp_path, threads).spec.threads_setting == asked


@pytest.mark.parametrize("threads", ["0", "-1", "many", ""])
def test_threads_that_are_no_number_are_refused(tmp_path: Path, threads: str) -> None:
    with pytest.raises(ValidationError, match="threads: wanted a number from 1, or auto"):
        subject(tmp_path, threads)


def test_auto_is_refused_for_an_engine_that_cannot_choose(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "fixed_threads").touch()
    with pytest.raises(ConfigError, match="threads is auto"):
        subject(tmp_path, "auto")
