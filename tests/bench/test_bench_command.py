"""The command runs end to end on servers of its own; what it measures is not tested."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = "import typer; from antiphon.cli.bench import bench; app = typer.Typer(); app.command()(bench); app()"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def test_a_quick_run_prints_a_ratio_and_writes_every_turn(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    ended = bench("--only", "noop", "--pairs", "1", "--quick", "--json", str(file))
    assert ended.returncode == 0, ended.stderr
    assert "no-op / bare route, 8 clients" in ended.stdout
    (case,) = json.loads(file.read_text("utf-8"))["cases"]
    assert [len(turns) for turns in case["sides"].values()] == [1, 1, 1, 1]
    assert all(ratio["cpu"]["median"] > 0 for ratio in case["ratios"])


def test_a_case_without_its_model_is_skipped_and_says_so(tmp_path: Path) -> None:
    ended = bench("--only", "piper", "--pairs", "1", "--quick", "--models-root", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "piper: skipped, no piper model is installed" in ended.stdout


def test_an_unknown_case_is_refused_with_those_that_there_are() -> None:
    ended = bench("--only", "nothing")
    assert ended.returncode == 2
    assert "'nothing' is not one of" in " ".join(ended.stderr.split())
