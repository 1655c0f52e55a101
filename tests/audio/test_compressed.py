"""The compressed answers, heard through our own decoder (case TTS-08)."""

import gc
import io

import numpy as np
import pytest
import soundfile
import soxr

from antiphon.audio.encode import SPOOL_BYTES, StreamEncoder, encode
from antiphon.ports.codec import AudioFormat
from antiphon.vocabulary.audio import Pcm
from audio_assets import Samples, interleave, loudest_hz, tone
from codec_stage import containers

COMPRESSED = [AudioFormat.MP3, AudioFormat.OPUS, AudioFormat.FLAC, AudioFormat.AAC]
MAGIC = {
    AudioFormat.MP3: b"\xff\xf3",
    AudioFormat.OPUS: b"OggS",
    AudioFormat.FLAC: b"fLaC",
    AudioFormat.AAC: b"\xff\xf1",
}
TYPES = {
    AudioFormat.MP3: "audio/mpeg",
    AudioFormat.OPUS: "audio/opus",
    AudioFormat.FLAC: "audio/flac",
    AudioFormat.AAC: "audio/aac",
}
RATE = 22_050
"""Piper's. Opus has no such rate."""
SURPLUS_S = {AudioFormat.AAC: 0.2}
"""How much longer an answer may be: an AAC file cannot say how much of it is the encoder's delay and its last frame."""

ALL = pytest.mark.parametrize("audio_format", COMPRESSED)


def glide(seconds: float = 1.5, rate: int = RATE) -> Samples:
    """A tone that rises from 200 to 2,000 Hz, and swells: it is like itself at one place only."""
    times = np.arange(round(seconds * rate)) / rate
    phase = 2 * np.pi * (200 * times + 1800 / (2 * seconds) * times**2)
    return (0.5 * np.sin(phase) * np.sin(np.pi * times / seconds)).astype(np.float32)


def likeness(heard: Samples, said: Samples) -> tuple[float, int]:
    """How like two sounds are where they fit best, at most 1, and by how many samples the first is late there."""
    size = 1 << (len(heard) + len(said)).bit_length()
    fits = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(said, size)), size)
    lag = int(np.argmax(fits))
    lag = lag if lag < size // 2 else lag - size
    return float(fits[lag] / np.linalg.norm(heard) / np.linalg.norm(said)), lag


def heard_at(pcm: Pcm, rate: int) -> Samples:
    return soxr.resample(np.array(pcm.samples, np.float32), pcm.rate, rate)


def whole_bytes(pcm: Pcm, audio_format: AudioFormat) -> bytes:
    with encode(pcm, audio_format).body as body:
        return body.read()


def streamed_bytes(pcms: list[Pcm], audio_format: AudioFormat) -> bytes:
    stream = StreamEncoder(audio_format, pcms[0].rate, pcms[0].channels)
    return stream.header() + b"".join(stream.feed(pcm) for pcm in pcms) + stream.finish()


@ALL
def test_a_whole_answer_is_what_its_type_says_and_sounds_as_the_samples_do(audio_format, as_pcm, decode_bytes):
    said = glide()
    encoded = encode(as_pcm(said, RATE), audio_format)
    data = encoded.body.read()
    assert (encoded.content_type, encoded.size_bytes) == (TYPES[audio_format], len(data))
    assert data.startswith(MAGIC[audio_format])
    pcm = decode_bytes(data)
    assert len(said) / RATE <= pcm.duration_s + 1e-4 < len(said) / RATE + 2e-4 + SURPLUS_S.get(audio_format, 0)
    like, late = likeness(heard_at(pcm, RATE), said)
    assert like > 0.99
    assert abs(late) <= 1 or audio_format in SURPLUS_S


def test_flac_keeps_every_sample_of_the_wav_and_knows_their_number(as_pcm, decode_bytes):
    pcm = as_pcm(glide(), RATE)
    flac, wav = whole_bytes(pcm, AudioFormat.FLAC), whole_bytes(pcm, AudioFormat.WAV)
    assert decode_bytes(flac).samples == decode_bytes(wav).samples
    with soundfile.SoundFile(io.BytesIO(flac)) as file:
        assert (file.frames, file.samplerate, file.subtype) == (pcm.frames, RATE, "PCM_16")


