"""One damaged package: it is left out and reported, and the others are served."""

import json
import os
from pathlib import Path

import httpx
import pytest

from antiphon.bootstrap import assemble, installed_config
from antiphon.packages import damaged_packages
from antiphon.packages.catalogue import CATALOGUE_NAME, catalogue_of
from antiphon.packages.manifest import MANIFEST_NAME
from antiphon.runtime.discovery import AdapterFinder
from antiphon.vocabulary.errors import ConfigError, PackageError
from damaged_packages_stage import DEEP, package, served
from server_process import HANG_GUARD_S, antiphon, error_lines


def test_the_others_are_served_and_the_damaged_ones_are_reported(tmp_path):
    for name in ("good", "manifest"):
        package(tmp_path, name)
    (tmp_path / "manifest" / MANIFEST_NAME).write_text(DEEP)
    voice = package(tmp_path, "voice", "piper")
    (voice / "v.onnx").touch()
    (voice / "v.onnx.json").write_text(DEEP)
    reasons = {
        "manifest": f"manifest: {MANIFEST_NAME} is damaged: it is nested too deeply",
        "voice": "v.onnx.json is nested too deeply",
    }

    with served(tmp_path) as (url, log):
        told = httpx.get(f"{url}/v1/status", timeout=HANG_GUARD_S).json()
        ready = httpx.get(f"{url}/health/ready", timeout=HANG_GUARD_S)
        shown = antiphon("status", "--url", url).stdout
    assert [model["id"] for model in told["models"]] == ["good"]
    assert {it["id"]: it["error"] for it in told["not_served"]} == reasons
    assert ready.status_code == 200
    for name, reason in reasons.items():
        assert f"{name} is not served: {reason}" in log
        assert f"not served: {name}: {reason}" in shown


def test_a_server_whose_every_package_is_damaged_says_why_it_does_not_start(tmp_path):
    (package(tmp_path, "one") / MANIFEST_NAME).write_text("{")
    package(tmp_path, "two", "no-such-family")

    done = antiphon("serve", "--models-root", str(tmp_path), "--port", "0")
    assert done.returncode == 1
    (line,) = error_lines(done.stderr)
    assert line.startswith(f"antiphon: no installed model can be served: one: one: {MANIFEST_NAME} is damaged; two: ")
    assert "no-such-family" in line


def test_a_model_that_was_registered_since_is_not_reported(tmp_path):
    package(tmp_path, "good")
    package(tmp_path, "two", "no-such-family")
    assembly = assembled(tmp_path)
    assert [it.id for it in assembly.services.models.damaged()] == ["two"]

    good = assembly.runtime.view("good")
    two = good.registration.__class__(good.registration.spec.__class__("two", "controlled", str(tmp_path), "tts"))
    assembly.runtime.add(two, good.capability)
    assert assembly.services.models.damaged() == []
    assembly.codec.close()


@pytest.mark.parametrize("name", [MANIFEST_NAME, "other"])
def test_a_manifest_that_is_too_large_is_damaged(tmp_path, name):
    (package(tmp_path, "one") / name).write_bytes(b" " * (4 * 1024 * 1024 + 1))
    found = [it.reason for it in damaged_packages(tmp_path)]
    assert found == ([f"one: {MANIFEST_NAME} is larger than 4194304 bytes"] if name == MANIFEST_NAME else [])


def test_a_catalogue_that_cannot_be_read_is_one_line(tmp_path):
    (tmp_path / CATALOGUE_NAME).write_text(f"x = {DEEP}")
    with pytest.raises(PackageError, match=r"catalogue\.toml is nested too deeply"):
        catalogue_of(tmp_path)
    (tmp_path / CATALOGUE_NAME).write_text(" " * (4 * 1024 * 1024 + 1))
    with pytest.raises(PackageError, match=r"catalogue\.toml is larger than 4194304 bytes"):
        catalogue_of(tmp_path)
    (tmp_path / CATALOGUE_NAME).unlink()
    os.mkfifo(tmp_path / CATALOGUE_NAME)
    with pytest.raises(PackageError, match=r"catalogue\.toml is not a regular file"):
        catalogue_of(tmp_path)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"family": "piper"}, "models[1].path: model 'two': a Piper voice's folder holds one .onnx file"),
        ({"family": "nobody"}, "models[1].family: model 'two': there is no model family 'nobody'"),
        ({"family": "piper", "task": "asr"}, "models[1]: model 'two': task must be tts"),
    ],
)
def test_in_a_file_the_model_and_the_field_at_fault_are_named(tmp_path, fields, place):
    (tmp_path / "model").mkdir()
    model = {"family": "controlled", "path": "model", "task": "tts"}
    (tmp_path / "server.json").write_text(
        json.dumps({"models": [{**model, "id": "one"}, {**model, "id": "two", **fields}]})
    )

    done = antiphon("serve", "--config", str(tmp_path / "server.json"))
    (line,) = error_lines(done.stderr)
    assert line.startswith(f"antiphon: {tmp_path}/server.json: {place}")


def test_a_command_that_needs_the_damaged_model_names_it(tmp_path):
    package(tmp_path, "two", "no-such-family")
    with pytest.raises(ConfigError, match=r"models\[0\]\.family: model 'two': there is no model family"):
        assemble(installed_config(tmp_path, {}, parallel_jobs=False), AdapterFinder(), parallel_jobs=False)


def assembled(root: Path):
    config = installed_config(root, {"isolation": "thread"}, parallel_jobs=False)
    return assemble(config, AdapterFinder(), parallel_jobs=False, damaged=damaged_packages(root))
