"""WAV as people send it (cases AUD-01, AUD-03, AUD-04, AUD-06, AUD-12)."""

import io
import struct

import numpy as np
import pytest
import soundfile

from antiphon.audio.samples import LOUDEST
from antiphon.vocabulary.errors import InvalidRequest
from audio_assets import (
    ALAW,
    FLOAT,
    GUID_TAIL,
    MULAW,
    PCM,
    chunk,
    extensible_fmt_chunk,
    fmt_chunk,
    interleave,
    loudest_hz,
    riff,
    sample_bytes,
    soundfile_bytes,
    tone,
    wav_bytes,
)

TONE = tone(440, 0.25)
DATA = chunk(b"data", sample_bytes(TONE))


def close(samples, bits=16):
    return np.testing.assert_allclose(samples[:, 0], TONE, atol=1.5 * 2.0 ** (1 - bits))


@pytest.mark.parametrize("size", [0, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF - 36, 0x7FFFF000])
def test_a_streamed_file_lasts_as_long_as_its_bytes(size, decode_bytes, samples_of):
    pcm = decode_bytes(wav_bytes(TONE, size=size))
    assert pcm.frames == len(TONE)
    close(samples_of(pcm))


def test_a_streamed_file_cut_inside_a_sample_loses_that_sample(decode_bytes):
    assert decode_bytes(wav_bytes(TONE, size=0xFFFFFFFF)[:-1]).frames == len(TONE) - 1


def test_a_data_size_of_zero_is_meant_when_the_header_was_completed(decode_bytes):
    with pytest.raises(InvalidRequest, match="no samples"):
        decode_bytes(riff(fmt_chunk(), chunk(b"data", b""), chunk(b"LIST", b"INFO" + bytes(64))))


def test_chunks_behind_the_samples_are_no_sound(decode_bytes):
    assert decode_bytes(riff(fmt_chunk(), DATA, chunk(b"LIST", b"INFO" * 99))).frames == len(TONE)


@pytest.mark.parametrize("between", [chunk(b"LIST", b"odd"), b"LIST\x03\0\0\0odd", chunk(b"fact", bytes(4))])
def test_chunks_before_the_samples_are_skipped_padded_or_not(between, decode_bytes, samples_of):
    close(samples_of(decode_bytes(riff(fmt_chunk(), between, DATA))))


def test_samples_may_come_before_their_format(decode_bytes, samples_of):
    close(samples_of(decode_bytes(riff(DATA, fmt_chunk()))))


@pytest.mark.parametrize(("bits", "tag"), [(8, PCM), (16, PCM), (24, PCM), (32, PCM), (32, FLOAT), (64, FLOAT)])
def test_every_plain_sample_format_is_read(bits, tag, decode_bytes, samples_of):
    close(samples_of(decode_bytes(wav_bytes(TONE, bits=bits, tag=tag))), min(bits, 24))


@pytest.mark.parametrize(("bits", "tag"), [(8, PCM), (16, PCM), (24, PCM), (32, PCM), (32, FLOAT), (64, FLOAT)])
def test_every_plain_sample_format_is_read_in_the_extensible_form(bits, tag, decode_bytes, samples_of):
    data = chunk(b"data", sample_bytes(TONE, bits, tag))
    close(samples_of(decode_bytes(riff(extensible_fmt_chunk(16_000, 1, bits, bits, tag), data))), min(bits, 24))


@pytest.mark.parametrize("valid_bits", [24, 20, 0])
def test_fewer_valid_bits_in_32_are_no_smaller_samples(valid_bits, decode_bytes, samples_of):
    data = chunk(b"data", sample_bytes(TONE, 32))
    close(samples_of(decode_bytes(riff(extensible_fmt_chunk(16_000, 1, 32, valid_bits), data))))


def test_24_bits_in_32_are_read_in_the_plain_form_too(decode_bytes, samples_of):
    close(samples_of(decode_bytes(riff(fmt_chunk(bits=24, align=4), chunk(b"data", sample_bytes(TONE, 32))))))


