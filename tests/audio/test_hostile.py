"""Files made to harm: forged sizes, playlists, mutations (cases SEC-05, SEC-06, SEC-09)."""

import io
import struct
import tempfile

import numpy as np
import pytest

from antiphon.audio.containers import ACCEPTED
from antiphon.audio.decode import DecodeLimits, decode
from antiphon.audio.demuxed import open_demuxed
from antiphon.audio.riff import MAX_CHUNKS
from antiphon.audio.samples import LOUDEST
from antiphon.vocabulary.errors import InvalidRequest, TooLarge
from audio_assets import (
    av_bytes,
    chunk,
    fmt_chunk,
    overcounted_fragment,
    overcounted_m4a,
    riff,
    sample_bytes,
    tone,
    wav_bytes,
)
from fuzz_audio import damaged_file

DATA = chunk(b"data", sample_bytes(tone(440, 0.1)))
PLAYLIST = b"#EXTM3U\n#EXTINF:1,\nmarker.wav\n#EXT-X-ENDLIST\n"
SIGNATURES = {
    "wav": b"RIFF\xff\xff\xff\xffWAVE",
    "rf64": b"RF64\xff\xff\xff\xffWAVE",
    "w64": bytes.fromhex("726966662e91cf11a5d628db04c10000")
    + bytes(8)
    + bytes.fromhex("77617665f3acd3118cd100c04f8edb8a"),
    "flac": b"fLaC",
    "ogg": b"OggS",
    "mp3": b"ID3\x03\0\0\0\0\0\0",
    "mp4": b"\0\0\0\x10ftypM4A \0\0\0\0",
    "webm": b"\x1a\x45\xdf\xa3",
    "aiff": b"FORM\0\0\0\0AIFF",
    "au": b".snd",
    "caf": b"caff\0\x01\0\0",
}


class CountingBody(io.BytesIO):
    """A body that counts its reads, so that a test can bound work without a clock."""

    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        return super().read(size)


def test_a_file_of_empty_chunks_is_given_up_after_a_bounded_walk():
    body = CountingBody(riff(fmt_chunk(), chunk(b"zzzz", b"") * 100_000))
    with pytest.raises(InvalidRequest):
        decode(body, DecodeLimits(max_seconds=60))
    assert body.reads < MAX_CHUNKS + 100


@pytest.mark.parametrize("size", [0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFF7, 0xFFFFFFF8, 0xFFFFFFFF])
@pytest.mark.parametrize("name", [b"fmt ", b"LIST", b"abcd", b"ds64"])
def test_a_chunk_beyond_the_end_of_the_file_ends_the_walk(name, size, decode_bytes):
    body = CountingBody(riff(chunk(name, bytes(40), size), fmt_chunk(), DATA))
    with pytest.raises(InvalidRequest):
        decode(body, DecodeLimits(max_seconds=60))
    assert body.reads < 20


def test_a_wave64_chunk_smaller_than_its_header_is_refused(decode_bytes):
    chunks = b"".join(name + bytes(12) + struct.pack("<Q", size) for name, size in ((b"abcd", 0), (b"data", 24)))
    with pytest.raises(InvalidRequest, match="header"):
        decode_bytes(SIGNATURES["w64"] + chunks)


