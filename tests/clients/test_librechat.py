"""LibreChat, provider "openai" for both directions: `api/server/services/Files/Audio` at commit 00b3bc32.

`STTService.js`: axios posts a form with the file first, named after its type, and of no stated length, so it is
chunked; the answer's `text` must be there. `TTSService.js`: `input`, `model`, `voice` and a `backend` of the
configuration, never a format; the answer is passed on as audio/mpeg, to players that are fed nothing else. A long text
comes in pieces, whose answers are put behind each other.
"""

import json

import pytest

import audio_assets
from antiphon.audio.decode import DecodeLimits, decode
from clients_forms import form_of, pieces_of

KEY = {"Authorization": "Bearer ${STT_API_KEY}"}
SPOKEN = {"Accept": "application/json, text/plain, */*", "Content-Type": "application/json", **KEY}


def spoken(server, **fields):
    body = json.dumps({"input": "Hello there.", "model": "tts-1", **fields}).encode()
    return server.send("POST", "/v1/audio/speech", SPOKEN, body)


@pytest.mark.parametrize("fields", [{"voice": "alloy"}, {"voice": "alloy", "backend": "openai"}, {}], ids=str)
def test_speech_is_the_mp3_that_it_is_passed_on_as(server, fields):
    answer = spoken(server, **fields)

    assert (answer.status, answer.headers["content-type"]) == (200, "audio/mpeg")
    assert answer.body[:1] == b"\xff"


def test_the_answers_to_the_pieces_of_a_text_are_one_mp3(server, tmp_path):
    pieces = [spoken(server, voice="alloy", input=text).body for text in ("One piece.", "Another one.")]

    file = tmp_path / "both.mp3"
    file.write_bytes(b"".join(pieces))
    with file.open("rb") as body:
        assert decode(body, DecodeLimits(max_seconds=60)).duration_s >= 0.2  # a tenth of a second each


@pytest.mark.parametrize(
    ("name", "kind", "container"),
    [("audio.webm", "audio/webm", "webm"), ("audio.m4a", "audio/mp4", "m4a"), ("audio.wav", "audio/wav", "wav")],
)
@pytest.mark.parametrize("fields", [{}, {"language": "en"}], ids=["detected", "english"])
def test_a_recording_is_transcribed_from_a_body_of_no_stated_length(server, name, kind, container, fields):
    tone = audio_assets.tone(440, 0.5, 48_000)
    recording = {
        "webm": lambda: audio_assets.streamed_webm(tone),
        "m4a": lambda: audio_assets.av_bytes(tone, 48_000, "ipod", "aac"),
        "wav": lambda: audio_assets.wav_bytes(tone, 48_000),
    }[container]()
    content_type, body = form_of({"model": "whisper-1", **fields}, (name, recording, kind), file_first=True)

    answer = server.send("POST", "/v1/audio/transcriptions", {"Content-Type": content_type, **KEY}, pieces_of(body))

    assert answer.status == 200, answer.body
    assert answer.json()["text"].strip()