def test_each_of_six_channels_is_kept(decode_bytes, samples_of):
    silence = np.zeros_like(TONE)
    samples = interleave(silence, silence, TONE, silence, silence, silence)
    data = chunk(b"data", sample_bytes(samples))
    pcm = decode_bytes(riff(extensible_fmt_chunk(16_000, 6, 16, 16), data))
    assert (pcm.channels, pcm.frames) == (6, len(TONE))
    close(samples_of(pcm)[:, 2:3])


@pytest.mark.parametrize("tail", [b"\xee" * 14, GUID_TAIL[:-1] + b"\0"])
def test_an_unknown_guid_is_refused(tail, decode_bytes):
    with pytest.raises(InvalidRequest, match="extensible") as caught:
        decode_bytes(riff(extensible_fmt_chunk(16_000, 1, 16, 16, guid_tail=tail), DATA))
    assert caught.value.param == "file"


def test_what_is_no_number_is_silence_and_what_is_loud_is_kept_within_bounds(decode_bytes, samples_of):
    wild = np.array([0.25, np.nan, np.inf, -np.inf, 3e38, -7, 1], np.float32)
    with np.errstate(all="raise"):
        samples = samples_of(decode_bytes(wav_bytes(wild, bits=32, tag=FLOAT)))[:, 0]
    assert samples.tolist() == [0.25, 0, 0, 0, LOUDEST, -7, 1]


def test_a_double_that_no_float_holds_is_bounded(decode_bytes, samples_of):
    data = chunk(b"data", struct.pack("<3d", 1e300, -1e300, float("nan")))
    samples = samples_of(decode_bytes(riff(fmt_chunk(bits=64, tag=FLOAT), data)))[:, 0]
    assert samples.tolist() == [LOUDEST, -LOUDEST, 0]


@pytest.mark.parametrize(("tag", "subtype"), [(MULAW, "ULAW"), (ALAW, "ALAW")])
def test_every_companded_code_means_what_g711_says(tag, subtype, decode_bytes, samples_of):
    codes = bytes(range(256))
    expected, _ = soundfile.read(
        io.BytesIO(codes), dtype="float32", format="RAW", subtype=subtype, samplerate=8000, channels=1
    )
    pcm = decode_bytes(riff(fmt_chunk(8000, bits=8, tag=tag), chunk(b"data", codes)))
    assert pcm.rate == 8000
    np.testing.assert_array_equal(samples_of(pcm)[:, 0], expected)


@pytest.mark.parametrize("subtype", ["GSM610", "IMA_ADPCM", "MS_ADPCM"])
def test_other_telephone_codecs_in_wav_are_heard(subtype, decode_bytes, samples_of):
    pcm = decode_bytes(soundfile_bytes(tone(440, 1, 8000), 8000, "WAV", subtype))
    assert pcm.duration_s == pytest.approx(1, abs=0.03)
    assert loudest_hz(samples_of(pcm)[:, 0], 8000) == pytest.approx(440, abs=2)


@pytest.mark.parametrize("container", ["RF64", "W64", "WAVEX"])
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT"])
def test_the_larger_kin_of_wav_are_read(container, subtype, decode_bytes, samples_of):
    close(samples_of(decode_bytes(soundfile_bytes(TONE, 16_000, container, subtype))))


@pytest.mark.parametrize("frames", [1, 2, 16, 160, 800, 1584])
def test_a_very_short_clip_has_its_true_duration(frames, decode_bytes):
    assert decode_bytes(wav_bytes(TONE[:frames])).duration_s == frames / 16_000


def test_a_frame_size_of_zero_follows_from_the_bits(decode_bytes, samples_of):
    close(samples_of(decode_bytes(riff(fmt_chunk(align=0), DATA))))


def test_a_sampler_chunk_that_claims_gigabytes_takes_none(decode_bytes, samples_of):
    sampler = chunk(b"smpl", bytes(28) + struct.pack("<II", 0, 0x7FFFFFF0))
    close(samples_of(decode_bytes(riff(fmt_chunk(), sampler, DATA))))
