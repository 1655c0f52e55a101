"""Which container a file is, by its first bytes alone; it decodes nothing and never looks at a name or a media type.

Signatures are those of the formats' own documents: RIFF/RF64 (EBU Tech 3306), Sony Wave64, FLAC (RFC 9639), Ogg
(RFC 3533), EBML (RFC 8794), ISO BMFF (ISO 14496-12), AIFF (Apple, 1989), Sun .snd, CAF (Apple), ID3v2 (id3.org).
"""

from dataclasses import dataclass
from typing import BinaryIO

from antiphon.audio.limits import FIELD
from antiphon.audio.mpeg import is_adts, is_mpeg_audio
from antiphon.vocabulary.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Container:
    """An accepted container: its name for people, and FFmpeg's name of the one demuxer that may read it."""

    name: str
    demuxer: str


WAV = Container("wav", "wav")
WAVE64 = Container("w64", "w64")
FLAC = Container("flac", "flac")
OGG = Container("ogg", "ogg")
MP3 = Container("mp3", "mp3")
MP4 = Container("mp4/m4a", "mov")
WEBM = Container("webm/mkv", "matroska")
ADTS = Container("aac", "aac")
AIFF = Container("aiff", "aiff")
AU = Container("au", "au")
CAF = Container("caf", "caf")

ACCEPTED = (WAV, WAVE64, FLAC, OGG, MP3, MP4, WEBM, ADTS, AIFF, AU, CAF)
ACCEPTED_NAMES = ", ".join(container.name for container in ACCEPTED)

_HEAD_BYTES = 64
_MAX_TAGS = 4
WAVE64_RIFF = bytes.fromhex("726966662e91cf11a5d628db04c10000")
WAVE64_WAVE = bytes.fromhex("77617665f3acd3118cd100c04f8edb8a")
_MP4_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"styp", b"skip", b"free")

_REFUSED = (
    (b"RIFX", "a big-endian RIFF file"),
    (b"RIFF", "a RIFF file that is no WAVE"),
    (b"#EXTM3U", "a playlist"),
    (b"ffconcat", "a playlist"),
    (b"[playlist]", "a playlist"),
    (b"v=0", "a session description"),
    (b"#!AMR", "AMR"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "WMA or ASF"),
    (b"wvpk", "WavPack"),
    (b"MAC ", "Monkey's Audio"),
    (b"FORM", "an IFF file that is no AIFF"),
    (b"FLV", "Flash video"),
    (b"MThd", "MIDI"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"<", "a markup text"),
    (b"{", "a JSON text"),
)


def recognise(body: BinaryIO) -> Container:
    """Say which accepted container `body` is; raises InvalidRequest that names what was seen instead.

    It reads some kilobytes at the start and behind ID3 tags; where `body` stands afterwards is not promised.
    """
    body.seek(0)
    head = body.read(_HEAD_BYTES)
    if not head:
        raise refusal("empty")
    start = _skip_id3(body, head)
    if start:
        body.seek(start)
        head = body.read(_HEAD_BYTES)
    found = _by_signature(head)
    if found is not None:
        return found
    if is_adts(body, start):
        return ADTS
    if is_mpeg_audio(body, start):
        return MP3
    raise refusal(_describe(head))


def refusal(seen: str) -> InvalidRequest:
    """The error for a file that is `seen`, with the containers that would be accepted."""
    return InvalidRequest(f"the file is {seen}; accepted audio is {ACCEPTED_NAMES}", param=FIELD)


def damaged(container: Container, reason: str) -> InvalidRequest:
    """The error for a file of an accepted container that cannot be decoded, and why."""
    message = f"the file looks like {container.name}, but {reason}; accepted audio is {ACCEPTED_NAMES}"
    return InvalidRequest(message, param=FIELD)


def _by_signature(head: bytes) -> Container | None:
    kind = head[8:12]
    match head[:4]:
        case b"RIFF" | b"RF64" | b"BW64" if kind == b"WAVE":
            return WAV
        case b"FORM" if kind in (b"AIFF", b"AIFC"):
            return AIFF
        case b"fLaC":
            return FLAC
        case b"OggS":
            return OGG
        case b"\x1a\x45\xdf\xa3":
            return WEBM
        case b".snd":
            return AU
        case b"caff":
            return CAF
        case _:
            if head[:16] == WAVE64_RIFF and head[24:40] == WAVE64_WAVE:
                return WAVE64
            return MP4 if head[4:8] in _MP4_BOXES else None


def _skip_id3(body: BinaryIO, head: bytes) -> int:
    """The offset behind the leading ID3v2 tags, whose sizes have seven bits a byte; 0 when there are none."""
    start = 0
    for _ in range(_MAX_TAGS):
        if len(head) < 10 or head[:3] != b"ID3" or any(byte & 0x80 for byte in head[6:10]):
            break
        footer = 10 if head[5] & 0x10 else 0
        start += 10 + footer + (head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9])
        body.seek(start)
        head = body.read(_HEAD_BYTES)
    return start


def _describe(head: bytes) -> str:
    for signature, name in _REFUSED:
        if head.lstrip().startswith(signature):
            return name
    if head and all(0x20 <= byte < 0x7F or byte in b"\t\r\n" for byte in head):
        return "text"
    return "no known audio (raw samples need a header)"
