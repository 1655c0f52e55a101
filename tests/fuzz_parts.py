"""Where the parts of an audio file lie, as far as a fuzzer has to know: extents and size fields. It decodes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Order: TypeAlias = Literal["little", "big"]

_MP4_NESTING = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"dinf", b"udta", b"moof", b"traf", b"mvex"}
_EBML_NESTING = {0x1A45DFA3, 0x18538067, 0x1F43B675, 0x1654AE6B, 0xAE, 0xE1, 0x1549A966, 0xA0, 0x114D9B74, 0x4DBB}


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk, box, element, page, block or frame: `start` to `end`, its content from `body` on.

    Its size stands at `size_at` in `size_bytes` bytes, of which there are none where it is not said in whole bytes.
    """

    start: int
    body: int
    end: int
    size_at: int = 0
    size_bytes: int = 0
    order: Order = "big"


def parts_of(data: bytes) -> list[Part]:
    """The parts of a sound file of any accepted container, nested ones too; none of what is not known."""
    match data[:4]:
        case b"RIFF" | b"RF64":
            return list(_chunks(data, 12, 4, "little"))
        case b"FORM":
            return list(_chunks(data, 12, 4, "big"))
        case b"riff":
            return list(_wave64(data))
        case b"caff":
            return list(_chunks(data, 8, 8, "big"))
        case b"fLaC":
            return list(_flac(data))
        case b"OggS":
            return list(_frames(data, b"OggS", 27))
        case b"\x1a\x45\xdf\xa3":
            return list(_ebml(data, 0, len(data)))
        case b".snd":
            return [Part(0, 24, len(data), 4, 4), Part(0, 24, len(data), 8, 4)]
        case _ if data[4:8] in (b"ftyp", b"moov", b"mdat"):
            return list(_boxes(data, 0, len(data)))
        case _:
            start = max(data.find(b"\xff"), 0)
            return list(_frames(data, data[start : start + 2], 4))


def _chunks(data: bytes, at: int, size_bytes: int, order: Order) -> Iterator[Part]:
    while at + 4 + size_bytes <= len(data):
        body = at + 4 + size_bytes
        end = min(body + int.from_bytes(data[at + 4 : body], order), len(data))
        yield Part(at, body, end, at + 4, size_bytes, order)
        at = end + (end % 2 if size_bytes == 4 else 0)


def _wave64(data: bytes) -> Iterator[Part]:
    at = 40
    while at + 24 <= len(data):
        end = min(at + max(int.from_bytes(data[at + 16 : at + 24], "little"), 24), len(data))
        yield Part(at, at + 24, end, at + 16, 8, "little")
        at = end + -end % 8


def _flac(data: bytes) -> Iterator[Part]:
    at, is_last = 4, False
    while not is_last and at + 4 <= len(data):
        is_last = bool(data[at] & 0x80)
        end = min(at + 4 + int.from_bytes(data[at + 1 : at + 4], "big"), len(data))
        yield Part(at, at + 4, end, at + 1, 3)
        at = end
    yield from _frames(data, b"\xff\xf8", 4)


def _frames(data: bytes, sync: bytes, header_bytes: int) -> Iterator[Part]:
    """What begins with the same bytes each time."""
    at = data.find(sync) if sync else -1
    while at != -1:
        following = data.find(sync, at + len(sync))
        end = len(data) if following == -1 else following
        yield Part(at, min(at + header_bytes, end), end)
        at = following


def _boxes(data: bytes, at: int, end: int) -> Iterator[Part]:
    while at + 8 <= end:
        size = int.from_bytes(data[at : at + 4], "big")
        box_end = min(at + size, end) if size >= 8 else end
        yield Part(at, at + 8, box_end, at, 4)
        if data[at + 4 : at + 8] in _MP4_NESTING:
            yield from _boxes(data, at + 8, box_end)
        at = box_end


def _ebml(data: bytes, at: int, end: int) -> Iterator[Part]:
    while at + 2 <= end:
        name_bytes = _vint_bytes(data[at])
        size_at = at + name_bytes
        size_bytes = _vint_bytes(data[size_at]) if size_at < end else 1
        body = size_at + size_bytes
        unknown = (1 << 7 * size_bytes) - 1
        size = int.from_bytes(data[size_at:body], "big") & unknown
        element_end = end if size == unknown else min(body + size, end)
        yield Part(at, min(body, end), element_end, size_at, size_bytes)
        if int.from_bytes(data[at:size_at], "big") in _EBML_NESTING:
            yield from _ebml(data, body, element_end)
        at = element_end


def _vint_bytes(first: int) -> int:
    """How many bytes a number of EBML has, by its first one (RFC 8794, 4)."""
    return 9 - max(first, 1).bit_length()
