"""When a model whose worker keeps dying may be loaded again: it counts and is told the time, and kills nothing."""

import math
from dataclasses import dataclass

CRASHES_BEFORE_BACK_OFF = 3
"""So many crashes without a success in between make the next load wait; fewer never delay one."""
FIRST_BACK_OFF_S = 1.0
LONGEST_BACK_OFF_S = 60.0
"""The wait doubles with each further crash, up to this. Units: seconds."""


@dataclass(frozen=True, slots=True)
class CrashRecord:
    """The crashes of one model since its last success. Units: `not_before` in monotonic seconds."""

    crashes: int = 0
    not_before: float = -math.inf

    def crashed(self, now: float) -> "CrashRecord":
        """The record after one more crash; a success starts a new one."""
        crashes = self.crashes + 1
        return CrashRecord(crashes, now + back_off_s(crashes))

    def wait_s(self, now: float) -> float:
        """How long no load may begin yet, in seconds."""
        return max(0.0, self.not_before - now)


def back_off_s(crashes: int) -> float:
    """How long to wait after so many crashes in a row, in seconds."""
    excess = crashes - CRASHES_BEFORE_BACK_OFF
    if excess < 0:
        return 0.0
    longest = math.ceil(math.log2(LONGEST_BACK_OFF_S / FIRST_BACK_OFF_S))
    return min(LONGEST_BACK_OFF_S, FIRST_BACK_OFF_S * 2.0 ** min(excess, longest))
