"""The JSON schema of the configuration: what it takes and refuses, and that the committed one is the current one."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import jsonschema_rs
import pytest

from antiphon.config import ServerConfig
from antiphon.config.json_schema import config_schema
from server_process import antiphon

PROJECT = Path(__file__).parents[2]
MODEL = {"id": "a", "family": "controlled", "path": "models/a", "task": "tts"}


@pytest.fixture(scope="module")
def validator() -> jsonschema_rs.Draft202012Validator:
    schema = config_schema()
    jsonschema_rs.meta.validate(schema)
    return jsonschema_rs.Draft202012Validator(schema)


def documented_configurations() -> list[object]:
    """The JSON objects that the pages of the documentation show as configurations."""
    pages = [(PROJECT / "docs" / name).read_text() for name in ("configuration.md", "listeners.md")]
    blocks = [block for page in pages for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    return [json.loads(block) for block in blocks]


def test_the_committed_schema_is_the_current_one() -> None:
    committed = (PROJECT / "docs" / "configuration.schema.json").read_text()
    assert json.loads(committed) == config_schema(), "run: antiphon config schema > docs/configuration.schema.json"


def test_every_documented_configuration_is_valid(validator: jsonschema_rs.Draft202012Validator) -> None:
    shown = documented_configurations()
    assert len(shown) >= 3
    for configuration in shown:
        validator.validate(configuration)


@pytest.mark.parametrize("name", ["server.json", "home-assistant.json", "server.toml"])
def test_a_shipped_example_is_valid(validator: jsonschema_rs.Draft202012Validator, name: str) -> None:
    text = (PROJECT / "examples" / name).read_text()
    validator.validate(tomllib.loads(text) if name.endswith("toml") else json.loads(text))


@pytest.mark.parametrize(
    "configuration",
    [
        {"prot": 1},
        {"port": "8080"},
        {"port": True},
        {"port": 65536},
        {"isolation": "none"},
        {"models": [{"id": "a"}]},
        {"models": [{**MODEL, "slots": 17}]},
        {"models": [{**MODEL, "task": "sing"}]},
        {"listeners": [{"path": "x"}]},
        [],
    ],
    ids=str,
)
def test_what_the_server_refuses_the_schema_refuses(
    validator: jsonschema_rs.Draft202012Validator, configuration: object
) -> None:
    assert not validator.is_valid(configuration)


def test_a_file_may_name_its_schema(load: Callable[..., ServerConfig]) -> None:
    assert load({"$schema": "configuration.schema.json", "port": 1}).port == 1


def test_the_command_prints_it() -> None:
    done = antiphon("config", "schema")
    assert (done.returncode, json.loads(done.stdout)) == (0, config_schema())
