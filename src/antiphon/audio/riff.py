"""The structure of a WAV file: where its samples lie and what they are; it converts none.

Facts: RIFF and WAVE (Microsoft/IBM, 1991; mmreg.h), WAVEFORMATEXTENSIBLE (Microsoft), RF64 and BW64 (EBU Tech 3306,
ITU-R BS.2088), Wave64 (Sony). No number of a header sizes an allocation or a loop: sizes are held against the file's
own, chunks are counted.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from antiphon.audio.containers import WAVE64, Container, damaged
from antiphon.audio.lengths import MAX_CHUNKS, is_chunks_to_the_end

PCM, FLOAT, ALAW, MULAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_FORMAT_BYTES = 40
_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


@dataclass(frozen=True, slots=True)
class WavFormat:
    """The `fmt ` chunk, with the EXTENSIBLE tag resolved.

    Units: `bits` of a sample that count, `sample_bytes` that it takes in the file; bits are left-justified in them.
    """

    tag: int
    channels: int
    rate: int
    bits: int
    sample_bytes: int


@dataclass(frozen=True, slots=True)
class WavLayout:
    """The format and the extent of the samples in bytes, never beyond the end of the file."""

    format: WavFormat
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class _Chunk:
    id: bytes
    start: int
    size: int


def read_layout(body: BinaryIO, container: Container) -> WavLayout:
    """Find the format and the samples of a RIFF, RF64, BW64 or Wave64 file; raises InvalidRequest."""
    file_size = body.seek(0, 2)
    wav_format: WavFormat | None = None
    data: _Chunk | None = None
    sizes64: dict[bytes, int] = {}
    chunks = _wave64_chunks(body, file_size) if container is WAVE64 else _riff_chunks(body, file_size, sizes64)
    for chunk in chunks:
        if chunk.id == b"fmt " and wav_format is None:
            wav_format = _read_format(body, chunk, file_size, container)
        elif chunk.id == b"data" and data is None:
            data = chunk
        if wav_format is not None and data is not None:
            present = file_size - data.start
            size = min(data.size, present) if _tells_its_size(body, data, file_size) else present
            return WavLayout(wav_format, data.start, size)
    raise damaged(container, "it has no samples" if data is None else "it does not say what its samples are")


def _riff_chunks(body: BinaryIO, file_size: int, sizes64: dict[bytes, int]) -> Iterator[_Chunk]:
    """Chunks of a RIFF file; `sizes64` collects what RF64's `ds64` says of chunks with the size 0xFFFFFFFF."""
    position = 12
    for _ in range(MAX_CHUNKS):
        body.seek(position)
        header = body.read(8)
        if len(header) < 8:
            return
        name, size = struct.unpack("<4sI", header)
        start = position + 8
        if size == 0xFFFFFFFF:
            size = sizes64.get(name, size)
        if name == b"ds64":
            sizes64.update(_read_ds64(body.read(16)))
        yield _Chunk(name, start, size)
        position = start + size
        if position >= file_size:  # by as much as 64 bits can say: no file can be asked for such a place
            return
        if size % 2:
            # A chunk is padded to an even size with a zero byte; some writers forget, and a name follows at once.
            body.seek(position)
            position += body.read(1) == b"\0"


def _read_ds64(head: bytes) -> dict[bytes, int]:
    return {b"data": int.from_bytes(head[8:16], "little")} if len(head) == 16 else {}


def _wave64_chunks(body: BinaryIO, file_size: int) -> Iterator[_Chunk]:
    """Chunks of a Wave64 file: named by GUIDs, sizes of 64 bits that count the header, aligned to 8 bytes."""
    position = 40
    for _ in range(MAX_CHUNKS):
        if position >= file_size:
            return
        body.seek(position)
        header = body.read(24)
        if len(header) < 24:
            return
        size = int.from_bytes(header[16:], "little") - 24
        if size < 0 and header[:4] == b"data":
            size = 0  # never filled in
        if size < 0:
            raise damaged(WAVE64, "a chunk is smaller than its own header")
        yield _Chunk(header[:4], position + 24, size)
        position += 24 + size + -size % 8


def _tells_its_size(body: BinaryIO, data: _Chunk, file_size: int) -> bool:
    """Whether the size of the data chunk is meant: a recorder that never came back to it leaves a placeholder.

    Placeholders larger than the file end with it anyway. What follows a 0 tells, not the outer size: some recorders
    fill in only that.
    """
    return bool(data.size) or is_chunks_to_the_end(body, data.start, file_size, "<4sI")


def _read_format(body: BinaryIO, chunk: _Chunk, file_size: int, container: Container) -> WavFormat:
    if chunk.size < 16 or chunk.size > file_size - chunk.start:
        raise damaged(container, "its format chunk has an impossible size")
    body.seek(chunk.start)
    raw = body.read(min(chunk.size, _FORMAT_BYTES))
    tag, channels, rate, _, align, bits = struct.unpack("<HHIIHH", raw[:16])
    container_bits = bits
    if tag == EXTENSIBLE:
        if len(raw) < _FORMAT_BYTES or raw[26:40] != _GUID_TAIL:
            raise damaged(container, "its extensible format is none that is known")
        valid_bits, tag = struct.unpack("<H", raw[18:20])[0], struct.unpack("<H", raw[24:26])[0]
        bits = valid_bits if 0 < valid_bits <= bits else bits
    sample_bytes = _sample_bytes(channels, align, container_bits, container)
    return WavFormat(tag, channels, rate, bits, sample_bytes)


def _sample_bytes(channels: int, align: int, container_bits: int, container: Container) -> int:
    """Bytes that one sample takes: a frame's share, or the bits rounded up where a writer left the frame size 0."""
    if channels and align:
        if align % channels or align // channels * 8 < container_bits:
            raise damaged(container, "its frame size does not fit its channels")
        return align // channels
    return -(-container_bits // 8)
