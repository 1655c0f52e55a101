"""Frame headers of MPEG audio and ADTS, made by hand from the standards' tables."""

import io

import pytest

from antiphon.audio.mpeg import is_adts, is_mpeg_audio

MPEG_FRAMES = {
    "layer 1, 44.1 kHz, 384 kbit/s": ("ffffc000", 416),
    "layer 1, 44.1 kHz, 384 kbit/s, padded": ("ffffc200", 420),
    "layer 2, 48 kHz, 192 kbit/s": ("fffda400", 576),
    "layer 3, 44.1 kHz, 128 kbit/s": ("fffb9000", 417),
    "layer 3, 44.1 kHz, 128 kbit/s, padded": ("fffb9200", 418),
    "layer 3, 22.05 kHz, 64 kbit/s": ("fff38000", 208),
    "layer 3, 8 kHz, 16 kbit/s": ("ffe32800", 144),
}


def adts_frame(size: int, rate_index: int = 8) -> bytes:
    header = 0xFFF1 << 40 | 1 << 38 | rate_index << 34 | 1 << 30 | size << 13 | 0x7FF << 2
    return header.to_bytes(7, "big") + bytes(size - 7)


@pytest.mark.parametrize("name", MPEG_FRAMES)
def test_frames_that_follow_one_another_are_mpeg_audio(name):
    header, size = MPEG_FRAMES[name]
    frame = bytes.fromhex(header) + bytes(size - 4)
    assert is_mpeg_audio(io.BytesIO(bytes(50) + frame * 6), 0)
    assert not is_mpeg_audio(io.BytesIO(bytes(50) + (frame + b"\0") * 6), 0)


@pytest.mark.parametrize("header", ["fffbf000", "fffb0000", "fffb9c00", "ffeb9000", "fff99000", "7ffb9000"])
def test_a_header_with_a_reserved_value_is_no_mpeg_audio(header):
    assert not is_mpeg_audio(io.BytesIO((bytes.fromhex(header) + bytes(413)) * 6), 0)


def test_frames_of_different_streams_are_no_stream():
    layers = ("layer 3, 44.1 kHz, 128 kbit/s", "layer 2, 48 kHz, 192 kbit/s")
    one, other = (bytes.fromhex(header) + bytes(size - 4) for header, size in map(MPEG_FRAMES.get, layers))
    assert not is_mpeg_audio(io.BytesIO((one + other) * 6), 0)


def test_adts_frames_of_any_sizes_are_adts():
    assert is_adts(io.BytesIO(b"".join(adts_frame(size) for size in (60, 8, 300, 7, 90))), 0)


def test_one_adts_frame_at_the_end_of_a_file_is_adts():
    assert is_adts(io.BytesIO(bytes(9) + adts_frame(60)), 9)


@pytest.mark.parametrize("frames", [adts_frame(60, 13) * 6, (adts_frame(60) + b"\0") * 6, b"\xff" * 400])
def test_what_only_resembles_adts_is_none(frames):
    assert not is_adts(io.BytesIO(frames), 0)
