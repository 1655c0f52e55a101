"""The runtime's laws hold for both runtimes, and for the parallel one at 1, 2 and 4 slots."""

from pathlib import Path

import pytest

from antiphon.runtime.parallel import ParallelServerState
from antiphon.runtime.serial import ServerState
from antiphon.runtime.wiring import ResidencyLimits
from antiphon.testing import ControlledCheckpoint
from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call  # noqa: PLC0414 (a hook for pytest to find)
from runtime_stage import Kind, Stage

SERIAL = Kind(ServerState, 1)
PARALLEL = [Kind(ParallelServerState, slots) for slots in (1, 2, 4)]


@pytest.fixture
def limits() -> ResidencyLimits:
    """What the stage keeps; a test that wants other limits is parametrized with them."""
    return ResidencyLimits()


@pytest.fixture(params=[SERIAL, *PARALLEL], ids=str)
def stage(request: pytest.FixtureRequest, tmp_path: Path, limits: ResidencyLimits) -> Stage:
    return Stage(tmp_path, request.param, limits)


@pytest.fixture(params=PARALLEL, ids=str)
def parallel(request: pytest.FixtureRequest, tmp_path: Path, limits: ResidencyLimits) -> Stage:
    return Stage(tmp_path, request.param, limits)


@pytest.fixture(params=PARALLEL[1:], ids=str)
def wide(request: pytest.FixtureRequest, tmp_path: Path, limits: ResidencyLimits) -> Stage:
    """More than one slot."""
    return Stage(tmp_path, request.param, limits)


@pytest.fixture
def serial(tmp_path: Path, limits: ResidencyLimits) -> Stage:
    return Stage(tmp_path, SERIAL, limits)


@pytest.fixture
def checkpoint(tmp_path: Path) -> ControlledCheckpoint:
    return ControlledCheckpoint(tmp_path / "alone")
