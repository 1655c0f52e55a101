"""SillyTavern, its providers "OpenAI compatible", as its server passes them on: `src/endpoints/openai.js` at 00a72b5a.

Speech (`custom/generate-voice`): always mp3, a voice and a speed; without a key the header is `Bearer ` and nothing.
Transcription (`transcribe-audio`, and `openai-compatible.js` of Extension-Speech-Recognition at 2265df99): a form with
the file first, always called audio.wav, then the model and perhaps a language. The endpoint is typed in whole.
"""

import json

import pytest

import audio_assets
from clients_forms import form_of, pieces_of

KEYS = [{"Authorization": "Bearer secret"}, {"Authorization": "Bearer "}]


@pytest.mark.parametrize("key", KEYS, ids=["key", "no_key"])
@pytest.mark.parametrize("voice", ["alloy", "echo", "fable", "onyx", "nova", "shimmer"])
def test_every_voice_of_its_list_speaks_mp3(server, key, voice):
    fields = {"input": "Hello.", "response_format": "mp3", "voice": voice, "speed": 1, "model": "tts-1"}

    answer = server.send(
        "POST", "/v1/audio/speech", {"Content-Type": "application/json", **key}, json.dumps(fields).encode()
    )

    assert (answer.status, answer.headers["content-type"]) == (200, "audio/mpeg")
    assert answer.body[:1] == b"\xff"


def test_a_text_of_nothing_is_refused_in_words(server):
    fields = {"input": "", "response_format": "mp3", "voice": "alloy", "speed": 1, "model": "tts-1"}

    answer = server.send("POST", "/v1/audio/speech", {"Content-Type": "application/json"}, json.dumps(fields).encode())

    assert (answer.status, answer.json()["error"]["param"]) == (400, "input")


@pytest.mark.parametrize("key", KEYS, ids=["key", "no_key"])
@pytest.mark.parametrize("fields", [{}, {"language": "en"}], ids=["detected", "english"])
def test_a_recording_is_transcribed(server, key, fields):
    recording = audio_assets.wav_bytes(audio_assets.tone(440, 0.5))
    kind, body = form_of({"model": "whisper-1", **fields}, ("audio.wav", recording, "audio/wav"), file_first=True)

    answer = server.send("POST", "/v1/audio/transcriptions", {"Content-Type": kind, **key}, pieces_of(body))

    assert answer.status == 200, answer.body
    assert answer.json()["text"]
