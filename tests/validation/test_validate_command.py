"""The command end to end, on servers of its own."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from antiphon.cli import app
from antiphon.validation.evidence import Verdict, read_evidence
from server_process import ANTIPHON

TESTS = Path(__file__).parents[1]
HANG_GUARD_S = 180.0
"""Five interpreters start one after another."""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with the model `voice`, of an engine whose answers vary."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_text("none")
    file = tmp_path / "server.json"
    models = [{"id": "voice", "family": "fickle", "path": "model", "task": "tts"}]
    file.write_text(json.dumps({"models": models}))
    return file


def refusal(config: Path, model: str, *arguments: str) -> str:
    """Why the command does not even begin."""
    given = ["validate", model, "--config", str(config), "--slots", "2", *arguments]
    ended = CliRunner().invoke(app, given)
    assert ended.exit_code == 1
    return ended.stderr.strip()


@pytest.mark.slow
def test_what_varies_on_one_slot_ends_with_3_and_its_evidence(tmp_path: Path, config: Path) -> None:
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = ["--config", str(config), "--family", "suspect_engines:FickleAdapter", "--isolation", "thread"]
    small = ["--slots", "1", "--starts", "1", "--waves", "2", "--mode", "offline", "--text", "one", "--text", "two"]
    ended = subprocess.run(
        [str(ANTIPHON), "validate", "voice", *settings, *small],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        timeout=HANG_GUARD_S,
        check=False,
    )
    assert ended.returncode == 3, ended.stderr
    assert "offline, 1 slot, cold: unverified, run/text-1 varies on one slot" in ended.stdout
    assert "for the audit list" not in ended.stdout
    evidence = read_evidence(tmp_path / "voice.json")
    assert evidence.verdict() is Verdict.UNVERIFIED
    assert (evidence.model.id, evidence.model.family, evidence.model.threads) == ("voice", "fickle", 1)
    assert evidence.versions.keys() >= {"python", "antiphon"}
    assert evidence.machine.keys() >= {"processor", "cores", "memory", "kernel"}
    assert [file.path for file in evidence.model.files] == ["weights"]


def test_an_unknown_model_is_refused_with_those_that_there_are(config: Path) -> None:
    assert refusal(config, "none") == "antiphon: there is no model 'none'; there are voice"


def test_an_accelerator_is_refused(config: Path) -> None:
    config.write_text(json.dumps({**json.loads(config.read_text()), "device": "cuda"}))
    assert refusal(config, "voice") == "antiphon: voice: nothing but cpu is validated, and its device is cuda"


def test_a_model_that_hears_needs_a_voice_or_recordings(config: Path) -> None:
    config.write_text(config.read_text().replace('"tts"', '"asr"').replace("fickle", "controlled"))
    told = refusal(config, "voice", "--models-root", str(config.parent))
    assert told.startswith("antiphon: no piper model is installed in ")
    assert "--audio" in told
