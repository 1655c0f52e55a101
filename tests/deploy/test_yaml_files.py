"""The files for compose and llama-swap: what they start is understood, and they agree with what else is here."""

import shlex
import tomllib

import yaml

from deploy_files import DEPLOY, parsed, unit_settings


def read(name):
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


def test_llama_swap_starts_a_command_that_antiphon_understands_on_the_port_that_it_asks():
    entry = read("llama-swap.yaml")["models"]["antiphon"]
    _, *words = shlex.split(entry["cmd"].replace("${PORT}", "5800"))

    assert parsed(words)["port"] == 5800
    assert entry["proxy"].replace("${PORT}", "5800") == "http://127.0.0.1:5800"
    assert entry["checkEndpoint"] == "/health/ready"


def test_llama_swap_kills_nobody_who_drains():
    entry = read("llama-swap.yaml")["models"]["antiphon"]
    _, *words = shlex.split(entry["cmd"].replace("${PORT}", "5800"))

    assert parsed(words)["drain_timeout_ms"] < 5000  # what llama-swap gives a process to end


def test_llama_swap_knows_every_name_of_the_configuration():
    config = tomllib.loads((DEPLOY / "server.toml").read_text(encoding="utf-8"))
    names = {name for model in config["models"] for name in (model["id"], *model.get("aliases", []))}

    assert set(read("llama-swap.yaml")["models"]["antiphon"]["aliases"]) == names


def test_compose_builds_the_image_that_is_here_and_keeps_its_models():
    service = read("compose.yaml")["services"]["antiphon"]

    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Containerfile"
    assert service["volumes"] == ["models:/models"]
    assert "models" in read("compose.yaml")["volumes"]


def test_compose_waits_for_as_long_as_systemd():
    unit = unit_settings((DEPLOY / "antiphon.service").read_text(encoding="utf-8"))

    assert [read("compose.yaml")["services"]["antiphon"]["stop_grace_period"]] == unit["Service.TimeoutStopSec"]
