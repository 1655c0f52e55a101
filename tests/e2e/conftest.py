"""One server of real engines for all tests that need them, and speech of our own making."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest

from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call  # noqa: PLC0414 (a hook for pytest to find)
from engine_server import EngineServer
from installed_models import installed_model
from server_process import HANG_GUARD_S, running_server, started_alone

ALIASES = {"piper": ["tts-1"], "multilingual": ["whisper-1"]}
PACKAGES = {
    "piper": "piper-en-joe",
    "whisper": "whisper-tiny-en",
    "multilingual": "whisper-base",
    "turns": "speaker-turns",
}


@pytest.fixture(scope="session")
def engines(tmp_path_factory):
    """`piper`, `whisper` (English alone), `multilingual` and `turns`, two slots each, one thread a call.

    Wyoming is at `w.sock`.
    """
    models = [
        installed_model(package, name, slots=2, lazy=True, aliases=ALIASES.get(name, []))
        for name, package in PACKAGES.items()
    ]
    folder = tmp_path_factory.mktemp("engines")
    listeners = [{"kind": "wyoming", "uri": f"unix://{folder}/w.sock"}]
    with (
        running_server(
            folder, {"models": models, "listeners": listeners}, "--parallel-jobs", start=started_alone
        ) as process,
        httpx.Client(base_url=process.url, timeout=2 * HANG_GUARD_S) as client,
        ThreadPoolExecutor(16) as threads,
    ):
        yield EngineServer(process, client, threads)


@pytest.fixture(scope="session")
def openai_client(engines):
    """The official client, which tries nothing twice."""
    with openai.OpenAI(
        base_url=f"{engines.process.url}/v1", api_key="any", max_retries=0, timeout=2 * HANG_GUARD_S
    ) as it:
        yield it


@pytest.fixture(scope="session")
def base(engines):
    """A spoken sentence as a 16-bit mono WAV file, at the voice's rate."""
    answer = engines.speak(engines.SENTENCE)
    assert answer.status_code == 200, answer.text
    return answer.content
