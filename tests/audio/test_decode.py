"""Containers by their content, and limits (cases AUD-06, AUD-08, AUD-11, AUD-12)."""

import io

import numpy as np
import pytest
import soundfile

from antiphon.audio.decode import DecodeLimits, decode
from antiphon.vocabulary.errors import InvalidRequest, ServerBusy, TooLarge
from audio_assets import (
    av_bytes,
    bad_audio,
    good_audio_variants,
    interleave,
    loudest_hz,
    sample_bytes,
    soundfile_bytes,
    streamed_webm,
    tone,
    wav_bytes,
)

VARIANTS = good_audio_variants(tone(440, 1))
BAD = bad_audio()


def id3(payload: bytes) -> bytes:
    size = len(payload)
    return b"ID3\x03\0\0" + bytes([size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127]) + payload


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_accepted_file_sounds_as_it_was_made(variant, decode_bytes, samples_of):
    pcm = decode_bytes(VARIANTS[variant])
    # AAC in raw frames keeps its encoder's delay: 2048 of 16000 samples at most.
    assert pcm.duration_s == pytest.approx(1, abs=0.13)
    assert pcm.rate == (48_000 if "opus" in variant else 16_000)
    samples = samples_of(pcm)[:, 0]
    assert loudest_hz(samples, pcm.rate) == pytest.approx(440, abs=2)
    assert np.sqrt(np.mean(samples**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.1)


@pytest.mark.parametrize("variant", ["wav_s16", "flac", "ogg_flac", "rf64", "w64", "aiff", "caf", "mka_s16"])
def test_a_lossless_file_keeps_every_sample(variant, decode_bytes, samples_of):
    expected = np.frombuffer(sample_bytes(tone(440, 1)), "<i2") / 2**15
    np.testing.assert_allclose(samples_of(decode_bytes(VARIANTS[variant]))[:, 0], expected, atol=2**-15)


@pytest.mark.parametrize("variant", ["mp3", "ogg_opus", "webm_opus"])
def test_a_codecs_padding_is_no_sound(variant, decode_bytes):
    assert decode_bytes(VARIANTS[variant]).duration_s == 1


@pytest.mark.parametrize("name", BAD)
def test_bad_audio_is_refused_before_anything_is_kept(name, decode_bytes):
    grown: list[int] = []
    with pytest.raises(InvalidRequest) as caught:
        decode_bytes(BAD[name], on_growth=grown.append)
    assert caught.value.param == "file"
    assert sum(grown) == 0


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("hls", "playlist"),
        ("text", "text"),
        ("html", "markup"),
        ("avi", "RIFF"),
        ("zero_bytes", "empty"),
        ("png", "picture"),
    ],
)
def test_a_refusal_names_what_was_seen_and_what_is_accepted(name, seen, decode_bytes):
    with pytest.raises(InvalidRequest, match=seen) as caught:
        decode_bytes(BAD[name])
    assert all(accepted in caught.value.message for accepted in ("wav", "flac", "ogg", "mp3", "m4a", "webm"))


@pytest.mark.parametrize("container", ["flac", "mp3", "adts"])
def test_a_tag_before_the_sound_is_skipped(container, decode_bytes):
    picture = np.random.default_rng(3).integers(0, 256, 50_000, dtype=np.uint8).tobytes()
    pcm = decode_bytes(id3(bytes(300)) + id3(picture) + VARIANTS[container])
    assert pcm.duration_s == pytest.approx(1, abs=0.13)


@pytest.mark.parametrize("lost", [1, 100, 333])
def test_an_mp3_that_begins_inside_a_frame_is_heard(lost, decode_bytes):
    assert decode_bytes(VARIANTS["mp3"][lost:]).duration_s == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000])
def test_an_mp3_of_every_rate_is_recognised(rate, decode_bytes):
    assert decode_bytes(soundfile_bytes(tone(440, 0.5, rate), rate, "MP3")).frames == rate // 2


def test_an_mp3_of_one_frame_is_recognised(decode_bytes):
    assert decode_bytes(soundfile_bytes(tone(440, 0.01), 16_000, "MP3")).frames == 160