@pytest.mark.parametrize("rate", [0, 1, 8, 999, 768_001, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_rate_that_no_recorder_has_is_refused(rate, decode_bytes):
    with pytest.raises(InvalidRequest, match=f"{rate} Hz"):
        decode_bytes(riff(fmt_chunk(rate=rate), DATA))


@pytest.mark.parametrize("container", ["aiff", "au", "matroska"])
def test_a_rate_that_no_recorder_has_is_refused_in_other_containers(container, decode_bytes):
    with pytest.raises(InvalidRequest, match="500 Hz"):
        decode_bytes(
            av_bytes(tone(10, 1, 500), 500, container, "pcm_s16be" if container != "matroska" else "pcm_s16le")
        )


@pytest.mark.parametrize("channels", [0, 33, 255, 65_535])
def test_a_number_of_channels_that_no_recorder_has_is_refused(channels, decode_bytes):
    with pytest.raises(InvalidRequest):
        decode_bytes(riff(fmt_chunk(channels=channels), DATA))


@pytest.mark.parametrize("align", [3, 5, 7])
def test_a_frame_size_that_no_channels_share_is_refused(align, decode_bytes):
    with pytest.raises(InvalidRequest, match="frame size"):
        decode_bytes(riff(fmt_chunk(channels=2, align=align), DATA))


@pytest.mark.parametrize("bits", [0, 1, 7, 33, 64, 128, 65_535])
@pytest.mark.parametrize("align", [0, 1, 2, 5, 8, 65_535])
def test_a_sample_size_that_no_recorder_has_is_refused(bits, align, decode_bytes):
    with pytest.raises(InvalidRequest):
        decode_bytes(riff(fmt_chunk(bits=bits, align=align), DATA))


@pytest.mark.parametrize("count", [50_000, 20_000_000, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("forge", [overcounted_m4a, overcounted_fragment])
def test_a_sample_table_that_counts_more_than_the_file_holds_is_not_built(forge, count, decode_bytes):
    with pytest.raises(InvalidRequest, match="more samples than it has bytes"):
        decode_bytes(forge(count))


def test_a_sample_table_is_found_across_the_edge_of_a_read(decode_bytes):
    body = overcounted_fragment()
    padding = 1024 * 1024 - body.index(b"trun") - 2
    with pytest.raises(InvalidRequest, match="more samples than it has bytes"):
        decode_bytes(struct.pack(">I4s", padding, b"free") + bytes(padding - 8) + body)


def test_a_compressed_header_is_refused(decode_bytes):
    header = struct.pack(">I4sI4s", 16, b"moov", 8, b"cmov")
    with pytest.raises(InvalidRequest, match="compressed"):
        decode_bytes(SIGNATURES["mp4"] + header)


def test_packets_without_sound_end_the_decoding(decode_bytes):
    frames = np.zeros(40_000, np.float32)
    body = bytearray(av_bytes(frames, 16_000, "caf", "pcm_s16le"))
    description = body.index(b"desc") + 12
    # Two bytes and 20 frames a packet, which the demuxer hands out one by one; 50 s in all, so it is not too long.
    struct.pack_into(">II", body, description + 16, 2, 20)
    with pytest.raises(InvalidRequest, match="packets"):
        decode_bytes(bytes(body))


@pytest.mark.parametrize("reference", ["marker.wav", "file:marker.wav", "./marker.wav"])
@pytest.mark.parametrize("form", ["ffconcat version 1.0\nfile {}\n", "#EXTM3U\n#EXTINF:1,\n{}\n#EXT-X-ENDLIST\n"])
def test_a_playlist_never_opens_the_file_that_it_names(form, reference, tmp_path, monkeypatch, decode_bytes):
    (tmp_path / "marker.wav").write_bytes(wav_bytes(tone(440, 1)))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest, match="playlist"):
        decode_bytes(form.format(reference).encode())


@pytest.mark.parametrize("container", SIGNATURES)
def test_a_playlist_behind_a_signature_is_never_opened(container, tmp_path, monkeypatch, decode_bytes):
    (tmp_path / "marker.wav").write_bytes(wav_bytes(tone(440, 1)))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest):
        decode_bytes(SIGNATURES[container] + PLAYLIST * 50)


@pytest.mark.parametrize("container", ACCEPTED, ids=lambda container: container.name)
def test_the_demuxer_is_named_whatever_the_bytes_say(container, tmp_path, monkeypatch):
    (tmp_path / "marker.wav").write_bytes(wav_bytes(tone(440, 1)))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest):
        open_demuxed(io.BytesIO(b"ffconcat version 1.0\nfile marker.wav\n"), container, DecodeLimits(max_seconds=60))


def test_every_demuxer_that_may_be_asked_reads_one_file_only():
    assert {container.demuxer for container in ACCEPTED} == {
        "wav", "w64", "flac", "ogg", "mp3", "mov", "matroska", "aac", "aiff", "au", "caf",
    }  # fmt: skip


@pytest.mark.parametrize("size", [-1, -1000, -(2**63), 2**32, 2**60, 2**63 - 1000])
@pytest.mark.parametrize("memory", [True, False], ids=["in memory", "in a file"])
def test_a_chunk_that_leads_to_a_place_that_no_file_has_ends_in_a_refusal(size, memory, capfd):
    body = bytearray(av_bytes(tone(440, 0.1), 16_000, "caf", "pcm_s16le"))
    body[52:52] = b"free" + struct.pack(">q", size)  # behind the description
    with io.BytesIO() if memory else tempfile.TemporaryFile() as file:
        file.write(body)
        with pytest.raises(InvalidRequest, match="looks like caf"):
            decode(file, DecodeLimits(max_seconds=60))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("size", [2**63 - 1, 2**63, 2**64 - 1, 2**64 - 19])
def test_a_chunk_of_a_size_of_64_bits_ends_the_walk(size, tmp_path):
    sizes = chunk(b"ds64", struct.pack("<QQQ", size, size, size))
    (tmp_path / "a.wav").write_bytes(b"RF64\xff\xff\xff\xffWAVE" + sizes + chunk(b"data", bytes(64), 0xFFFFFFFF))
    with (tmp_path / "a.wav").open("rb") as body, pytest.raises(InvalidRequest, match="what its samples are"):
        decode(body, DecodeLimits(max_seconds=60))


@pytest.mark.parametrize("first", range(0, 1200, 300))
def test_a_damaged_file_is_sound_within_limits_or_a_refusal(first):
    limits = DecodeLimits(max_seconds=10)
    for seed in range(first, first + 300):
        with tempfile.TemporaryFile() as file:  # as uploads are: one in memory answers to odd places otherwise
            file.write(damaged_file(seed))
            try:
                pcm = decode(file, limits)
            except (InvalidRequest, TooLarge) as refusal:
                assert refusal.param == "file"  # noqa: PT017 (either outcome is right)
            else:
                assert 0 < pcm.duration_s <= limits.max_seconds
                assert np.abs(np.array(pcm.samples)).max() <= LOUDEST
