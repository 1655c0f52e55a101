"""What a server and all its processes hold in memory, read now or watched; it judges nothing.

How much that is, is the proportional set size: what all of them would give back if they ended. Whether it grows is
judged by the part of it that no file backs. Pages of libraries are shared with other programs on the machine, and each
of their ends makes the share of those that stay larger, by tens of megabytes. Units: bytes.
"""

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

_EVERY_S = 0.5
_UNBACKED = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")


def tree_bytes(pid: int) -> int:
    """The memory of a process and of all that it has started; what ends meanwhile counts as nothing."""
    total = 0
    for process in _tree(pid):
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


def unbacked_tree_bytes(pid: int) -> int:
    """The part of that which no file backs: heaps, stacks, arenas and shared memory, also what is swapped out.

    Source: Linux, Documentation/filesystems/proc.rst, smaps_rollup. It is 0 where the kernel does not say.
    """
    total = 0
    for process in _tree(pid):
        try:
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_UNBACKED))
    return total


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


class PeakWatch:
    """Reads the memory of a process tree twice a second for the length of a `with` block."""

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="antiphon-memory", daemon=True)

    def read(self) -> int:
        """Read now, out of turn; it counts for the peak, too."""
        now_bytes = tree_bytes(self._pid)
        self.peak_bytes = max(self.peak_bytes, now_bytes)
        return now_bytes

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            self.read()
