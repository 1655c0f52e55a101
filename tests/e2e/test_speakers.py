"""Speakers by name and by number through real voices of a few kilobytes, over HTTP: the case TTS-10."""

import base64

import httpx
import pytest

from controlled_server import CLIP
from engine_server import SPEECH
from refusals import assert_refused, assert_unharmed
from server_process import HANG_GUARD_S, running_server

pytestmark = pytest.mark.engine

WAYS = [{}, {"stream_format": "audio"}, {"stream_format": "sse"}]
STILL = {"noise_scale": 0, "noise_w": 0}


@pytest.fixture(scope="module")
def speak(tmp_path_factory):
    """Asks the voices `one` and `three`, of so many speakers; of the latter `speaker1` is the default."""
    from tiny_piper import build_voice  # needs the engine's libraries

    folder = tmp_path_factory.mktemp("speakers")
    build_voice(folder / "one")
    build_voice(folder / "three", speakers=3, default_speaker_id=1)
    models = [{"id": name, "family": "piper", "task": "tts", "path": name, "lazy": True} for name in ("one", "three")]
    models[1]["voice_presets"] = {"alloy": {"voice": "speaker2"}, "numbered": {"voice": "0"}}
    with (
        running_server(folder, {"models": models}) as process,
        httpx.Client(base_url=process.url, timeout=HANG_GUARD_S) as client,
    ):

        def speak(model, **fields):
            return client.post(SPEECH, json={"model": model, "input": "hello", "options": STILL, **fields})

        speak.unharmed = lambda: assert_unharmed(process, client, lambda: speak("three"))
        yield speak


def sound(answer):
    assert answer.status_code == 200, answer.text
    return answer.content


@pytest.mark.parametrize("fields", WAYS, ids=str)
@pytest.mark.parametrize(("model", "voice"), [("one", "1"), ("one", "0"), ("three", "3"), ("three", "x"), ("one", "x")])
def test_an_unknown_speaker_is_refused_before_any_answer(speak, model, voice, fields):
    refusal = assert_refused(speak(model, voice=voice, **fields), 400, param="voice")

    assert "tiny" in refusal.message
    speak.unharmed()


@pytest.mark.parametrize("number", range(3))
def test_a_speaker_goes_by_name_and_by_number(speak, number):
    named = sound(speak("three", voice=f"speaker{number}"))

    assert sound(speak("three", voice=str(number))) == named
    assert named != sound(speak("three", voice=f"speaker{(number + 1) % 3}"))


@pytest.mark.parametrize(
    "voice", [{}, {"voice": None}, {"voice": ""}, {"voice": "default"}, {"voice": "tiny"}], ids=str
)
def test_no_speaker_is_the_default_speaker(speak, voice):
    assert sound(speak("three", **voice)) == sound(speak("three", voice="speaker1"))


def test_a_voice_of_one_speaker_speaks_by_its_own_name(speak):
    assert sound(speak("one", voice="tiny")) == sound(speak("one"))


def test_a_preset_may_name_a_speaker(speak):
    assert sound(speak("three", voice="alloy")) == sound(speak("three", voice="speaker2"))
    assert sound(speak("three", voice="numbered")) == sound(speak("three", voice="speaker0"))


def test_a_voice_of_piper_imitates_nobody(speak):
    recording = {"data": base64.b64encode(CLIP).decode()}

    assert "cannot" in assert_refused(speak("three", voice_ref=recording), 400, param="voice_ref").message
    speak.unharmed()
