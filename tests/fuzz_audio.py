"""Damaged sound files: a corpus of every accepted container, and changes that know its parts, or nothing.

One seed names one file. The corpus is made anew in each process, so nothing in it may depend on time or chance.
"""

import zlib
from collections.abc import Callable
from functools import cache

import numpy as np

import audio_assets
from antiphon.audio.compressed import encoded_pieces
from antiphon.ports.codec import AudioFormat
from fuzz_dice import Dice, blind, chance, dice_for, extreme
from fuzz_parts import Order, Part, parts_of

MOST_BYTES = 256 * 1024
"""No file grows beyond this, however often a part is repeated."""

_SERIAL = b"\0\0\0\7"
_RATE = 16_000
_BITEXACT = {"fflags": "+bitexact"}


@cache
def corpus() -> dict[str, bytes]:
    """Sound files that are in order, a third of a second each, in every accepted container and several codecs."""
    sound = audio_assets.tone(440, 0.3)
    made = {
        **audio_assets.good_audio_variants(sound),
        "ogg_flac": audio_assets.av_bytes(sound, _RATE, "ogg", "flac", _BITEXACT),
        "webm_opus": audio_assets.av_bytes(sound, _RATE, "webm", "libopus", {"live": "1", **_BITEXACT}),
        "mka_s16": audio_assets.av_bytes(sound, _RATE, "matroska", "pcm_s16le", _BITEXACT),
        "mka_flac": audio_assets.av_bytes(sound, _RATE, "matroska", "flac", _BITEXACT),
        "mov_alac": audio_assets.av_bytes(sound, _RATE, "mov", "alac", _BITEXACT),
        "mp2": audio_assets.av_bytes(sound, _RATE, "mp2", "mp2", _BITEXACT),
        "wav_ms_adpcm": audio_assets.soundfile_bytes(sound, _RATE, "WAV", "MS_ADPCM"),
        "wav_gsm": audio_assets.soundfile_bytes(sound, _RATE, "WAV", "GSM610"),
        "wav_extensible": audio_assets.riff(
            audio_assets.extensible_fmt_chunk(_RATE, 1, 24, 24),
            audio_assets.chunk(b"LIST", b"INFOISFT\4\0\0\0fuzz"),
            audio_assets.chunk(b"data", audio_assets.sample_bytes(sound, 24)),
        ),
        "wav_six_channels": audio_assets.wav_bytes(audio_assets.interleave(*[sound] * 6), channels=6),
        "aiff_f32": audio_assets.av_bytes(sound, _RATE, "aiff", "pcm_f32be", _BITEXACT),
        "caf_alac": audio_assets.soundfile_bytes(sound, _RATE, "CAF", "ALAC_16"),
        "tagged_mp3": b"ID3\4\0\0\0\0\0\x0fTIT2\0\0\0\5\0\0\0fuzz" + audio_assets.soundfile_bytes(sound, _RATE, "MP3"),
        **{f"ours_{it}": _ours(it, sound) for it in (AudioFormat.MP3, AudioFormat.OPUS, AudioFormat.AAC)},
    }
    return {name: _with_serial(data) for name, data in sorted(made.items())}


def damaged_file(seed: int) -> bytes:
    """The sound file of this seed; a few come out as they were, and are in order."""
    return damage(dice_for("file", seed))


def damage(dice: Dice) -> bytes:
    """A sound file with some damage."""
    if chance(dice, 0.01):
        return dice.randbytes(dice.randrange(2000))
    data = dice.choice(list(corpus().values()))
    for _ in range(dice.choice((0, 1, 1, 1, 2, 2, 3, 6)) if chance(dice, 0.98) else 0):
        data = dice.choices(list(_WAYS), list(_WAYS.values()))[0](data, dice)[:MOST_BYTES]
    return _with_checksums(data) if chance(dice, 0.7) else data


def _claim(data: bytes, dice: Dice) -> bytes:
    """A part says another size."""
    part = _part(data, dice, sized=True)
    if not part.size_bytes:
        return blind(data, dice)
    claimed = extreme(dice, part.size_bytes, part.end - part.body).to_bytes(part.size_bytes, part.order)
    return data[: part.size_at] + claimed + data[part.size_at + part.size_bytes :]


def _number(data: bytes, dice: Dice) -> bytes:
    """A number at the start of a part's content is another one."""
    part = _part(data, dice)
    size = dice.choice((1, 2, 4, 4, 8))
    order: Order = dice.choice(("little", "big"))
    at = part.body + dice.randrange(0, 64)
    old = int.from_bytes(data[at : at + size], order)
    return data[:at] + extreme(dice, size, old).to_bytes(size, order) + data[at + size :]


