"""Whatever speech is answered in, whole or as a stream, says what it is, and Whisper hears in it what was spoken."""

import base64

import numpy as np
import pytest

import audio_assets
from engine_server import words_of

pytestmark = pytest.mark.engine

SENTENCE = "We walked along the river until the sun went down."
RATE = 22_050
FORMATS = {
    "wav": ("audio/wav", b"RIFF"),
    "mp3": ("audio/mpeg", b"\xff\xf3"),
    "opus": ("audio/opus", b"OggS"),
    "flac": ("audio/flac", b"fLaC"),
    "aac": ("audio/aac", b"\xff\xf1"),
    "pcm": ("audio/pcm", b""),
}
"""Each format's type, and how its files begin."""


def heard(engines, name, body):
    """What Whisper hears in a file; one that has no header gets one."""
    if name == "pcm":
        body = audio_assets.wav_bytes(np.frombuffer(body, "<i2").astype(np.float32) / 32_768, RATE)
    answer = engines.transcribe(body, f"a.{name}")
    assert answer.status_code == 200, answer.text
    return words_of(answer.json()["text"])


@pytest.mark.parametrize("fields", [{}, {"stream_format": "audio"}], ids=["whole", "stream"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_heard_like_the_wav(engines, name, fields):
    answer = engines.speak(SENTENCE, response_format=name, **fields)

    content_type, magic = FORMATS[name]
    assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)
    assert answer.content.startswith(magic)
    assert answer.content.count(b"RIFF") == (name == "wav")
    assert heard(engines, name, answer.content) == words_of(SENTENCE)


def test_json_holds_the_wav(engines):
    answer = engines.speak(SENTENCE, response_format="json")

    assert answer.headers["content-type"] == "application/json"
    assert base64.b64decode(answer.json()["audio"], validate=True) == engines.speak(SENTENCE).content
