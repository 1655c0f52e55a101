"""The memory that is really there: the machine's, or less where a control group allows less."""

from pathlib import Path

import psutil

from antiphon.runtime.control_groups import ControlGroups
from antiphon.runtime.hosts.crew import Crew

_ROLLUP = Path("/proc/self/smaps_rollup")


class SystemMemory:
    """`MemoryMeter` over psutil and the control group's limit, if there is one."""

    def available_bytes(self) -> int:
        """The smaller of the machine's available memory and what the control group leaves."""
        available = int(psutil.virtual_memory().available)
        left = ControlGroups().memory_left_bytes()
        return available if left is None else min(available, left)

    async def resident_bytes(self) -> int | None:
        """The proportional set size of this process, read in a thread: the kernel walks every page for it."""
        crew = Crew("antiphon-meter")
        try:
            return await crew.call(_pss_bytes)
        finally:
            crew.stop()


def _pss_bytes() -> int | None:
    """Source: the kernel's Documentation/ABI/testing/procfs-smaps_rollup; a line is "Pss:   1234 kB"."""
    try:
        lines = _ROLLUP.read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), None)