def _drop(data: bytes, dice: Dice) -> bytes:
    part = _part(data, dice)
    return data[: part.start] + data[part.end :]


def _double(data: bytes, dice: Dice) -> bytes:
    """A part comes several times, or very often."""
    part = _part(data, dice)
    piece = data[part.start : part.end]
    count = min(dice.choice((1, 1, 2, 100, 5000)), MOST_BYTES // max(len(piece), 1))
    return data[: part.end] + piece * count + data[part.end :]


def _swap(data: bytes, dice: Dice) -> bytes:
    first, second = sorted((_part(data, dice), _part(data, dice)), key=lambda it: it.start)
    if first.end > second.start:
        return data
    between = data[first.end : second.start]
    pieces = data[second.start : second.end] + between + data[first.start : first.end]
    return data[: first.start] + pieces + data[second.end :]


def _nest(data: bytes, dice: Dice) -> bytes:
    """A part, of this file or another, stands inside of a part."""
    other = data if chance(dice, 0.5) else dice.choice(list(corpus().values()))
    inner, outer = _part(other, dice), _part(data, dice)
    return data[: outer.body] + other[inner.start : inner.end] + data[outer.body :]


def _empty(data: bytes, dice: Dice) -> bytes:
    """The content of a part is gone, or zeros, or noise."""
    part = _part(data, dice)
    length = min(part.end - part.body, 4096)
    return data[: part.body] + dice.choice((b"", bytes(length), dice.randbytes(length))) + data[part.body + length :]


def _cut(data: bytes, dice: Dice) -> bytes:
    part = _part(data, dice)
    return data[: dice.randrange(part.start, part.end + 1)]


def _splice(data: bytes, dice: Dice) -> bytes:
    """The start of this file and the end of another."""
    other = dice.choice(list(corpus().values()))
    return data[: _part(data, dice).start] + other[_part(other, dice).start :]


def _join(data: bytes, dice: Dice) -> bytes:
    """Two files, one behind the other, or junk before or behind it."""
    other = dice.choice((data, dice.choice(list(corpus().values())), dice.randbytes(100), bytes(5000), _id3(dice)))
    return data + other if chance(dice, 0.5) else other + data


_WAYS: dict[Callable[[bytes, Dice], bytes], int] = {
    _claim: 4, _number: 8, _drop: 2, _double: 2, _swap: 1, _nest: 2, _empty: 2, _cut: 2, _splice: 2, _join: 1, blind: 6
}  # fmt: skip


def _part(data: bytes, dice: Dice, *, sized: bool = False) -> Part:
    parts = [it for it in parts_of(data) if it.size_bytes or not sized]
    return dice.choice(parts) if parts else Part(0, 0, len(data))


def _id3(dice: Dice) -> bytes:
    return b"ID3\3\0\0" + dice.randbytes(4) + bytes(dice.randrange(200))


def _ours(audio_format: AudioFormat, sound: audio_assets.Samples) -> bytes:
    """A file as the server itself answers it."""
    file = bytearray()
    for offset, data in encoded_pieces([np.asarray(sound)], audio_format, _RATE, 1):
        file[offset : offset + len(data)] = data
    return bytes(file)


def _with_serial(data: bytes) -> bytes:
    """An Ogg file with the same serial number each time, which its writers throw dice for."""
    if data[:4] != b"OggS":
        return data
    pages = [data[it.start : it.end] for it in parts_of(data)]
    return _with_checksums(b"".join(page[:14] + _SERIAL + page[18:] for page in pages))


def _with_checksums(data: bytes) -> bytes:
    """An Ogg file whose pages have the checksum of what they hold now, so that a reader looks at that."""
    if data[:4] != b"OggS":
        return data
    return b"".join(_with_checksum(data[it.start : it.end]) for it in parts_of(data))


def _with_checksum(page: bytes) -> bytes:
    blank = page[:22] + bytes(4) + page[26:]
    return page[:22] + _ogg_crc(blank).to_bytes(4, "little") + page[26:] if len(page) >= 27 else page


def _ogg_crc(page: bytes) -> int:
    """The checksum of RFC 3533, 6: zlib's polynomial with the bits the other way round, from 0 and without a mask."""
    mirrored = page.translate(_MIRROR)
    plain = zlib.crc32(mirrored, 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{plain:032b}"[::-1], 2)


_MIRROR = bytes(int(f"{it:08b}"[::-1], 2) for it in range(256))