def test_joined_files_of_different_rates_and_channels_play_at_the_first_ones(decode_bytes, samples_of):
    stereo = io.BytesIO()
    other = tone(440, 1, 44_100)
    soundfile.write(stereo, interleave(other, other).reshape(-1, 2), 44_100, format="MP3")
    pcm = decode_bytes(VARIANTS["mp3"] + stereo.getvalue())
    assert (pcm.rate, pcm.channels) == (16_000, 1)
    assert pcm.duration_s == pytest.approx(2, abs=0.2)
    assert loudest_hz(samples_of(pcm)[16_000:, 0], 16_000) == pytest.approx(440, abs=2)


def test_a_rate_that_changes_to_a_refused_one_is_refused(decode_bytes):
    joined = soundfile_bytes(tone(440, 1, 44_100), 44_100, "MP3") + VARIANTS["mp3"]
    with pytest.raises(InvalidRequest, match="44100 Hz"):
        decode_bytes(joined, DecodeLimits(max_seconds=60, max_rate=20_000))


@pytest.mark.parametrize("variant", ["wav_s16", "flac", "mp3", "webm_opus", "adts", "m4a_fragmented"])
def test_a_file_that_was_cut_off_gives_what_is_there(variant, decode_bytes):
    whole = VARIANTS[variant]
    assert 0.1 < decode_bytes(whole[: len(whole) // 2]).duration_s < 0.7


def test_a_codec_that_is_not_on_the_list_is_refused(decode_bytes):
    with pytest.raises(InvalidRequest, match=r"webm/mkv.*codec"):
        decode_bytes(av_bytes(tone(440, 0.5, 48_000), 48_000, "matroska", "ac3"))


@pytest.mark.parametrize("variant", ["wav_s16", "wav_streamed", "flac", "webm_opus"])
def test_audio_over_the_duration_limit_is_too_large(variant, decode_bytes):
    with pytest.raises(TooLarge, match=r"0\.9 seconds") as caught:
        decode_bytes(VARIANTS[variant], DecodeLimits(max_seconds=0.9))
    assert caught.value.param == "file"


def test_audio_of_exactly_the_limit_is_accepted(decode_bytes):
    assert decode_bytes(VARIANTS["wav_s16"], DecodeLimits(max_seconds=1)).duration_s == 1


@pytest.mark.parametrize("variant", ["wav_s16", "flac"])
def test_audio_over_the_size_limit_is_too_large(variant, decode_bytes):
    with pytest.raises(TooLarge, match="63999 bytes"):
        decode_bytes(VARIANTS[variant], DecodeLimits(max_seconds=60, max_bytes=63_999))


def test_a_wav_over_a_limit_is_refused_before_anything_is_kept(decode_bytes):
    grown: list[int] = []
    with pytest.raises(TooLarge):
        decode_bytes(wav_bytes(tone(440, 30)), DecodeLimits(max_seconds=29), grown.append)
    assert grown == []


@pytest.mark.parametrize("write", [wav_bytes, lambda samples: soundfile_bytes(samples, 48_000, "FLAC"), streamed_webm])
def test_growth_is_told_in_full_and_in_bounded_blocks(write, decode_bytes):
    grown: list[int] = []
    pcm = decode_bytes(write(tone(440, 10, 48_000)), on_growth=grown.append)
    assert sum(grown) == pcm.samples.nbytes
    assert max(grown) <= 1024 * 1024


@pytest.mark.parametrize("variant", ["wav_s16", "mp3"])
def test_a_refusal_of_growth_ends_the_decoding(variant):
    def refuse(_size: int) -> None:
        raise ServerBusy("the audio in flight is over its budget")

    body = io.BytesIO(VARIANTS[variant])
    with pytest.raises(ServerBusy):
        decode(body, DecodeLimits(max_seconds=60), refuse)
    assert not body.closed


def test_audio_above_the_spill_size_is_the_same(decode_bytes, samples_of):
    samples = np.tile(tone(440, 1), 300)
    pcm = decode_bytes(wav_bytes(samples), DecodeLimits(max_seconds=300))
    np.testing.assert_allclose(samples_of(pcm)[-16_000:, 0], samples[-16_000:], atol=2**-15)
    assert pcm.duration_s == 300


def test_where_the_body_stands_does_not_matter(decode_bytes):
    body = io.BytesIO(streamed_webm(tone(440, 1, 48_000)))
    body.seek(500)
    assert decode(body, DecodeLimits(max_seconds=60)).duration_s == 1
