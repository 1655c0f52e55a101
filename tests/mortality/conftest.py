"""Hosts that die and hang, in virtual time."""

from collections.abc import Iterator

import pytest

from antiphon.runtime.wiring import ResidencyLimits
from antiphon.testing.virtual import VirtualLoop
from virtual_stage import VirtualStage


@pytest.fixture
def limits() -> ResidencyLimits:
    """What the stage keeps; a test that wants other limits is parametrized with them."""
    return ResidencyLimits()


@pytest.fixture
def stage(limits: ResidencyLimits) -> Iterator[VirtualStage]:
    loop = VirtualLoop()
    yield VirtualStage(loop, limits)
    loop.close()
