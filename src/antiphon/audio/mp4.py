"""What an MP4 file claims about its samples, held against its size before FFmpeg believes it; it decodes nothing.

FFmpeg builds an entry of memory for each sample that a `stsz` or `trun` box counts, and neither needs bytes for that:
8 kB can ask for gigabytes. It reads these boxes wherever they stand, so they are looked for by name in all that is no
media data. Box layouts: ISO 14496-12, 4.2, 8.7.3 and 8.8.8; `cmov` (a compressed header) is QuickTime's.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from antiphon.audio.containers import MP4, damaged

_BOXES = re.compile(b"stsz|trun|cmov")
_BLOCK_BYTES = 1024 * 1024
_FIELDS_BYTES = 16
_MAX_TOP_BOXES = 1_000_000


def check_sample_counts(body: BinaryIO) -> None:
    """Raise InvalidRequest when the samples that `body` counts, a byte each at least, would not fit into it."""
    file_size = body.seek(0, 2)
    claimed = 0
    for start, end in _outside_media(body, file_size):
        for box in _counting_boxes(body, start, end):
            claimed += _samples(box)
            if claimed > file_size:
                raise damaged(MP4, "it counts more samples than it has bytes")


def _samples(box: bytes) -> int:
    """How many samples a box counts; `box` begins with its name."""
    match box[:4]:
        case b"stsz":
            return int.from_bytes(box[12:16], "big")
        case b"trun":
            return int.from_bytes(box[8:12], "big")
        case _:
            raise damaged(MP4, "its header is compressed")


def _counting_boxes(body: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    for position in range(start, end, _BLOCK_BYTES):
        body.seek(position)
        block = body.read(min(_BLOCK_BYTES, end - position) + _FIELDS_BYTES)
        for found in _BOXES.finditer(block):
            if found.start() < _BLOCK_BYTES:
                yield block[found.start() : found.start() + _FIELDS_BYTES]


def _outside_media(body: BinaryIO, file_size: int) -> Iterator[tuple[int, int]]:
    """The extents of the top boxes other than `mdat`, joined where they touch."""
    start = position = 0
    for _ in range(_MAX_TOP_BOXES):
        if position >= file_size:
            break
        body.seek(position)
        header = body.read(16)
        size = int.from_bytes(header[:4], "big")
        if size == 1:
            size = int.from_bytes(header[8:], "big")
        elif size == 0:
            size = file_size - position
        if size < 8:
            break
        if header[4:8] == b"mdat":
            yield start, position
            start = position + size
        position += size
    if start < file_size:
        yield start, file_size
