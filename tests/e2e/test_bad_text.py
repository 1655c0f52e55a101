"""Texts of every kind through a real voice over HTTP: the cases TTS-01 to -08, SEC-07 and API-08."""

import io
import itertools
import wave

import httpx
import pytest

from engine_server import SPEECH
from refusals import assert_refused, assert_unharmed
from server_process import HANG_GUARD_S

pytestmark = pytest.mark.engine


def seconds(answer):
    """How long a whole WAV answer sounds; its header tells the truth and there is one of it."""
    assert answer.status_code == 200, answer.text
    assert answer.content.count(b"RIFF") == 1
    with wave.open(io.BytesIO(answer.content)) as sound:
        assert sound.getnframes() == (len(answer.content) - 44) // 2
        return sound.getnframes() / sound.getframerate()


SILENT = {
    "empty": "",
    "spaces": "   ",
    "newlines": "\n\n\t\n",
    "zero_width": "\u200b\u200d\ufeff",
    "punctuation": "...!?,;:-\u2014",
    "quotes": "\"'\u201c\u201d()",
}


@pytest.mark.parametrize("name", SILENT)
@pytest.mark.parametrize("fields", [{}, {"stream_format": "audio"}, {"stream_format": "sse"}], ids=str)
def test_a_text_with_nothing_to_say_is_refused_before_any_answer(engines, name, fields):
    assert_refused(engines.speak(SILENT[name], **fields), 400, param="input")
    assert_unharmed(engines.process, engines.client, lambda: engines.speak("Fine."))


SPEAKABLE = {
    "emoji_alone": "\U0001f600\U0001f44d\U0001f3fd\u2764\ufe0f",
    "emoji_between": "Good \U0001f600 morning.",
    "markup": '<speak>Hello <break time="500ms"/> world &amp; more</speak>',
    "many_scripts": "Hello, \u043f\u0440\u0438\u0432\u0435\u0442, \u3053\u3093, \u05e9\u05dc\u05d5\u05dd.",
    "brackets": "Read [[ this ]] as it is.",
    "digits": "1234567890123456789012345678901234567890",
}


@pytest.mark.parametrize("name", SPEAKABLE)
def test_an_odd_text_is_spoken(engines, name):
    assert seconds(engines.speak(SPEAKABLE[name])) > 0.3


def test_audio_grows_with_a_text_that_has_no_full_stop(engines):
    line = "the quick brown fox jumps over the lazy dog and then "

    assert seconds(engines.speak(line * 6)) > 4 * seconds(engines.speak(line))


@pytest.mark.parametrize("word", ["a" * 200, "\u4f60\u597d" * 10], ids=["letters", "chinese"])
def test_an_unbroken_run_is_spoken(engines, word):
    assert seconds(engines.speak(word)) > 3


def test_every_sentence_is_heard(engines):
    assert seconds(engines.speak("First sentence. Second sentence.")) > 1.5 * seconds(engines.speak("First sentence."))


def test_every_line_is_heard(engines):
    assert seconds(engines.speak("There are four:\nApple\nBanana\nOrange")) > 1.5 * seconds(
        engines.speak("There are four:")
    )


@pytest.mark.parametrize("text", ["First sentence. Second sentence.", "One.\r\nTwo.\r\n"])
def test_pcm_is_the_wav_without_its_header(engines, text):
    pcm = engines.speak(text, response_format="pcm").content

    assert b"RIFF" not in pcm
    assert engines.speak(text).content[44:] == pcm


def test_numbers_are_spoken(engines):
    assert seconds(engines.speak("3 4 5 1835 1865")) > 1.5 * seconds(engines.speak("3 4 5"))


def test_speed_changes_the_length_all_the_way(engines):
    lengths = [seconds(engines.speak("This is a test of speed.", speed=speed)) for speed in (0.25, 0.5, 1, 2.0, 3.0, 4)]

    assert all(longer > shorter for longer, shorter in itertools.pairwise(lengths))


@pytest.mark.parametrize("speed", [0, -1, 0.1, 0.24, 4.01, 1e9, "1.5", True, [1]], ids=str)
def test_another_speed_is_refused(engines, speed):
    assert_refused(engines.speak("Speed.", speed=speed), 400, param="speed")


@pytest.mark.parametrize("name", ["ogg", "mp4", "pcm16", ""])
def test_an_unknown_format_is_refused_with_the_supported_ones(engines, name):
    refusal = assert_refused(engines.speak("Hello.", response_format=name), 400, param="response_format")

    assert "wav, mp3, opus, flac, aac, pcm, json" in refusal.message


@pytest.mark.parametrize("voice", ["default", "en_US-joe-medium", "", None])
def test_the_voice_goes_by_its_own_name(engines, voice):
    assert engines.speak("Hello.", voice=voice).content == engines.speak("Hello.").content


@pytest.mark.parametrize("voice", ["nobody", "no such+male1", "../../../../etc/passwd", "file:///etc/hostname", "1"])
def test_an_unknown_voice_is_refused_with_those_that_there_are(engines, voice):
    refusal = assert_refused(engines.speak("Hello.", voice=voice), 400, param="voice")

    assert "en_US-joe-medium" in refusal.message


def test_a_book_is_refused_by_its_length(engines):
    refused = engines.speak("This is one sentence of a long book. " * 2800)

    assert "100000" in assert_refused(refused, 413, param="input", code="too_large").message


HOSTILE = {
    "dots": "a." * 49_999,
    "at": "a@" * 30_000,
    "digits": "1," * 40_000,
    "run": "a" * 99_999,
    "space": " " * 99_990 + "a",
    "book": "This is one sentence of a long book. " * 2700,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_long_text_begins_to_sound_at_once_and_ends_with_its_client(engines, name):
    body = {"model": "piper", "input": HOSTILE[name], "stream_format": "audio", "response_format": "pcm"}

    with (
        httpx.Client(base_url=engines.process.url, timeout=HANG_GUARD_S) as leaver,
        leaver.stream("POST", SPEECH, json=body) as answer,
    ):
        assert answer.status_code == 200
        assert len(next(answer.iter_raw())) > 0
        assert engines.client.get("/health").status_code == 200

    assert seconds(engines.speak("The next.", busy_timeout_ms=30_000)) > 0.3
