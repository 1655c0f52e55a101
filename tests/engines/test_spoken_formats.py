"""Whatever speech is answered in, Whisper hears in it what it hears in the wav."""

import pytest

from antiphon.audio.convert import convert
from antiphon.audio.decode import DecodeLimits, decode
from antiphon.audio.encode import encode
from antiphon.ports.codec import AudioFormat
from antiphon.vocabulary.tasks import TaskRequest
from antiphon_adapters.piper.session import PiperSession
from antiphon_adapters.whisper.session import WhisperSession
from engine_server import words_of

pytestmark = pytest.mark.engine

SENTENCE = "We walked along the river until the sun went down."


def test_every_format_transcribes_like_the_wav(piper: PiperSession, whisper: WhisperSession) -> None:
    spoken = piper.run(TaskRequest(text=SENTENCE)).audio
    assert spoken is not None
    heard = {}
    for audio_format in set(AudioFormat) - {AudioFormat.PCM}:  # which is the wav without its header
        with encode(spoken, audio_format).body as body:
            audio = convert(decode(body, DecodeLimits(max_seconds=60)), 16_000, 1)
        heard[audio_format] = words_of(whisper.run(TaskRequest(audio=audio)).text or "")
    assert heard == dict.fromkeys(heard, words_of(SENTENCE))
