"""The systemd unit and its configuration are ones that systemd and the server understand."""

import shlex
import shutil
import subprocess

import pytest

from antiphon.config import load_config
from antiphon.packages import shipped_catalogue
from deploy_files import DEPLOY, parsed, unit_settings
from server_process import ANTIPHON

UNIT = (DEPLOY / "antiphon.service").read_text(encoding="utf-8")
SETTINGS = unit_settings(UNIT)
STATE = "/var/lib/antiphon"


def setting(name):
    """A setting that is given once."""
    (value,) = SETTINGS[name]
    return value


@pytest.fixture
def config(tmp_path):
    """The unit's configuration, with its folder of state in a place that a test may write."""
    text = (DEPLOY / "server.toml").read_text(encoding="utf-8")
    for package in shipped_catalogue().packages:
        (tmp_path / "models" / package.id).mkdir(parents=True)
    file = tmp_path / "server.toml"
    file.write_text(text.replace(STATE, str(tmp_path)), encoding="utf-8")
    return load_config(file, parallel_jobs=True)


def test_the_command_is_one_that_antiphon_understands():
    program, *words = shlex.split(setting("Service.ExecStart"))
    told = parsed(words)

    assert program.endswith("/bin/antiphon")
    assert told["parallel_jobs"] is True
    assert str(told["config"]) == "/etc/antiphon/server.toml"


def test_systemd_waits_for_longer_than_the_server_drains(config):
    patience_s = int(setting("Service.TimeoutStopSec").removesuffix("s"))

    assert patience_s * 1000 >= config.drain_timeout_ms + 10_000


def test_the_server_alone_is_told_to_stop_and_tells_of_itself():
    assert setting("Service.Type") == "notify"
    assert setting("Service.NotifyAccess") == "main"
    assert setting("Service.KillMode") == "mixed"
    assert setting("Service.OOMPolicy") == "continue"


def test_the_state_is_where_the_configuration_looks_for_it(config):
    assert f"/var/lib/{setting('Service.StateDirectory')}" == STATE
    assert f"ANTIPHON_MODELS_ROOT={STATE}/models" in shlex.split(setting("Service.Environment"))
    assert f'models_root = "{STATE}/models"' in (DEPLOY / "server.toml").read_text(encoding="utf-8")


def test_the_models_of_the_configuration_are_default_packages_of_that_family_and_task(config):
    defaults = {package.id: (package.family, package.task) for package in shipped_catalogue().defaults()}

    assert config.models
    for model in config.models:
        assert defaults[model.id] == (model.family, model.task)


def test_nothing_is_forbidden_that_the_engines_need():
    # A just-in-time compiler writes the code that it runs; /proc/meminfo says how much memory there is.
    assert "Service.MemoryDenyWriteExecute" not in SETTINGS
    assert "Service.ProcSubset" not in SETTINGS
    assert not any("@resources" in value for value in SETTINGS["Service.SystemCallFilter"])  # threads are pinned


def test_systemd_finds_no_fault_in_it(tmp_path):
    assert shutil.which("systemd-analyze"), "systemd-analyze is not installed"
    program = shlex.split(setting("Service.ExecStart"))[0]
    unit = tmp_path / "antiphon.service"
    unit.write_text(UNIT.replace(program, str(ANTIPHON)), encoding="utf-8")

    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)

    assert (done.returncode, [line for line in done.stderr.splitlines() if "antiphon" in line]) == (0, [])
