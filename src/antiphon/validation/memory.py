"""What a server and all its processes hold in memory, read now or watched; it judges nothing.

The number is the proportional set size: what all of them would give back if they ended. Units: bytes.
"""

import threading
from types import TracebackType
from typing import Self

import psutil

_EVERY_S = 0.5


def tree_bytes(pid: int) -> int:
    """The memory of a process and of all that it has started; what ends meanwhile counts as nothing."""
    total = 0
    try:
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


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
