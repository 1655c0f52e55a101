"""Lengths that a recorder never filled in, or filled in wrongly: the samples that are there are decoded."""

import io
import struct

import numpy as np
import pytest

from antiphon.audio.decode import DecodeLimits, decode
from antiphon.audio.demuxed import _Source
from antiphon.vocabulary.errors import InvalidRequest, TooLarge
from audio_assets import av_bytes, flac_that_declares

RATE, FRAMES = 16_000, 8_000
LIMITS = DecodeLimits(max_seconds=3600)
SAMPLES = (np.sin(np.arange(FRAMES) * 0.1) * 12_000).astype("<i2")
LITTLE, BIG = SAMPLES.tobytes(), SAMPLES.astype(">i2").tobytes()
SIZE = len(LITTLE)
ALL = 0xFFFFFFFF
INFO = b"LIST" + struct.pack("<I", 12) + b"INFOISFT" + bytes(4)
TAIL = b"f3acd3118cd100c04f8edb8a"


def wav(size=SIZE, outer=None, data=LITTLE, after=b"", kind=b"RIFF", ds64=None):
    """A RIFF or RF64 file. `ds64` has the sizes of the file and of the samples, and the number of frames."""
    body = b"WAVE"
    if ds64 is not None:
        body += b"ds64" + struct.pack("<IQQQI", 28, *ds64, 0)
    body += b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, RATE, 2 * RATE, 2, 16)
    body += b"data" + struct.pack("<I", size) + data + after
    return kind + struct.pack("<I", len(body) if outer is None else outer) + body


def rf64(size, outer, *ds64):
    return wav(size, outer, kind=b"RF64", ds64=ds64 or None)


def wave64(size=24 + SIZE, outer=None):
    tail = bytes.fromhex(TAIL.decode())
    chunks = b"fmt " + tail + struct.pack("<QHHIIHH", 40, 1, 1, RATE, 2 * RATE, 2, 16)
    chunks += b"data" + tail + struct.pack("<Q", size) + LITTLE
    head = bytes.fromhex("726966662e91cf11a5d628db04c10000")
    kind = bytes.fromhex("77617665f3acd3118cd100c04f8edb8a")
    return head + struct.pack("<Q", 40 + len(chunks) if outer is None else outer) + kind + chunks


def aiff(size=8 + SIZE, frames=FRAMES, outer=None, data=BIG, after=b""):
    common = struct.pack(">hIh", 1, frames, 16) + bytes.fromhex("400cfa00000000000000")
    body = b"AIFFCOMM" + struct.pack(">I", len(common)) + common
    body += b"SSND" + struct.pack(">III", size, 0, 0) + data + after
    return b"FORM" + struct.pack(">I", len(body) if outer is None else outer) + body


def au(size=SIZE):
    return b".snd" + struct.pack(">IIIII", 28, size, 3, RATE, 1) + bytes(4) + BIG


def caf(size=4 + SIZE):
    description = struct.pack(">qd4sIIIII", 32, RATE, b"lpcm", 0, 2, 1, 1, 16)
    return b"caff" + struct.pack(">HH", 1, 0) + b"desc" + description + b"data" + struct.pack(">qI", size, 0) + BIG


WHOLE = {
    "wav": wav(),
    "wav, 0 and nothing else wrong": wav(0),
    "wav, 0 and 0": wav(0, 0),
    "wav, 0 and the size of a header": wav(0, 36),
    "wav, 0 and all ones": wav(0, ALL),
    "wav, all ones": wav(ALL),
    "wav, 2 GiB": wav(0x7FFFFFFF),
    "wav, a little too large": wav(SIZE + 1000),
    "wav, chunks follow": wav(after=INFO),
    "wav, only the outer size is small": wav(outer=100),
    "rf64": rf64(ALL, ALL, SIZE + 72, SIZE, FRAMES),
    "rf64, sizes of 0": rf64(ALL, ALL, 0, 0, 0),
    "rf64, everything is 0": rf64(0, 0, 0, 0, 0),
    "rf64, the largest sizes": rf64(ALL, ALL, 2**64 - 1, 2**64 - 1, FRAMES),
    "rf64, the size stands in ds64 alone": rf64(0, ALL, SIZE + 72, SIZE, FRAMES),
    "rf64, without ds64": rf64(ALL, ALL),
    "w64": wave64(),
    "w64, 0": wave64(0),
    "w64, no more than its header": wave64(24),
    "w64, 0 outside": wave64(24, 0),
    "w64, the largest size": wave64(2**64 - 1),
    "aiff": aiff(),
    "aiff, 0": aiff(0),
    "aiff, no more than its header": aiff(8),
    "aiff, no frames": aiff(frames=0),
    "aiff, everything is 0": aiff(0, 0, 0),
    "aiff, all ones": aiff(ALL),
    "aiff, frames without end": aiff(frames=ALL),
    "aiff, everything is all ones": aiff(ALL, ALL, ALL),
    "au": au(),
    "au, 0": au(0),
    "au, all ones": au(ALL),
    "au, 2 GiB": au(0x7FFFFFFF),
    "au, a little too large": au(SIZE + 1000),
    "caf": caf(),
    "caf, -1": caf(-1),
    "caf, 0": caf(0),
    "caf, no more than its header": caf(4),
    "caf, the largest size": caf(2**63 - 1),
    "caf, a little too large": caf(4 + SIZE + 1000),
}


