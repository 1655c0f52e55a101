"""Audio of every kind through a real speech recogniser over HTTP: the cases AUD-*, SEC-05, -06 and -09."""

import io
import json
import wave

import numpy as np
import psutil
import pytest
import soundfile
import soxr

import audio_assets
from engine_server import words_of
from refusals import assert_refused, assert_unharmed

pytestmark = pytest.mark.engine

RATE = 16_000
UNBOUNDED = (0xFFFFFFFF, 0x7FFFFFFF)


@pytest.fixture(scope="session")
def speech(base):
    """The spoken sentence as mono samples at 16 kHz."""
    samples, rate = soundfile.read(io.BytesIO(base), dtype="float32")
    return soxr.resample(samples, rate, RATE).astype(np.float32)


@pytest.fixture(scope="session")
def clip(speech):
    """The spoken sentence as a plain WAV file."""
    return audio_assets.wav_bytes(speech)


def at_rate(speech, rate):
    return soxr.resample(speech, RATE, rate).astype(np.float32)


def extensible(speech, bits, valid_bits, tag=audio_assets.PCM, channels=1):
    data = audio_assets.chunk(b"data", audio_assets.sample_bytes(speech, bits, tag))
    return audio_assets.riff(audio_assets.extensible_fmt_chunk(RATE, channels, bits, valid_bits, tag), data)


def in_channel(speech, channel, channels):
    """The speech in one channel, silence in the others."""
    return audio_assets.interleave(*[speech if at == channel else np.zeros_like(speech) for at in range(channels)])


def with_stray_chunk(clip):
    """A chunk that claims 2 GB stands behind the data."""
    return clip + audio_assets.chunk(b"smpl", bytes(36), size=0x7FFFFFFF)


GOOD = {
    # AUD-01
    "sizes_ffffffff": lambda speech: audio_assets.wav_bytes(speech, size=UNBOUNDED[0]),
    "sizes_7fffffff": lambda speech: audio_assets.wav_bytes(speech, size=UNBOUNDED[1]),
    # AUD-03
    "extensible_s16": lambda speech: extensible(speech, 16, 16),
    "extensible_s24": lambda speech: extensible(speech, 24, 24),
    "extensible_f32": lambda speech: extensible(speech, 32, 32, audio_assets.FLOAT),
    "extensible_24_valid_in_32": lambda speech: extensible(speech, 32, 24),
    "extensible_centre_of_six": lambda speech: extensible(in_channel(speech, 2, 6), 16, 16, channels=6),
    # AUD-04
    "u8": lambda speech: audio_assets.wav_bytes(speech, bits=8),
    "s24": lambda speech: audio_assets.wav_bytes(speech, bits=24),
    "s32": lambda speech: audio_assets.wav_bytes(speech, bits=32),
    "f32": lambda speech: audio_assets.wav_bytes(speech, bits=32, tag=audio_assets.FLOAT),
    "f64": lambda speech: audio_assets.wav_bytes(speech, bits=64, tag=audio_assets.FLOAT),
    # AUD-06
    "mulaw_8k": lambda speech: audio_assets.wav_bytes(at_rate(speech, 8000), 8000, bits=8, tag=audio_assets.MULAW),
    "alaw_8k": lambda speech: audio_assets.wav_bytes(at_rate(speech, 8000), 8000, bits=8, tag=audio_assets.ALAW),
    "s16_8k": lambda speech: audio_assets.wav_bytes(at_rate(speech, 8000), 8000),
    # AUD-07
    "stereo_right_only": lambda speech: audio_assets.wav_bytes(in_channel(speech, 1, 2), channels=2),
    "stereo_same": lambda speech: audio_assets.wav_bytes(audio_assets.interleave(speech, speech), channels=2),
    "stereo_48k": lambda speech: audio_assets.wav_bytes(
        audio_assets.interleave(at_rate(speech, 48_000), at_rate(speech, 48_000)), 48_000, channels=2
    ),
    # AUD-08
    "mp3": lambda speech: audio_assets.soundfile_bytes(speech, RATE, "MP3"),
    "flac": lambda speech: audio_assets.soundfile_bytes(speech, RATE, "FLAC"),
    "ogg_flac": lambda speech: audio_assets.av_bytes(speech, RATE, "ogg", "flac"),
    "webm_of_a_recorder": lambda speech: audio_assets.streamed_webm(at_rate(speech, 48_000)),
    "m4a": lambda speech: audio_assets.av_bytes(speech, RATE, "ipod", "aac"),
    # SEC-06
    "stray_chunk_of_2_gb": lambda speech: with_stray_chunk(audio_assets.wav_bytes(speech)),
}


