"""Where audio grows before it is a `Pcm`: memory at first, an unlinked file once it is large; and how it is read."""

import mmap
from collections.abc import Callable, Iterator
from typing import BinaryIO, Self

from antiphon.vocabulary.audio import BYTES_PER_SAMPLE, Pcm

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


def pieces_of(pcm: Pcm, samples: int) -> "Iterator[memoryview[float]]":
    """A sound in order, so many samples at a time, without a copy; the last piece is what is left.

    However long it is, a process that reads it so never has more of a file in its memory than the piece at hand.
    """
    for start in range(0, len(pcm.samples), samples):
        yield pcm.samples[start : start + samples]
        let_go(pcm, start, start + samples)


def let_go(pcm: Pcm, start: int, end: int) -> None:
    """Say that these samples were read: where they lie in a file, their pages leave the process, and come back if read.

    Source: madvise(2), MADV_DONTNEED, which loses nothing of a shared mapping. For the view that `finish` published:
    of another it lets go of other pages, which costs time and no more.
    """
    source = pcm.samples.obj
    if isinstance(source, mmap.mmap):
        first = start * BYTES_PER_SAMPLE // mmap.PAGESIZE * mmap.PAGESIZE
        last = min(end * BYTES_PER_SAMPLE, len(source))
        if first < last:
            source.madvise(mmap.MADV_DONTNEED, first, last - first)
