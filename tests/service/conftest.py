"""Services over a runtime of one slot, so that a single request fills a model."""

import gc
import io
import wave
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from antiphon.runtime.parallel import ParallelServerState
from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call  # noqa: PLC0414 (a hook for pytest to find)
from runtime_stage import Kind, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, Kind(ParallelServerState, 1))


@pytest.fixture
def wav() -> Callable[[int], BinaryIO]:
    """Makes a silent file of so many frames, 8 kHz mono."""

    def make(frames: int = 4000) -> BinaryIO:
        body = io.BytesIO()
        with wave.open(body, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(bytes(2 * frames))
        body.seek(0)
        return body

    return make


@pytest.fixture(autouse=True)
def collected():
    """What a test leaves to the cycle collector is complained about in that test."""
    yield
    gc.collect()
