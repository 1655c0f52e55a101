"""A folder with a model in it, and a way to try a configuration there."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.config import ServerConfig, load_config
from antiphon.vocabulary.errors import ConfigError

MODEL = {"id": "a", "family": "controlled", "path": "models/a", "task": "tts"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A configuration's folder, with the models `models/a` and `models/b`."""
    home = tmp_path / "home"
    for name in ("a", "b"):
        (home / "models" / name).mkdir(parents=True)
    return home


@pytest.fixture
def load(home: Path) -> Callable[..., ServerConfig]:
    """Write an object as `server.json` and load it."""

    def load(data: object, *, parallel_jobs: bool = False, **overrides: object) -> ServerConfig:
        file = home / "server.json"
        file.write_text(json.dumps(data), encoding="utf-8")
        return load_config(file, parallel_jobs=parallel_jobs, overrides=overrides)

    return load


@pytest.fixture
def load_model(load: Callable[..., ServerConfig]) -> Callable[..., ServerConfig]:
    """Load a configuration of the one model `a`, with some of its fields changed or added."""

    def load_model(*, parallel_jobs: bool = False, **fields: object) -> ServerConfig:
        return load({"models": [{**MODEL, **fields}]}, parallel_jobs=parallel_jobs)

    return load_model


@pytest.fixture
def refusal(home: Path) -> Callable[..., str]:
    """Load what must be refused; gives the line that says why, without the folder that the file lies in."""

    def refusal(attempt: Callable[..., ServerConfig], *args: object, **kwargs: object) -> str:
        with pytest.raises(ConfigError) as caught:
            attempt(*args, **kwargs)
        line = caught.value.message
        assert line.isprintable()
        return line.removeprefix(f"{home}/")

    return refusal
