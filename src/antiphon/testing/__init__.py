"""Test doubles that ship with the product, for our tests and for those of other people's adapters.

The doubles need the standard library only. `antiphon.testing.adapter_suite` needs pytest too and is not imported here.
"""

from antiphon.testing.checkpoint import ControlledCheckpoint
from antiphon.testing.clock import ClockStatistics, ManualClock
from antiphon.testing.controlled import ControlledAdapter
from antiphon.testing.events import Event

__all__ = ["ClockStatistics", "ControlledAdapter", "ControlledCheckpoint", "Event", "ManualClock"]
