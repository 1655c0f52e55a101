"""What the control groups of this process allow: memory, and processor time. It knows neither models nor threads.

Sources: the kernel's cgroup-v2 documentation, its cgroup-v1 memory documentation and that of the CFS bandwidth; for
/proc/self/cgroup, cgroups(7).
"""

from collections.abc import Iterator
from pathlib import Path

_UNLIMITED_BYTES = 2**60
"""What v1 says instead of "max" is above this."""


class ControlGroups:
    """The groups that a process is in: a limit of any of them, or of any above them, is one of the process.

    Where no file tells of a limit there is none. `told` is the process's list of its groups, `mounts` where they are
    mounted.
    """

    def __init__(self, told: Path = Path("/proc/self/cgroup"), mounts: Path = Path("/sys/fs/cgroup")) -> None:
        self._told = told
        self._mounts = mounts

    def memory_limit_bytes(self) -> int | None:
        """The smallest limit."""
        return min((limit for limit, _, _ in self._memory()), default=None)

    def memory_left_bytes(self) -> int | None:
        """The smallest rest of a limit; page cache counts as free, because the kernel gives it up first."""
        return min((max(0, limit - used + cache) for limit, used, cache in self._memory()), default=None)

    def processors(self) -> float | None:
        """How many processors' time may be used, 1.5 for instance; None where all of it may."""
        quotas = [*map(_v2_quota, self._folders("", "unified")), *map(_v1_quota, self._folders("cpu"))]
        return min((quota for quota in quotas if quota is not None), default=None)

    def _memory(self) -> Iterator[tuple[int, int, int]]:
        """Limit, use and page cache of each group that has a limit, in bytes."""
        for folder in self._folders("", "unified"):
            yield from _limited(folder, "memory.max", "memory.current", "inactive_file")
        for folder in self._folders("memory"):
            yield from _limited(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")

    def _folders(self, controller: str, hybrid: str = "") -> Iterator[Path]:
        """The folder of the process's group and of those above it; "" is the hierarchy of v2.

        In a container the group may be named as it is outside, and be mounted as the root.
        """
        mount = self._mounts / controller if controller else self._mounts
        if hybrid and (self._mounts / hybrid).is_dir():  # v2 beside v1
            mount = self._mounts / hybrid
        group = self._group(controller)
        if group is None:
            return
        inner = mount / group.lstrip("/")
        yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(mount) and folder.is_dir())

    def _group(self, controller: str) -> str | None:
        for line in _lines(self._told):
            _, controllers, group = line.split(":", 2)
            if controller in controllers.split(","):
                return group
        return None


def _limited(folder: Path, limit: str, used: str, cache: str) -> Iterator[tuple[int, int, int]]:
    limit_bytes, used_bytes = _number(folder / limit), _number(folder / used)
    if limit_bytes is not None and used_bytes is not None and limit_bytes < _UNLIMITED_BYTES:
        yield limit_bytes, used_bytes, _stat(folder / "memory.stat", cache)


def _v2_quota(folder: Path) -> float | None:
    """A line like "150000 100000" or "max 100000": microseconds of a period."""
    words = " ".join(_lines(folder / "cpu.max")).split()
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0].isdecimal() else None


def _v1_quota(folder: Path) -> float | None:
    """The quota is -1 where there is none."""
    quota_us, period_us = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    return quota_us / period_us if quota_us and period_us else None


def _number(path: Path) -> int | None:
    """A file's one number; None for "max" or "-1", and where there is no such file."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None


def _stat(path: Path, key: str) -> int:
    return next((int(line.split()[1]) for line in _lines(path) if line.split()[0] == key), 0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except OSError:
        return []
