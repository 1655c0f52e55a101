"""What the doctor says of the machine: limits that are really set, in processes of their own where they must be."""

import json
import os
import subprocess
import sys

import pytest

from antiphon.config import build_config, usable_cores
from antiphon.doctor import machine
from antiphon.doctor.diagnosis import Health
from antiphon.runtime.control_groups import ControlGroups

OK, WARN, FAIL = Health


def config(**fields):
    return build_config(fields, source="this test", base=None, parallel_jobs=False)


@pytest.fixture
def groups(tmp_path):
    """Makes control groups with these limits."""

    def make(cpu="max 100000", memory="max", used=0):
        (tmp_path / "told").write_text("0::/\n")
        for name, text in {"cpu.max": cpu, "memory.max": memory, "memory.current": used}.items():
            (tmp_path / name).write_text(f"{text}\n")
        return ControlGroups(tmp_path / "told", tmp_path)

    return make


def in_a_process(expression, *, open_files=None, **env):
    """A diagnosis that is made in a process with another environment: its health, what it says, and its advice.

    `open_files` is the process's limit of descriptors, if it is not to be that of the tests.
    """
    limit = "" if open_files is None else f"resource.setrlimit(resource.RLIMIT_NOFILE, ({open_files}, {open_files}))\n"
    code = f"import json, resource\n{limit}from antiphon.doctor.machine import *\nit = {expression}\n"
    code += "print(json.dumps([it.health, it.said, it.advice]))"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    done = subprocess.run([sys.executable, "-c", code], env=kept | env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_this_python_is_one_that_it_runs_on():
    assert machine.python().health is OK


def test_less_time_than_cores_is_a_warning_with_what_to_set(groups):
    found = machine.processors(groups(cpu="50000 100000"))

    assert found.health is WARN
    assert found.said.endswith(", and the time of 0.5 of them")
    assert "`threads`" in found.advice


@pytest.mark.parametrize("cpu", ["max 100000", f"{usable_cores() * 100_000} 100000"])
def test_all_the_time_of_its_cores_is_in_order(groups, cpu):
    assert machine.processors(groups(cpu=cpu)).health is OK


def test_models_that_fit_into_the_memory_are_in_order(groups):
    assert machine.memory(groups(), 1).health is OK


def test_models_that_do_not_fit_are_a_warning(groups):
    found = machine.memory(groups(memory=3 * 2**20), 2**60)

    assert found.health is WARN
    assert ", limited to 3 MiB by a control group, and the models need about " in found.said
    assert "max_loaded_models" in found.advice


def with_open_files(limit, **fields):
    """What is said of a hard limit, which a process cannot raise again: so it is another one's."""
    return in_a_process(f"descriptors(ServerConfig(**{fields}))", open_files=limit)


def test_too_few_open_files_for_the_connections_is_a_warning():
    health, said, advice = with_open_files(500, max_connections=251)
    assert (health, said) == (WARN, "500, so that 250 of 251 connections are accepted")
    assert "ulimit -n 502" in advice


@pytest.mark.parametrize("connections", [250, 0])
def test_enough_open_files_are_in_order(connections):
    health, said, _ = with_open_files(500, max_connections=connections)
    assert (health, said) == (OK, "500, half of them for connections")


def test_a_temporary_folder_with_room_is_in_order(tmp_path):
    small = "ServerConfig(max_pending_body_mb=1, max_pending_audio_mb=1)"
    said = in_a_process(f"temporary_files({small})", TMPDIR=str(tmp_path))

    assert said[0] == OK
    assert said[1].startswith(str(tmp_path))


def test_a_temporary_folder_that_uploads_may_fill_is_a_warning():
    found = machine.temporary_files(config(max_pending_body_mb=2**40))

    assert found.health is WARN
    assert "TMPDIR" in found.advice


def test_a_temporary_folder_in_memory_is_told_of_as_such():
    found = in_a_process("temporary_files(ServerConfig())", TMPDIR="/dev/shm")

    assert ", in memory" in found[1]


def test_a_locale_that_cannot_write_every_path_is_a_warning():  # CFG-04
    said = in_a_process("locale()", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")

    assert said[:2] == [WARN, "paths are written in ascii"]


def test_a_locale_of_utf_8_is_in_order():
    assert in_a_process("locale()", PYTHONUTF8="1")[0] == OK
