"""What a run of any tests has: the judge of the conformance suite, and who runs what where several processes share it.

Both belong to the process that collects no test itself, which reads only the `conftest.py` above them all.
"""

import os
import signal
import sys
from pathlib import Path

import pytest

from conformance_cells import ISOLATIONS, read_cells
from conformance_plugin import ConformanceSuite, add_options

HERE = Path(__file__).parent
CONFORMANCE = HERE / "conformance"
PAGE = HERE.parent / "docs" / "conformance.md"
COMMAND = "pytest --collect-only -q tests/conformance --write-conformance"

# Tests start hundreds of processes. Each would compile all that it imports, which takes longer than to import it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# What a shell starts in the background ignores Ctrl-C, and so does what that starts; tests send it to their processes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# They also make thousands of HTTP clients. Each would read all authorities that this machine trusts, which takes 30 ms.
# No test needs one of those: what speaks TLS here is told whom to trust.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull


def pytest_addoption(parser):
    add_options(parser)
    parser.addoption("--write-screenshots", action="store_true", help="write the pictures that the README shows")


def pytest_configure(config):
    cells = read_cells(CONFORMANCE / "cells.toml")
    suite = ConformanceSuite(CONFORMANCE, PAGE, cells, tuple(ISOLATIONS), COMMAND)
    config.pluginmanager.register(suite, "conformance")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from shared_suite import SharedSuite

    return SharedSuite(config, log)
