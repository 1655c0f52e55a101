"""Open WebUI, audio engine "openai" for both directions: `backend/open_webui/routers/audio.py` at commit 6adde203.

Speech: aiohttp posts the browser's JSON (`input`, `voice`) with the configured model put in. What comes is saved as mp3
and served as such. Transcription: requests posts the fields, then the file without a type of its own. The lists of
models and voices are asked for without a key and without a model, each entry must have `id`, each voice `name`.
"""

import json

import pytest

import audio_assets
from clients_forms import form_of

KEYS = [{"Authorization": "Bearer sk-any"}, {"Authorization": "Bearer "}]
USER = {"X-OpenWebUI-User-Name": "J%C3%B6rg", "X-OpenWebUI-User-Id": "1", "X-OpenWebUI-User-Role": "admin"}
BASES = ["/v1", "/v1/"]
"""The base URL as it is typed in the settings; nothing is taken off its end."""


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("key", KEYS, ids=["key", "no_key"])
def test_speech_comes_as_the_mp3_that_it_is_saved_as(server, base, key):
    body = json.dumps({"input": "Hello there.", "voice": "alloy", "model": "tts-1"}).encode()

    answer = server.send("POST", f"{base}/audio/speech", {"Content-Type": "application/json", **key, **USER}, body)

    assert (answer.status, answer.headers["content-type"]) == (200, "audio/mpeg")
    assert answer.body[:1] == b"\xff"


def test_parameters_of_the_settings_are_heeded(server):
    body = json.dumps({"input": "Hello.", "voice": "alloy", "model": "tts-1", "response_format": "opus"}).encode()

    answer = server.send("POST", "/v1/audio/speech", {"Content-Type": "application/json"}, body)

    assert (answer.headers["content-type"], answer.body[:4]) == ("audio/opus", b"OggS")


def test_the_message_of_a_refusal_can_be_shown(server):
    body = json.dumps({"input": "Hello.", "voice": "alloy", "model": "tts-9"}).encode()

    answer = server.send("POST", "/v1/audio/speech", {"Content-Type": "application/json"}, body)

    assert answer.status == 404
    assert "tts-9" in answer.json()["error"]["message"]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("key", KEYS, ids=["key", "no_key"])
@pytest.mark.parametrize("fields", [{}, {"language": "en"}], ids=["detected", "english"])
def test_a_recording_is_transcribed_whatever_its_part_says(server, base, key, fields):
    recording = audio_assets.streamed_webm(audio_assets.tone(440, 0.5, 48_000))
    kind, body = form_of({"model": "whisper-1", **fields}, ("recording.webm", recording, None))

    answer = server.send("POST", f"{base}/audio/transcriptions", {"Content-Type": kind, **key}, body)

    assert answer.status == 200, answer.body
    assert answer.json()["text"]


@pytest.mark.parametrize("base", BASES)
def test_it_offers_the_models_that_speak(server, base):
    models = server.send("GET", f"{base}/audio/models", {}).json()["models"]

    assert [model["id"] for model in models] == ["speaker", "duet", "tts-1"]


@pytest.mark.parametrize("base", BASES)
def test_it_offers_the_voices_of_all_of_them(server, base):
    voices = server.send("GET", f"{base}/audio/voices", {}).json()["voices"]

    assert {voice["id"]: voice["name"] for voice in voices} == {
        "default": "default",
        "speaker0": "speaker0",
        "speaker1": "speaker1",
        "tiny": "tiny",
    }
    assert {name for voice in voices for name in voice["models"]} == {"duet"}


@pytest.mark.parametrize("base", BASES)
def test_as_a_connection_it_finds_every_model(server, base):
    listed = server.send("GET", f"{base}/models", {**KEYS[0], "Content-Type": "application/json"}).json()

    assert {model["id"] for model in listed["data"]} == {"speaker", "listener", "duet", "tts-1", "whisper-1"}
    assert {model["object"] for model in listed["data"]} == {"model"}
