"""A tiny suite in a folder of its own, run by a pytest of its own: what the plugin does to it is what a user sees."""

import io
import os
import re
import shutil
import sys
import textwrap
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

INI = f"""
[pytest]
addopts = --strict-markers --import-mode=importlib
pythonpath = {Path(__file__).parents[1]}
"""

CELLS = """
["ops.ready.unload"]
requirement = "Unloaded."
upstream = "P"

["two.spare.request"]
requirement = "Needs two."
slots = [2, 4]

["rule.once"]
requirement = "Once | only."
slots = []
exceeds = "It never fails."

["time.later"]
requirement = "Later."
pending = 3
"""

JUDGE = """
from pathlib import Path

from conformance_cells import read_cells
from conformance_plugin import ConformanceSuite, add_options

HERE = Path(__file__).parent


def pytest_addoption(parser):
    add_options(parser)


def pytest_configure(config):
    cells = read_cells(HERE / "suite" / "cells.toml")
    suite = ConformanceSuite(HERE / "suite", HERE / "page.md", cells, ("thread", "process"), "pytest suite --write")
    config.pluginmanager.register(suite, "conformance")
"""

FIXTURES = """
import pytest
from conformance_plugin import ONCE_SLOTS


@pytest.fixture
def slots():
    return ONCE_SLOTS


@pytest.fixture
def isolation():
    return "thread"
"""

TESTS_THAT_HOLD = """
import pytest
from conformance_plugin import cell


@cell("ops.ready.unload")
def test_ops_ready_unload(slots, isolation):
    assert slots in (1, 2, 4)


@cell("two.spare.request")
def test_two_spare_request(slots, isolation):
    assert slots in (2, 4)


@cell("rule.once", "command")
def test_rule_once(slots):
    assert slots == 2
"""


_PROCESS_WIDE = ("cacheprovider", "faulthandler", "logging", "threadexception", "unraisableexception")
OWN_PROCESS_PLUGINS = ["--capture=no", *(f"-pno:{name}" for name in _PROCESS_WIDE)]
"""What of pytest is meant for a process of its own, and off here."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended."""

    code: int
    output: str

    def passed_count(self) -> int:
        found = re.search(r"(\d+) passed", self.output)
        return int(found[1]) if found else 0


class TinySuite:
    """The folder `suite`, its generated `page.md` beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.page = root / "page.md"

    def create(self) -> None:
        """Have cells, and no test module yet."""
        (self.root / "suite").mkdir()
        (self.root / "pytest.ini").write_text(INI)
        (self.root / "conftest.py").write_text(JUDGE)
        self.write("conftest.py", FIXTURES)
        self.write("cells.toml", CELLS)

    def write(self, name: str, text: str) -> None:
        """Write a file of the suite."""
        (self.root / "suite" / name).write_text(textwrap.dedent(text))

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that must be there."""
        file = self.root / "suite" / name
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def run(self, *arguments: str) -> Ran:
        """Run pytest on the suite, or with these arguments, in this process: it is fast, and nothing of it stays."""
        said = io.StringIO()
        with ExitStack() as around:
            around.enter_context(chdir(self.root))
            around.enter_context(redirect_stdout(said))
            around.enter_context(redirect_stderr(said))
            around.enter_context(patch.dict(os.environ, {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}))
            around.callback(self._forget_modules)
            code = pytest.main([*(arguments or ("suite",)), *OWN_PROCESS_PLUGINS])
        return Ran(int(code), said.getvalue())

    def run_shared(self, *arguments: str) -> Ran:
        """The same with two workers, which take the tests in turns."""
        return self.run(*arguments, "-pxdist.plugin", "-n2")

    def _forget_modules(self) -> None:
        """The next tiny suite has modules of the same names."""
        for name, module in list(sys.modules.items()):
            if str(self.root) in str(getattr(module, "__file__", None)):
                del sys.modules[name]


@pytest.fixture
def empty_suite(tmp_path):
    """Cells, and no test module yet."""
    tiny = TinySuite(tmp_path)
    tiny.create()
    return tiny


@pytest.fixture(scope="session")
def written_suite(tmp_path_factory):
    """Every cell has its test, each holds, and the page is written."""
    tiny = TinySuite(tmp_path_factory.mktemp("written"))
    tiny.create()
    tiny.write("test_tiny.py", TESTS_THAT_HOLD)
    ran = tiny.run("suite", "--write-conformance")
    assert ran.code == 0, ran.output
    return tiny


@pytest.fixture
def suite(written_suite, tmp_path):
    """A copy of the written suite, to be spoilt."""
    shutil.copytree(written_suite.root, tmp_path, dirs_exist_ok=True)
    return TinySuite(tmp_path)
