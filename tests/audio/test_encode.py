"""The bytes of an answer (cases AUD-01 and TTS-05)."""

import io
import struct

import numpy as np
import pytest
import soundfile

from antiphon.audio.encode import SPOOL_BYTES, StreamEncoder, encode
from antiphon.ports.codec import AudioFormat
from audio_assets import interleave, tone

TONE = tone(440, 0.5, 22_050)


@pytest.mark.parametrize(("channels", "samples"), [(1, TONE), (2, interleave(TONE, TONE / 2))])
def test_a_whole_wav_carries_its_true_sizes(channels, samples, as_pcm):
    encoded = encode(as_pcm(samples, 22_050, channels), AudioFormat.WAV)
    data = encoded.body.read()
    assert encoded.content_type == "audio/wav"
    assert encoded.size_bytes == len(data) == 44 + 2 * len(samples)
    assert struct.unpack("<4sI4s4sIHHIIHH4sI", data[:44]) == (
        b"RIFF", len(data) - 8, b"WAVE", b"fmt ", 16, 1, channels, 22_050, 44_100 * channels, 2 * channels, 16,
        b"data", len(data) - 44,
    )  # fmt: skip
    read, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    assert rate == 22_050
    np.testing.assert_allclose(read.ravel(), samples, atol=2**-15)


def test_pcm_is_the_samples_alone(as_pcm):
    wav, pcm = (encode(as_pcm(TONE), audio_format) for audio_format in (AudioFormat.WAV, AudioFormat.PCM))
    assert pcm.content_type == "audio/pcm"
    assert pcm.body.read() == wav.body.read()[44:]
    assert pcm.size_bytes == 2 * len(TONE)


def test_samples_are_rounded_and_clipped(as_pcm):
    wild = np.array([0, 1, -1, 2, -2, 0.6 / 2**15, -0.4 / 2**15, np.nan, np.inf], np.float32)
    samples = np.frombuffer(encode(as_pcm(wild), AudioFormat.PCM).body.read(), "<i2")
    assert samples.tolist() == [0, 32_767, -32_768, 32_767, -32_768, 1, 0, 0, 0]


def test_what_is_encoded_decodes_to_the_same_integers(as_pcm, decode_bytes, samples_of):
    integers = np.arange(-(2**15), 2**15)
    encoded = encode(as_pcm(integers / 2**15), AudioFormat.WAV)
    np.testing.assert_array_equal(samples_of(decode_bytes(encoded.body.read()))[:, 0] * 2**15, integers)


def test_a_large_answer_is_whole_and_lies_in_a_file(as_pcm):
    samples = np.tile(TONE, 60)
    encoded = encode(as_pcm(samples), AudioFormat.PCM)
    with encoded.body as body:
        assert encoded.size_bytes == 2 * len(samples) > SPOOL_BYTES
        assert body.fileno() > 0
        assert body.read() == encode(as_pcm(TONE), AudioFormat.PCM).body.read() * 60


@pytest.mark.parametrize("audio_format", [AudioFormat.WAV, AudioFormat.PCM])
def test_a_stream_is_one_header_and_the_samples_of_the_whole(audio_format, as_pcm):
    stream = StreamEncoder(audio_format, 16_000, 1)
    header = stream.header()
    body = b"".join(stream.feed(as_pcm(part)) for part in np.array_split(TONE, 7))
    whole = encode(as_pcm(TONE), audio_format)
    assert len(header) + len(body) == whole.size_bytes
    assert body == whole.body.read()[len(header) :]
    assert stream.content_type == whole.content_type


def test_a_streamed_wav_says_that_its_sizes_are_unknown_and_is_accepted_back(as_pcm, decode_bytes):
    stream = StreamEncoder(AudioFormat.WAV, 16_000, 1)
    header = stream.header()
    assert header[4:8] == header[40:44] == b"\xff\xff\xff\xff"
    assert decode_bytes(header + stream.feed(as_pcm(TONE))).frames == len(TONE)


@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (16_000, 2)])
def test_a_stream_refuses_audio_of_another_format(rate, channels, as_pcm):
    with pytest.raises(ValueError, match="mid-stream"):
        StreamEncoder(AudioFormat.WAV, 16_000, 1).feed(as_pcm(TONE[:100], rate, channels))
