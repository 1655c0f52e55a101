"""How messages, and the audio beside them, lie on a stream of bytes. It knows no message and no socket.

A frame is a header (size of its payload u32, call u32, kind u8, little-endian) and its payload. Frames of one call keep
their order; those of different calls may alternate, so that a large audio holds nobody up. The audio of a message goes
before it: for each sound a `SOUND` frame (rate u32, channels u32) and its samples in `AUDIO` frames, then the message.
"""

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from antiphon.vocabulary.audio import BYTES_PER_SAMPLE, Pcm
from antiphon.vocabulary.spool import pieces_of

PIECE_BYTES = 128 * 1024
"""The largest payload of one frame of audio; whole samples."""
MAX_PAYLOAD_BYTES = 256 * 1024 * 1024
"""No message is as large as this."""

_HEADER = struct.Struct("<IIB")
_SOUND = struct.Struct("<II")
_ROOM_BYTES = 2 * PIECE_BYTES


class Kind(IntEnum):
    """What a payload is."""

    MESSAGE = 0
    SOUND = 1
    AUDIO = 2


class Frame(NamedTuple):
    """One frame; its payload is a view that is good until the next frame is taken."""

    call: int
    kind: int
    payload: memoryview


Buffers: TypeAlias = list[bytes | memoryview]


def batches_of(call: int, message: bytes, sounds: Sequence[Pcm] = ()) -> Iterator[Buffers]:
    """The frames of a message, in batches of about a piece that are to be written whole; samples are not copied."""
    batch: Buffers = []
    size = 0
    for frame in _frames_of(call, message, sounds):
        batch += frame
        size += sum(map(len, frame))
        if size >= PIECE_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _frames_of(call: int, message: bytes, sounds: Sequence[Pcm]) -> Iterator[Buffers]:
    for sound in sounds:
        yield [_HEADER.pack(_SOUND.size, call, Kind.SOUND), _SOUND.pack(sound.rate, sound.channels)]
        for samples in pieces_of(sound, PIECE_BYTES // BYTES_PER_SAMPLE):
            piece = samples.cast("B")
            yield [_HEADER.pack(len(piece), call, Kind.AUDIO), piece]
    yield [_HEADER.pack(len(message), call, Kind.MESSAGE) + message]


def sound_of(payload: memoryview) -> tuple[int, int]:
    """The rate and the channels that a `SOUND` frame announces."""
    rate, channels = _SOUND.unpack(payload)
    return rate, channels


class FrameReader:
    """Cuts what arrives into frames, in a buffer of its own that is read into: see `room`."""

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(_ROOM_BYTES))
        self._start = 0
        self._end = 0

    def room(self) -> memoryview:
        """Where the next bytes are to be put; never empty."""
        return self._buffer[self._end :]

    def frames(self, count: int) -> Iterator[Frame]:
        """The frames that are whole now that `count` more bytes lie in `room`; take all of them.

        Raises ValueError for a frame that is larger than any may be.
        """
        self._end += count
        wanted = 0
        while self._end - self._start >= _HEADER.size:
            size, call, kind = _HEADER.unpack_from(self._buffer, self._start)
            if size > MAX_PAYLOAD_BYTES:
                raise ValueError(f"a frame of {size} bytes")
            wanted = _HEADER.size + size
            if self._end - self._start < wanted:
                break
            payload = self._buffer[self._start + _HEADER.size : self._start + wanted]
            self._start += wanted
            yield Frame(call, kind, payload)
            wanted = 0
        self._make_room(max(wanted, _ROOM_BYTES // 2))

    def _make_room(self, wanted: int) -> None:
        """See to it that a frame of `wanted` bytes fits in from where the present one begins."""
        left = self._end - self._start
        if len(self._buffer) - self._start >= wanted and self._end < len(self._buffer):
            if left == 0:
                self._start = self._end = 0
            return
        rest = bytes(self._buffer[self._start : self._end])
        if len(self._buffer) < wanted or len(self._buffer) > wanted + _ROOM_BYTES:
            self._buffer = memoryview(bytearray(max(wanted, _ROOM_BYTES)))
        self._buffer[:left] = rest
        self._start, self._end = 0, left
