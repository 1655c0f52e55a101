"""Where models live by default."""

from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from antiphon.cli import app
from antiphon.packages import default_models_root


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        ({"ANTIPHON_MODELS_ROOT": "/srv/models", "XDG_DATA_HOME": "/data"}, "/srv/models"),
        ({"XDG_DATA_HOME": "/data"}, "/data/antiphon/models"),
        ({"XDG_DATA_HOME": "relative"}, "/home/someone/.local/share/antiphon/models"),
        ({"XDG_DATA_HOME": "", "ANTIPHON_MODELS_ROOT": ""}, "/home/someone/.local/share/antiphon/models"),
        ({}, "/home/someone/.local/share/antiphon/models"),
    ],
)
def test_the_environment_decides_the_default_root(
    environment: dict[str, str], root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    for name in ("ANTIPHON_MODELS_ROOT", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert default_models_root() == Path(root)


@pytest.mark.parametrize(
    ("environment", "beginning"),
    [
        ({"ANTIPHON_MODELS_ROOT": "~nobody-has-this-name/m"}, "ANTIPHON_MODELS_ROOT: '~nobody-has-this-name/m'"),
        ({}, "the models root is unknown: this user has no home folder"),
    ],
)
def test_a_home_folder_that_does_not_exist_is_one_line(
    environment: dict[str, str], beginning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(uid: int) -> NoReturn:
        raise KeyError(uid)

    for name in ("HOME", "ANTIPHON_MODELS_ROOT", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("pwd.getpwuid", unknown)  # as for a container's user that is only a number

    done = CliRunner().invoke(app, ["models", "list"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"antiphon: {beginning}")
    assert done.stderr.endswith("; set ANTIPHON_MODELS_ROOT to an absolute path, or use --models-root\n")
