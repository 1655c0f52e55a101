"""Mixing and resampling (case AUD-07)."""

import numpy as np
import pytest
import soxr

from antiphon.audio.convert import BlockConverter, convert
from audio_assets import interleave, loudest_hz, tone

TONE = tone(440, 1)
SILENCE = np.zeros_like(TONE)


def test_audio_that_is_right_already_is_the_same_object(as_pcm):
    pcm = as_pcm(TONE)
    assert convert(pcm, 16_000, 1) is pcm


@pytest.mark.parametrize("channels", [(SILENCE, TONE), (TONE, SILENCE)])
def test_the_words_of_either_channel_are_heard(channels, as_pcm, samples_of):
    mono = convert(as_pcm(interleave(*channels), channels=2), 16_000, 1)
    assert mono.duration_s == 1
    np.testing.assert_allclose(samples_of(mono)[:, 0], TONE / 2, atol=1e-6)


def test_equal_channels_mix_to_themselves(as_pcm, samples_of):
    mono = convert(as_pcm(interleave(TONE, TONE, TONE), channels=3), 16_000, 1)
    np.testing.assert_allclose(samples_of(mono)[:, 0], TONE, atol=1e-6)


def test_mono_becomes_equal_channels(as_pcm, samples_of):
    stereo = samples_of(convert(as_pcm(TONE), 16_000, 2))
    np.testing.assert_array_equal(stereo, np.stack([TONE, TONE], axis=1))


def test_stereo_stays_stereo_when_resampled(as_pcm, samples_of):
    stereo = convert(as_pcm(interleave(tone(440, 1, 48_000), tone(880, 1, 48_000)), 48_000, 2), 16_000, 2)
    assert [round(loudest_hz(channel, 16_000)) for channel in samples_of(stereo).T] == [440, 880]


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000, 1_000])
def test_a_tone_keeps_its_pitch_and_duration(rate, as_pcm, samples_of):
    pcm = convert(as_pcm(tone(300, 2, rate), rate), 16_000, 1)
    assert pcm.frames == 32_000
    assert loudest_hz(samples_of(pcm)[:, 0], 16_000) == pytest.approx(300, abs=1)


def test_nothing_above_the_new_rates_half_is_folded_back(as_pcm, samples_of):
    pcm = convert(as_pcm(tone(11_000, 1, 48_000), 48_000), 16_000, 1)
    assert np.abs(samples_of(pcm)[100:-100]).max() < 1e-3


def test_the_whole_is_resampled_as_by_one_call(as_pcm, samples_of):
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, 300_000).astype(np.float32)
    pcm = convert(as_pcm(noise, 44_100), 16_000, 1)
    np.testing.assert_array_equal(samples_of(pcm)[:, 0], soxr.resample(noise, 44_100, 16_000))


@pytest.mark.parametrize("cut", [1, 7, 4_097, 100_000])
def test_the_result_does_not_depend_on_where_blocks_end(cut):
    noise = np.random.default_rng(2).uniform(-0.5, 0.5, 20_000).astype(np.float32)

    def through(step: int):
        converter = BlockConverter(44_100, 2, 16_000, 1)
        pieces = [
            piece
            for start in range(0, len(noise), 2 * step)
            for piece in converter.feed(noise[start : start + 2 * step])
        ]
        return np.concatenate([*pieces, converter.finish()])

    np.testing.assert_array_equal(through(cut), through(10_000))


@pytest.mark.parametrize("frames", [1, 2, 16, 160, 1584])
@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100, 48_000, 192_000])
def test_a_very_short_clip_is_rounded_to_a_frame_and_never_to_nothing(frames, rate, as_pcm):
    converted = convert(as_pcm(TONE[:frames], rate), 16_000, 1)
    assert converted.frames == pytest.approx(max(1, frames * 16_000 / rate), abs=0.51)


def test_no_audio_converts_to_no_audio(as_pcm):
    assert convert(as_pcm(TONE[:0], 8_000), 16_000, 1).frames == 0