@ALL
def test_a_stream_is_heard_as_the_whole_answer_is(audio_format, as_pcm, decode_bytes):
    said = glide()
    whole = heard_at(decode_bytes(whole_bytes(as_pcm(said, RATE), audio_format)), RATE)
    parts = [as_pcm(part, RATE) for part in np.array_split(said, 7)]
    streamed = heard_at(decode_bytes(streamed_bytes(parts, audio_format)), RATE)
    like, late = likeness(streamed, whole)
    assert like > 0.9999
    if audio_format is AudioFormat.MP3:  # a stream cannot go back and say how long its encoder's delay is
        assert 0 < late < 0.1 * RATE
        streamed = streamed[late:][: len(whole)]
    assert len(streamed) == len(whole)
    np.testing.assert_allclose(streamed, whole, atol=1e-3)


@ALL
def test_a_stream_does_not_wait_for_its_end(audio_format, as_pcm):
    stream = StreamEncoder(audio_format, RATE, 1)
    pieces = [len(stream.feed(as_pcm(part, RATE))) for part in np.array_split(glide(4), 4)]
    last = len(stream.finish())
    assert min(pieces) > 0.3 * max(pieces)
    assert last < max(pieces)


@ALL
def test_a_streams_end_makes_it_a_whole_file(audio_format, as_pcm, decode_bytes):
    said = glide()
    stream = StreamEncoder(audio_format, RATE, 1)
    begun = stream.header() + stream.feed(as_pcm(said, RATE))
    assert decode_bytes(begun).duration_s < len(said) / RATE <= decode_bytes(begun + stream.finish()).duration_s + 1e-4


@ALL
def test_equal_samples_give_equal_bytes_however_they_are_cut(audio_format, as_pcm):
    said = glide()
    parts = [as_pcm(part, RATE) for part in np.array_split(said, 5)]
    assert streamed_bytes([as_pcm(said, RATE)], audio_format) == streamed_bytes(parts, audio_format)
    assert whole_bytes(as_pcm(said, RATE), audio_format) == whole_bytes(as_pcm(said, RATE), audio_format)


@ALL
@pytest.mark.parametrize("rate", [1_000, 7_999, 11_025, 16_000, 37_800, 44_100, 192_000])
def test_every_rate_of_an_engine_can_be_had(audio_format, rate, as_pcm, decode_bytes):
    pcm = decode_bytes(whole_bytes(as_pcm(tone(220, 0.5, rate), rate), audio_format))
    assert pcm.rate == rate or audio_format is not AudioFormat.FLAC
    assert loudest_hz(np.array(pcm.samples, np.float32), pcm.rate) == pytest.approx(220, abs=8)


@ALL
def test_stereo_stays_stereo_and_more_channels_are_mixed(audio_format, as_pcm, decode_bytes, samples_of):
    left, right = tone(300, 0.5), tone(500, 0.5)
    stereo = decode_bytes(whole_bytes(as_pcm(interleave(left, right), 16_000, 2), audio_format))
    heard = samples_of(stereo)
    assert [loudest_hz(heard[:, 0], stereo.rate), loudest_hz(heard[:, 1], stereo.rate)] == pytest.approx(
        [300, 500], abs=8
    )
    assert decode_bytes(whole_bytes(as_pcm(interleave(left, left, left), 16_000, 3), audio_format)).channels == 1


@ALL
def test_samples_that_no_file_can_hold_are_bounded(audio_format, as_pcm, decode_bytes):
    wild = glide() * 4
    wild[100:200] = np.nan
    wild[200:300] = np.inf
    heard = np.array(decode_bytes(whole_bytes(as_pcm(wild, RATE), audio_format)).samples, np.float32)
    assert 0.9 < np.abs(heard).max() < 2  # a lossy format overshoots where it is clipped


@ALL
def test_an_answer_without_samples_is_encoded_all_the_same(audio_format, as_pcm):
    empty = as_pcm(np.zeros(0, np.float32), RATE)
    for data in (whole_bytes(empty, audio_format), streamed_bytes([empty], audio_format)):
        assert data.startswith(MAGIC[audio_format]) or data == b""


def test_a_large_answer_lies_in_a_file(as_pcm, decode_bytes):
    samples = np.tile(glide(), 20)
    assert 2 * len(samples) > SPOOL_BYTES
    with encode(as_pcm(samples, RATE), AudioFormat.FLAC).body as body:
        assert body.fileno() > 0
        assert decode_bytes(body.read()).frames == len(samples)


@ALL
def test_a_stream_that_nobody_wants_any_more_is_let_go_of_at_once(audio_format, as_pcm):
    stream = StreamEncoder(audio_format, RATE, 1)
    stream.feed(as_pcm(glide(), RATE))
    gc.collect()
    gc.disable()
    try:
        before = containers()
        stream.close()
        stream.close()
        assert containers() == before - 1
        assert stream.finish() == b""
    finally:
        gc.enable()
