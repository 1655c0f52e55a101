"""Raw samples into floats, whole frames at a time."""

import struct

import pytest

from antiphon.audio.raw import RawFormat, RawReader, SampleFormat


def read(raw, *pieces):
    reader = RawReader(raw)
    return [reader.feed(piece).samples.tolist() for piece in pieces]


def test_integers_are_scaled_by_their_full_range():
    data = struct.pack("<4h", 0, 16384, -32768, 32767)
    (samples,) = read(RawFormat(SampleFormat.S16LE, 8000, 1), data)
    assert samples == [0.0, 0.5, -1.0, 32767 / 32768]


def test_floats_are_taken_as_they_are_and_what_is_no_number_is_silence():
    data = struct.pack("<3f", 0.25, float("nan"), -1.0)
    (samples,) = read(RawFormat(SampleFormat.F32LE, 8000, 1), data)
    assert samples == [0.25, 0.0, -1.0]


@pytest.mark.parametrize(
    ("sample_format", "data", "heard"),
    [(SampleFormat.MULAW, b"\xff\x80\x00", [0, 32124, -32124]),
     (SampleFormat.ALAW, b"\xd5\xaa\x2a", [8, 32256, -32256])],
)  # fmt: skip
def test_companded_samples_are_those_of_g711(sample_format, data, heard):
    (samples,) = read(RawFormat(sample_format, 8000, 1), data)
    assert samples == [it / 32768 for it in heard]


@pytest.mark.parametrize("cut", range(13))
def test_a_cut_anywhere_loses_nothing(cut):
    data = struct.pack("<6h", *range(1, 7))
    first, second = read(RawFormat(SampleFormat.S16LE, 8000, 3), data[:cut], data[cut:])
    assert first + second == [n / 32768 for n in range(1, 7)]
    assert len(first) % 3 == 0


def test_audio_has_the_format_that_was_said():
    pcm = RawReader(RawFormat(SampleFormat.S16LE, 44_100, 2)).feed(bytes(8))
    assert (pcm.rate, pcm.channels, pcm.frames) == (44_100, 2, 2)
