"""Home Assistant's integrations for OpenAI's API; its own protocol, Wyoming, has tests in tests/listeners.

`openai_conversation` (`stt.py` at commit 0c3b5f1f of home-assistant/core, `tts.py` at 057855a9): the official client,
speech through a streaming response with `instructions` and `speed`, voices and formats of its own lists; recordings as
wav or ogg with the language's base code and a prompt. `openai_tts` (sfortis/openai_tts, `openaitts_engine.py` at
917b2825, `voice_listing.py` at 25f66648): plain JSON, mp3 or opus, and the voices beside the address of the speech,
with a page size. `openai_whisper_cloud` (fabio-garavini/ha-openai-whisper-stt-api, `stt.py` at 04b15175): a wav with a
language such as `en`, a temperature and a prompt that may be empty.
"""

import json

import openai
import pytest

import audio_assets
from server_process import HANG_GUARD_S

VOICES = "Marin Cedar Alloy Ash Ballad Coral Echo Fable Nova Onyx Sage Shimmer Verse".lower().split()
MAGIC = {"mp3": b"\xff", "opus": b"OggS", "aac": b"\xff\xf1", "flac": b"fLaC", "wav": b"RIFF", "pcm": b""}


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0, timeout=HANG_GUARD_S) as it:
        yield it


def spoken(client, **fields):
    given = {"model": "tts-1", "voice": "marin", "input": "The light is on.", "instructions": "None", "speed": 1.0}
    with client.audio.speech.with_streaming_response.create(**{**given, **fields}) as answer:
        return b"".join(answer.iter_bytes())


@pytest.mark.parametrize("codec", MAGIC)
def test_every_format_of_its_list_is_spoken(client, codec):
    body = spoken(client, response_format=codec)

    assert body
    assert body.startswith(MAGIC[codec])


@pytest.mark.parametrize("voice", VOICES)
def test_every_voice_of_its_list_speaks(client, voice):
    assert spoken(client, voice=voice, response_format="mp3")


@pytest.mark.parametrize("container", ["wav", "ogg"])
def test_a_recording_of_either_of_its_formats_is_heard(client, container):
    tone = audio_assets.tone(440, 0.5)
    recording = (
        audio_assets.wav_bytes(tone) if container == "wav" else audio_assets.soundfile_bytes(tone, 16_000, "OGG")
    )

    heard = client.audio.transcriptions.create(
        model="whisper-1", file=(f"a.{container}", recording), response_format="json", language="en", prompt="Turn on"
    )

    assert heard.text.endswith("|Turn on")


def test_a_temperature_and_an_empty_prompt_are_taken(client):
    file = ("/tmp/tmp0abc.wav", audio_assets.wav_bytes(audio_assets.tone(440, 0.5)))

    heard = client.audio.transcriptions.create(model="whisper-1", file=file, language="en", temperature=0, prompt="")

    assert heard.text is not None


@pytest.mark.parametrize(("codec", "magic"), [("mp3", b"\xff"), ("opus", b"OggS")])
def test_the_custom_integration_is_spoken_to(server, codec, magic):
    fields = {"model": "tts-1", "input": "Done.", "voice": "shimmer", "response_format": codec, "speed": 1.0}
    headers = {"Content-Type": "application/json", "User-Agent": "HomeAssistant-OpenAI-TTS"}

    answer = server.send("POST", "/v1/audio/speech", headers, json.dumps(fields).encode())

    assert answer.status == 200, answer.body
    assert answer.body.startswith(magic)


def test_the_custom_integration_finds_the_voices_beside_the_speech(server):
    found = server.send("GET", "/v1/audio/voices?limit=100", {"User-Agent": "HomeAssistant-OpenAI-TTS"}).json()

    items = found.get("items") or found.get("data") or found.get("voices")
    assert {item["id"]: item["name"] for item in items}["speaker1"] == "speaker1"
