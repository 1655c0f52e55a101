"""A few hundred inputs for each target, always the same ones; `fuzz_run.py` has as many more as one likes."""

import os
import signal

import psutil
import pytest

from conformance_client import eventually
from fuzz_stage import TARGETS, fuzz_range

COUNTS = {"audio": 250, "form": 200, "json": 200, "management": 100, "request": 160, "live": 96, "socket": 96,
          "realtime": 96, "wyoming": 112}  # fmt: skip


@pytest.fixture(scope="module")
def fired_at(tmp_path_factory):
    with fuzz_range(tmp_path_factory.mktemp("fuzz")) as fired_at:
        yield fired_at


@pytest.mark.parametrize("target", TARGETS)
def test_whatever_comes_is_answered_as_declared_and_leaves_nothing(fired_at, target):
    findings = fired_at.fire(target, range(COUNTS[target]))
    assert [str(it) for it in findings] == []


@pytest.mark.parametrize("target", TARGETS)
def test_some_inputs_are_accepted_and_some_refused(fired_at, target):
    if not fired_at.told[target]:
        fired_at.fire(target, range(COUNTS[target]))
    told = fired_at.told[target]
    accepted = {"200", "101", "audio-start", "transcript-start", "pong", "info"} & told.keys()
    assert accepted, told
    assert {"400", "404", "error"} & told.keys(), told


def test_an_engine_that_fails_is_a_finding(fired_at):
    checkpoint = fired_at.checkpoint("tts")
    checkpoint.fail("run", "RuntimeError")
    try:
        findings = fired_at.fire("json", range(20))
    finally:
        checkpoint.unset("run.fail")
    assert any("takes the fault upon itself" in it.what and len(it.seeds) == 1 for it in findings)
    assert any("a good request (speech)" in it.what for it in findings)


def test_what_a_server_has_lost_or_made_is_a_finding(fired_at):
    before = fired_at.standing()
    made = fired_at.server.folder / "fuzz_pwn.wav"
    made.touch()
    killed = max(before.pids - {fired_at.server.process.pid})
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: psutil.pid_exists(killed), lambda exists: not exists, "the end of the process")
    found = list(fired_at.left_since(before, moves_models=False))
    made.unlink()
    assert "files have been made: ['fuzz_pwn.wav']" in found
    assert any(it.startswith("processes have ended: ") and str(killed) in it for it in found)
