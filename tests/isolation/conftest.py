"""Coroutine tests here run on a loop of their own; one server of isolated engines serves all tests that need them."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call  # noqa: PLC0414 (a hook for pytest to find)
from engine_server import EngineServer
from installed_models import installed_model
from server_process import HANG_GUARD_S, running_server, started_alone


@pytest.fixture(scope="session")
def engines(tmp_path_factory):
    """`piper` and `whisper`, the smallest there is, each in a process."""
    folder = tmp_path_factory.mktemp("engines")
    (folder / "root").mkdir()
    models = [installed_model("piper-en-joe", "piper"), installed_model("whisper-tiny-en", "whisper")]
    config = {"models": models, "isolation": "process", "lazy_load": True, "models_root": "root", "ui_management": True}
    with (
        running_server(folder, config, start=started_alone) as process,
        httpx.Client(base_url=process.url, timeout=HANG_GUARD_S) as client,
        ThreadPoolExecutor(4) as threads,
    ):
        yield EngineServer(process, client, threads)
