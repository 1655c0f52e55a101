"""The memory that is really there: the machine's, or less where a control group allows less."""

from pathlib import Path

import psutil

from antiphon.runtime.hosts.crew import Crew

_V2 = Path("/sys/fs/cgroup")
_V1 = Path("/sys/fs/cgroup/memory")
_ROLLUP = Path("/proc/self/smaps_rollup")


class SystemMemory:
    """`MemoryMeter` over psutil and the control group's limit, if there is one."""

    def available_bytes(self) -> int:
        """The smaller of the machine's available memory and what the control group leaves."""
        available = int(psutil.virtual_memory().available)
        left = _cgroup_left_bytes()
        return available if left is None else min(available, left)

    async def resident_bytes(self) -> int | None:
        """The proportional set size of this process, read in a thread: the kernel walks every page for it."""
        crew = Crew("antiphon-meter")
        try:
            return await crew.call(_pss_bytes)
        finally:
            crew.stop()


def _cgroup_left_bytes() -> int | None:
    """The control group's limit less its use; page cache counts as free, because the kernel gives it up first.

    Source: the kernel's cgroup-v2 and cgroup-v1 memory documentation.
    """
    limit, used = _number(_V2 / "memory.max"), _number(_V2 / "memory.current")
    stat, cache_key = _V2 / "memory.stat", "inactive_file"
    if limit is None or used is None:
        limit, used = _number(_V1 / "memory.limit_in_bytes"), _number(_V1 / "memory.usage_in_bytes")
        stat, cache_key = _V1 / "memory.stat", "total_inactive_file"
    if limit is None or used is None:
        return None
    return max(0, limit - used + _stat(stat, cache_key))


def _pss_bytes() -> int | None:
    """Source: the kernel's Documentation/ABI/testing/procfs-smaps_rollup; a line is "Pss:   1234 kB"."""
    try:
        lines = _ROLLUP.read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), None)


def _number(path: Path) -> int | None:
    """A file's one number; None for "max", and where there is no such file."""
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _stat(path: Path, key: str) -> int:
    try:
        lines = path.read_text("ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[0] == key), 0)