@pytest.mark.parametrize("name", WHOLE)
def test_all_samples_of_a_file_with_a_wrong_length_are_decoded(name):
    sound = decode(io.BytesIO(WHOLE[name]), LIMITS)
    assert (sound.rate, sound.channels, sound.frames) == (RATE, 1, FRAMES)
    assert np.array_equal(np.asarray(sound.samples), SAMPLES.astype(np.float32) / 32768)


@pytest.mark.parametrize(
    ("file", "frames"),
    [(wav(SIZE - 1), FRAMES - 1), (aiff(8 + SIZE - 1), FRAMES - 1), (wav(4000), 2000), (aiff(8 + 4000), 2000)],
    ids=["wav, half a sample", "aiff, half a sample", "wav, fewer samples", "aiff, fewer samples"],
)
def test_a_length_within_the_file_is_believed(file, frames):
    assert decode(io.BytesIO(file), LIMITS).frames == frames


@pytest.mark.parametrize(
    "file",
    [
        wav(0, data=b""),
        wav(0, data=b"", after=INFO),
        wav(0, 0, data=b""),
        wav(ALL, data=b""),
        aiff(8, 0, data=b""),
        aiff(8, 0, data=b"", after=b"NAME" + struct.pack(">I", 4) + b"song"),
        au(0)[:28],
        caf(-1)[: -len(BIG)],
    ],
    ids=["wav", "wav, chunks follow", "wav, all is 0", "wav, all ones", "aiff", "aiff, chunks follow", "au", "caf"],
)
def test_a_file_that_holds_no_samples_is_refused(file):
    with pytest.raises(InvalidRequest) as refused:
        decode(io.BytesIO(file), LIMITS)
    assert refused.value.param == "file"


def test_corrected_bytes_are_read_in_pieces_of_any_size():
    body, corrected = b"0123456789", {2: b"ab", 7: b"xyz"}
    for size in range(1, 12):
        source = _Source(io.BytesIO(body), corrected)
        assert b"".join(iter(lambda: source.read(size), b"")) == b"01ab456xyz"  # noqa: B023 (it is called here)


def aiff_of(seconds):
    """A file that is as long as it says, nearly all of it zeros."""
    frames = int(seconds * RATE)
    return aiff(8 + 2 * frames, frames, data=bytes(2 * frames))


@pytest.mark.parametrize("file", [flac_that_declares(24 * 3600), aiff_of(61)], ids=["flac", "aiff"])
def test_a_file_that_declares_more_audio_than_there_may_be_is_refused_before_it_is_decoded(file):
    grown = []
    with pytest.raises(
        TooLarge, match=r"declares \d+ seconds, which is longer than the limit of 60 seconds"
    ) as refused:
        decode(io.BytesIO(file), DecodeLimits(max_seconds=60), grown.append)
    assert (refused.value.param, grown) == ("file", [])


@pytest.mark.parametrize("declared_s", [0, 1, 2, 60])
def test_a_declared_length_within_the_limits_changes_nothing(declared_s):
    assert decode(io.BytesIO(flac_that_declares(declared_s)), DecodeLimits(max_seconds=60)).frames == 2 * RATE


@pytest.mark.parametrize("declared_s", [0, 1])
def test_a_file_that_declares_less_than_it_holds_is_held_to_what_it_holds(declared_s):
    with pytest.raises(TooLarge, match="longer than the limit of 3 seconds"):
        decode(io.BytesIO(flac_that_declares(declared_s, sounding_s=4)), DecodeLimits(max_seconds=3))


def test_a_file_that_declares_more_than_may_be_kept_is_refused_before_it_is_decoded():
    grown = []
    with pytest.raises(TooLarge, match="max_pending_audio_mb"):
        decode(io.BytesIO(flac_that_declares(50)), DecodeLimits(max_seconds=60, max_bytes=1024 * 1024), grown.append)
    assert grown == []


@pytest.mark.parametrize(("name", "codec"), [("mp3", "libmp3lame"), ("adts", "aac")])
def test_a_length_that_is_only_guessed_refuses_nothing(name, codec):
    """FFmpeg takes the rate of the first frames for that of the whole file, of which most is silence."""
    speech = np.concatenate([np.zeros(RATE // 2, np.float32), np.random.default_rng(1).uniform(-1, 1, 8 * RATE)])
    file = av_bytes(speech.astype(np.float32), RATE, name, codec)
    assert 8.4 < decode(io.BytesIO(file), DecodeLimits(max_seconds=10)).duration_s < 9
