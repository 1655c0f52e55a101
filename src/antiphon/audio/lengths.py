"""Declared lengths that a recorder never filled in: it writes them last, and some stop before they get there.

A length of 0 is believed only if whole chunks, or nothing, follow up to the file's end; otherwise the samples go on to
that end, as FFmpeg has it for WAV. AIFF, AU and CAF are read by FFmpeg, which refuses some of these files, and takes
too large a length for the duration of others. It is given the file with such fields corrected. No length sizes an
allocation or a loop.

Formats: Audio Interchange File Format 1.3 (Apple, 1989), AIFF-C draft (Apple, 1991), Core Audio Format 1.0 (Apple),
.au (Sun).
"""

import struct
from collections.abc import Iterator
from typing import BinaryIO, TypeAlias

from antiphon.audio.containers import AIFF, AU, CAF, Container

MAX_CHUNKS = 4096
"""More chunks than any program writes before the samples; it bounds the walk over a forged file."""

Corrections: TypeAlias = dict[int, bytes]
"""Bytes that stand for those of the file, by their position."""

_MOST_FRAMES_PER_BYTE = 2
"""No codec of an AIFF file that is accepted packs more frames into a byte: IMA ADPCM has 64 in 34."""


def is_chunks_to_the_end(body: BinaryIO, position: int, end: int, header: str) -> bool:
    """Whether whole chunks lie between these positions, or nothing. `header` is the struct of a chunk's id and size."""
    for _ in range(MAX_CHUNKS):
        if end - position <= 1:  # the last chunk may have a pad byte
            return True
        body.seek(position)
        raw = body.read(struct.calcsize(header))
        if len(raw) < struct.calcsize(header):
            return False
        name, size = struct.unpack(header, raw)
        if not all(0x20 <= byte < 0x7F for byte in name):
            return False
        position += len(raw) + size
        if position > end:
            return False
        position += size % 2
    return False


def corrections(body: BinaryIO, container: Container) -> Corrections:
    """What to read in the place of lengths that cannot be meant; `body` is left at any position."""
    corrections_of = {AIFF: _aiff_corrections, AU: _au_corrections, CAF: _caf_corrections}.get(container)
    return corrections_of(body) if corrections_of is not None else {}


def _aiff_corrections(body: BinaryIO) -> Corrections:
    end = body.seek(0, 2)
    corrected: Corrections = {4: _size_field(end - 8)}  # of the whole file
    frames_at, data_bytes = None, 0
    for name, start, size in _aiff_chunks(body, end):
        if name == b"COMM":
            frames_at = start + 2
        elif name == b"SSND":
            # Its own 8 bytes of offset and block size come before the samples.
            is_unset = size <= 8 and not is_chunks_to_the_end(body, start + size, end, ">4sI")
            data_bytes = end - start if is_unset else min(size, end - start)
            corrected[start - 4] = _size_field(data_bytes)
    if frames_at is not None:
        body.seek(frames_at)
        frames = int.from_bytes(body.read(4), "big")
        if frames > data_bytes * _MOST_FRAMES_PER_BYTE:
            corrected[frames_at] = bytes(4)  # FFmpeg counts them itself
    return corrected


def _size_field(size: int) -> bytes:
    return min(size, 0xFFFFFFFF).to_bytes(4, "big")


def _aiff_chunks(body: BinaryIO, end: int) -> Iterator[tuple[bytes, int, int]]:
    """The id, the start and the declared size of each chunk; the samples may be the last one that is found."""
    position = 12
    for _ in range(MAX_CHUNKS):
        body.seek(position)
        raw = body.read(8)
        if len(raw) < 8:
            return
        name, size = struct.unpack(">4sI", raw)
        yield name, position + 8, size
        position += 8 + size + size % 2
        if position >= end:
            return


def _au_corrections(body: BinaryIO) -> Corrections:
    end = body.seek(0, 2)
    body.seek(4)
    raw = body.read(8)
    if len(raw) < 8:
        return {}
    start, size = struct.unpack(">II", raw)
    # All ones is the format's own way to say that the size is not known.
    return {8: _size_field(0xFFFFFFFF)} if size > end - start else {}


def _caf_corrections(body: BinaryIO) -> Corrections:
    end, position = body.seek(0, 2), 8
    for _ in range(MAX_CHUNKS):
        body.seek(position)
        raw = body.read(12)
        if len(raw) < 12:
            return {}
        name, size = struct.unpack(">4sq", raw)
        start = position + 12
        if name == b"data":
            # -1 is the format's own way to say that the samples go on to the end.
            return {position + 4: struct.pack(">q", -1)} if size > end - start else {}
        position = start + size
        if size < 0 or position >= end:
            return {}
    return {}
