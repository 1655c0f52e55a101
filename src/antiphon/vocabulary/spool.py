"""Where audio grows before it is a `Pcm`: memory at first, an unlinked file once it is large."""

import mmap
from collections.abc import Callable
from typing import BinaryIO, Self

from antiphon.vocabulary.audio import Pcm

SPILL_BYTES = 16 * 1024 * 1024
"""Decoded audio above this size lives in an unlinked file, so that the kernel may page it out."""


def accept_all(size: int) -> None:
    """The default budget: it refuses nothing."""


class PcmWriter:
    """Collects blocks of interleaved float32 bytes and publishes them as one `Pcm`.

    Units: `rate` in frames per second. `on_growth` is told each block's size in bytes before it is kept, and may
    raise to refuse it. Use it as a context manager: leaving it without `finish` drops what was collected.
    """

    def __init__(self, rate: int, channels: int = 1, on_growth: Callable[[int], None] = accept_all) -> None:
        self.rate = rate
        self.channels = channels
        self.size_bytes = 0
        self._on_growth = on_growth
        self._memory = bytearray()
        self._file: BinaryIO | None = None

    def write(self, block: bytes | bytearray | memoryview) -> None:
        """Append a block of whole float32 samples."""
        view = memoryview(block).cast("B")
        self._on_growth(view.nbytes)
        self.size_bytes += view.nbytes
        if self._file is None and self.size_bytes > SPILL_BYTES:
            import tempfile  # slow to import, and most processes never come here

            self._file = tempfile.TemporaryFile(prefix="antiphon-")  # noqa: SIM115 (closed by finish or close)
            self._file.write(self._memory)
            self._memory = bytearray()
        if self._file is None:
            self._memory += view
        else:
            self._file.write(view)

    def finish(self) -> Pcm:
        """Publish what was written; the writer is empty and closed afterwards."""
        if self._file is None:
            data: memoryview = memoryview(bytes(self._memory))
        else:
            self._file.flush()
            data = memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
        self.close()
        return Pcm.from_bytes(data, self.rate, self.channels)

    def close(self) -> None:
        """Drop what was collected; harmless when done twice."""
        self._memory = bytearray()
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