@pytest.mark.parametrize("name", GOOD)
def test_the_words_and_the_duration_are_heard_in_any_file(engines, speech, name):
    answer = engines.transcribe(GOOD[name](speech), response_format="verbose_json")

    assert answer.status_code == 200, answer.text
    assert answer.json()["duration"] == pytest.approx(len(speech) / RATE, abs=0.1)
    assert words_of(answer.json()["text"]) == words_of(engines.SENTENCE)


def test_our_own_wav_is_heard_again(engines, base):
    with wave.open(io.BytesIO(base)) as sound:
        duration_s = sound.getnframes() / sound.getframerate()

    answer = engines.transcribe(base, response_format="verbose_json").json()

    assert answer["duration"] == pytest.approx(duration_s, abs=0.01)
    assert words_of(answer["text"]) == words_of(engines.SENTENCE)


def test_our_own_streamed_wav_is_heard_again(engines, base):
    streamed = engines.speak(engines.SENTENCE, stream_format="audio").content

    assert int.from_bytes(streamed[4:8], "little") == 0xFFFFFFFF
    assert streamed[44:] == base[44:]
    answer = engines.transcribe(streamed, response_format="verbose_json").json()
    assert answer["duration"] == pytest.approx((len(base) - 44) / 2 / 22_050, abs=0.01)


@pytest.mark.parametrize("name", ["blob", "speech.mp3", "a.txt", "noending"])
def test_a_file_is_known_by_its_bytes_not_by_its_name(engines, clip, name):
    assert words_of(engines.transcribe(clip, name).json()["text"]) == words_of(engines.SENTENCE)


@pytest.mark.parametrize("model", ["whisper", "multilingual"])
@pytest.mark.parametrize("frames", [1, 16, 160, 800, 1584])
def test_a_clip_of_a_moment_has_its_true_duration(engines, model, frames):
    short = audio_assets.wav_bytes(audio_assets.tone(440, 0.2)[:frames])

    answer = engines.transcribe(short, model=model, response_format="verbose_json")

    assert answer.status_code == 200, answer.text
    assert answer.json()["duration"] == pytest.approx(frames / RATE, abs=0.001)


def noise(seconds, amplitude=0.01):
    return (np.random.default_rng(3).standard_normal(round(seconds * RATE)) * amplitude).astype(np.float32)


@pytest.mark.parametrize("model", ["whisper", "multilingual"])
@pytest.mark.parametrize("sound", [np.zeros(6 * RATE, np.float32), noise(6)], ids=["silence", "noise"])
def test_silence_is_no_words_and_no_null(engines, model, sound):
    fields = {"timestamp_granularities[]": ["word", "segment"]}
    file = audio_assets.wav_bytes(sound)

    plain = engines.transcribe(file, model=model)
    verbose = engines.transcribe(file, model=model, response_format="verbose_json", **fields)

    assert (plain.status_code, plain.json()["text"]) == (200, "")
    assert verbose.status_code == 200, verbose.text
    assert {name: verbose.json()[name] for name in ("text", "segments", "words")} == {
        "text": "",
        "segments": [],
        "words": [],
    }


def test_numbers_that_are_none_make_no_json_that_is_none(engines, speech):
    broken = speech.copy()
    broken[1000:1100] = np.nan
    broken[2000:2100] = np.inf
    file = audio_assets.wav_bytes(broken, bits=32, tag=audio_assets.FLOAT)

    answer = engines.transcribe(file, response_format="verbose_json")

    assert answer.status_code in (200, 400)
    json.loads(answer.text, parse_constant=pytest.fail)


@pytest.mark.parametrize("gain", [14, 2**15])
def test_samples_over_full_scale_are_heard(engines, speech, gain):
    file = audio_assets.wav_bytes(speech * gain, bits=32, tag=audio_assets.FLOAT)

    assert words_of(engines.transcribe(file).json()["text"]) == words_of(engines.SENTENCE)


def test_files_that_are_no_audio_are_refused_and_cost_no_memory(engines, clip):
    memory = psutil.Process(engines.process.process.pid).memory_info
    assert engines.transcribe(clip).status_code == 200
    before = memory().rss

    for name, file in audio_assets.bad_audio().items():
        assert_refused(engines.transcribe(file, f"{name}.wav"), 400, param="file")
        assert engines.client.get("/health").status_code == 200

    assert memory().rss - before < 64 * 1024 * 1024
    assert_unharmed(engines.process, engines.client, lambda: engines.transcribe(clip))


def test_a_playlist_never_opens_what_it_names(engines, clip):
    (engines.process.folder / "antiphon_marker.wav").write_bytes(clip)

    for playlist in (
        b"ffconcat version 1.0\nfile antiphon_marker.wav\n",
        b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nantiphon_marker.wav\n#EXT-X-ENDLIST\n",
    ):
        assert_refused(engines.transcribe(playlist), 400, param="file")
