"""Frame headers of MPEG audio and of AAC in ADTS: whether a stream of them begins here; it decodes nothing.

Neither format has a signature, and two bytes of 1s are common in other data. So a header counts only when others of
the same stream follow where it says they do. Tables: ISO 11172-3 2.4.2.3, ISO 13818-3; ADTS: ISO 13818-7 6.2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

_SEARCH_BYTES = 8 * 1024
_WINDOW_BYTES = _SEARCH_BYTES + 16 * 1024
_PROOF_FRAMES = 4

_BITRATES_KBPS = {
    (1, 1): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (1, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (1, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (2, 1): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (2, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (2, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES_HZ = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}


@dataclass(frozen=True, slots=True)
class _Frame:
    """What a header says: its size in bytes, and what all headers of one stream have in common."""

    size: int
    stream: int


def is_mpeg_audio(body: BinaryIO, start: int) -> bool:
    """Whether MPEG audio (MP3, MP2, MP1) begins at `start`, or a little later as in a stream that was cut out."""
    return _begins(body, start, _mpeg_frame, _SEARCH_BYTES)


def is_adts(body: BinaryIO, start: int) -> bool:
    """Whether AAC in ADTS frames begins at `start`."""
    return _begins(body, start, _adts_frame, 1)


def _begins(body: BinaryIO, start: int, parse: Callable[[bytes, int], _Frame | None], search: int) -> bool:
    body.seek(start)
    window = body.read(_WINDOW_BYTES)
    # A file of fewer frames than the proof wants must begin with the first of them.
    if _chain(window, 0, parse, len(window) < _WINDOW_BYTES):
        return True
    offset = window.find(b"\xff", 1, search)
    while offset != -1:
        if _chain(window, offset, parse, ends_early=False):
            return True
        offset = window.find(b"\xff", offset + 1, search)
    return False


def _chain(window: bytes, offset: int, parse: Callable[[bytes, int], _Frame | None], ends_early: bool) -> bool:
    first = parse(window, offset)
    frame = first
    for _ in range(_PROOF_FRAMES - 1):
        if first is None or frame is None or frame.stream != first.stream:
            return False
        offset += frame.size
        if ends_early and (offset >= len(window) or window[offset : offset + 3] == b"TAG"):
            return True
        frame = parse(window, offset)
    return first is not None and frame is not None and frame.stream == first.stream


def _mpeg_frame(window: bytes, offset: int) -> _Frame | None:
    word = int.from_bytes(window[offset : offset + 4], "big")
    version, layer = word >> 19 & 3, 4 - (word >> 17 & 3)
    bitrate, rate, padding = word >> 12 & 15, word >> 10 & 3, word >> 9 & 1
    if word >> 21 != 0x7FF or version == 1 or layer == 4 or not 1 <= bitrate <= 14 or rate == 3:
        return None
    kbps = _BITRATES_KBPS[1 if version == 3 else 2, layer][bitrate - 1]
    rate_hz = _RATES_HZ[version][rate]
    if layer == 1:
        size = (12_000 * kbps // rate_hz + padding) * 4
    else:
        size = (72_000 if layer == 3 and version != 3 else 144_000) * kbps // rate_hz + padding
    return _Frame(size, word & 0xFFFE0C00)


def _adts_frame(window: bytes, offset: int) -> _Frame | None:
    word = int.from_bytes(window[offset : offset + 7], "big")
    size = word >> 13 & 0x1FFF
    if word >> 44 != 0xFFF or word >> 41 & 3 or word >> 34 & 15 > 12 or size < 7:
        return None
    return _Frame(size, word >> 34)
