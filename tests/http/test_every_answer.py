"""Schemathesis calls every route, with keys and without: each answer is one that the OpenAPI document declares.

A longer run by hand: `EXAMPLES=40 pytest tests/http/test_every_answer.py`.
"""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from isolated_server import isolated_server

API_KEY, ADMIN_KEY = "an-api-key", "an-admin-key"
EXAMPLES = os.environ.get("EXAMPLES", "3")
CHECKS = (
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "ignored_auth",
    "no_fault_of_our_own",
)
TESTS = Path(__file__).parents[1]


@contextmanager
def server_of_each_kind(folder, **config):
    """A server of controlled engines in processes: one that speaks, one that listens, one that aligns."""
    tasks = {"tts": "tts", "asr": "asr", "align": "align"}
    models = [{"id": name, "family": "controlled", "path": name, "task": task} for name, task in tasks.items()]
    for name in tasks:
        (folder / name).mkdir()
    with isolated_server(folder, models=models, **config) as server:
        yield server


@pytest.fixture(scope="module")
def open_server(tmp_path_factory):
    """A server that asks nobody for a key."""
    with server_of_each_kind(tmp_path_factory.mktemp("open")) as server:
        yield server


@pytest.fixture(scope="module")
def guarded_server(tmp_path_factory):
    """The same with keys of both kinds."""
    keys = {"api_keys": [API_KEY], "admin_keys": [ADMIN_KEY]}
    with server_of_each_kind(tmp_path_factory.mktemp("guarded"), **keys) as server:
        yield server


def found_by_schemathesis(server, folder, phases, key=None):
    """Run it; what it says where it finds something, else nothing."""
    flags = ["--phases", phases, "--max-examples", EXAMPLES, "--generation-deterministic", "--continue-on-failure"]
    flags += ["--checks", ",".join(CHECKS), "--suppress-health-check", "all", "--warnings", "off", "--no-color"]
    flags += [] if key is None else ["--header", f"Authorization: Bearer {key}"]
    done = subprocess.run(
        [Path(sys.executable).with_name("schemathesis"), "run", f"{server.process.url}/openapi.json", *flags],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(TESTS)},
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_every_answer_of_an_open_server_is_declared(open_server, tmp_path):
    assert (
        found_by_schemathesis(open_server, tmp_path, "coverage,fuzzing" if "EXAMPLES" in os.environ else "coverage")
        == ""
    )


def test_every_answer_of_a_server_with_keys_is_declared(guarded_server, tmp_path):
    assert found_by_schemathesis(guarded_server, tmp_path, "fuzzing", ADMIN_KEY) == ""


def test_every_answer_to_an_ordinary_key_is_declared(guarded_server):
    document = guarded_server.client.get("/openapi.json", headers={"authorization": f"Bearer {API_KEY}"}).json()
    operations = [(path, method, it) for path, methods in document["paths"].items() for method, it in methods.items()]

    for path, method, operation in operations:
        for key in (API_KEY, "wrong"):
            headers = {"authorization": f"Bearer {key}"}
            with guarded_server.client.stream(method, path, headers=headers) as answer:  # one of them has no end
                status = answer.status_code
            assert str(status) in operation["responses"], (method, path, key)
            wants_an_admin = operation["security"] == [{"AdminKey": []}]
            assert (status == 403) == (wants_an_admin and key == API_KEY), (method, path)
            assert (status == 401) == (bool(operation["security"]) and key == "wrong"), (method, path)
