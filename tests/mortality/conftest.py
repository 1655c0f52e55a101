"""Hosts that die and hang, in virtual time."""

from collections.abc import Iterator

import pytest

from antiphon.runtime.wiring import EngineLimits, ResidencyLimits
from antiphon.testing.virtual import VirtualLoop
from virtual_stage import VirtualStage


@pytest.fixture
def limits() -> ResidencyLimits:
    """What the stage keeps; a test that wants other limits is parametrized with them."""
    return ResidencyLimits()


@pytest.fixture
def engine_limits() -> EngineLimits:
    """How long the stage's engines may take; as above."""
    return EngineLimits()


@pytest.fixture
def stage(limits: ResidencyLimits, engine_limits: EngineLimits) -> Iterator[VirtualStage]:
    loop = VirtualLoop()
    yield VirtualStage(loop, limits, engine_limits)
    loop.close()
