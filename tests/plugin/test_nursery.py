"""Processes that are forked: they begin and end as those do that are started alone."""

import os
from pathlib import Path

import pytest

from server_nursery import Nursery
from server_process import error_lines, running_server


@pytest.fixture(scope="module")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.close()


def test_a_forked_command_fails_as_the_command_does(nursery, tmp_path):
    command = ["antiphon", "serve", "--config", "missing.json"]

    with nursery.start(command, cwd=tmp_path, env=os.environ) as process:
        said = process.stderr.read()

    assert process.returncode == 1
    assert said.splitlines() == error_lines(said)
    assert "missing.json" in said


def test_a_forked_server_has_its_own_folder_and_leaves_when_it_is_told(nursery, tmp_path):
    with running_server(tmp_path, {"lazy_load": True}, start=nursery.start) as server:
        folder = Path(f"/proc/{server.process.pid}/cwd").readlink()
        assert server.process.poll() is None

    assert folder == tmp_path
    assert server.process.poll() == 0


def test_a_forked_process_that_is_killed_says_so(nursery, tmp_path):
    (tmp_path / "server.json").write_text('{"port": 0, "lazy_load": true}')
    command = ["antiphon", "serve", "--config", "server.json"]

    with nursery.start(command, cwd=tmp_path, env=os.environ) as process:
        assert process.poll() is None
        process.kill()

    assert process.poll() == -9
