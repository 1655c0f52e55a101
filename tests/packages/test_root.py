"""Where models live by default."""

from pathlib import Path

import pytest

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
