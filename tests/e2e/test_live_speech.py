"""Live speech with real engines: what Piper says, Whisper hears while it is said."""

import base64
import io

import numpy as np
import openai
import pytest
import soundfile

from engine_server import words_of
from live_client import live_client, text_of
from server_process import HANG_GUARD_S

pytestmark = pytest.mark.engine

TALK = (
    "The weather is nice today, and we will walk to the river. In the evening we come home, and cook a meal for all of"
    " our friends. Tomorrow it is going to rain."
)
RATE = 24_000


@pytest.fixture(scope="module")
def talk(engines):
    """The talk as a speaker says it, with a moment of silence at its end."""
    return spoken(engines, TALK) + bytes(2 * RATE)


def spoken(engines, text):
    """A text as 16-bit samples."""
    samples, rate = soundfile.read(io.BytesIO(engines.speak(text).content), dtype="float32")
    frames = np.arange(0, len(samples), rate / RATE)
    return (np.interp(frames, np.arange(len(samples)), samples) * 32767).astype("<i2").tobytes()


def tenths(audio):
    """What a microphone gives at a time."""
    size = 2 * RATE // 10
    return [audio[start : start + size] for start in range(0, len(audio), size)]


def test_the_first_words_come_before_the_speaker_stops(engines, talk):
    pieces = tenths(talk)
    with live_client(engines.process.url, model="whisper", sample_rate=RATE) as client:
        for piece in pieces[: len(pieces) * 2 // 3]:
            client.say(piece)
        first = client.event()
        assert first["type"] == "transcript.text.delta"
        for piece in pieces[len(pieces) * 2 // 3 :]:
            client.say(piece)
        client.end()
        *deltas, done, mark = client.events()
    text = first["delta"] + text_of(deltas)
    assert (done["type"], done["text"], mark) == ("transcript.text.done", text, {})
    assert words_of(text) == words_of(TALK)


def test_the_official_realtime_client_hears_each_sentence_as_a_turn(engines, talk):
    heard = []
    with (
        openai.OpenAI(
            base_url=f"{engines.process.url}/v1", api_key="any", max_retries=0, timeout=HANG_GUARD_S
        ) as client,
        client.realtime.connect(model="whisper", extra_query={"intent": "transcription"}) as connection,
    ):
        for piece in tenths(talk):
            connection.input_audio_buffer.append(audio=base64.b64encode(piece).decode())
        while words_of(" ".join(it.transcript for it in heard)) != words_of(TALK):
            event = connection.recv()
            assert event.type != "error", event
            if event.type == "conversation.item.input_audio_transcription.completed":
                heard.append(event)
    assert len(heard) >= 1


@pytest.mark.parametrize(("silence_ms", "turns"), [(400, 2), (3000, 1)])
def test_a_realtime_client_says_which_pause_ends_a_turn(engines, silence_ms, turns):
    greeting, parting = (spoken(engines, text) for text in ("Good morning, my friend.", "See you in the evening."))
    said = greeting + bytes(2 * RATE) + parting  # a second of silence between them
    detection = {"type": "server_vad", "silence_duration_ms": silence_ms}
    heard = []
    with (
        openai.OpenAI(
            base_url=f"{engines.process.url}/v1", api_key="any", max_retries=0, timeout=HANG_GUARD_S
        ) as client,
        client.realtime.connect(model="whisper", extra_query={"intent": "transcription"}) as connection,
    ):
        connection.session.update(session={"type": "transcription", "audio": {"input": {"turn_detection": detection}}})
        for piece in tenths(said):
            connection.input_audio_buffer.append(audio=base64.b64encode(piece).decode())
        connection.input_audio_buffer.commit()
        connection.session.update(session={"type": "transcription"})  # it is answered once all of that has been
        updates = 0
        while updates < 2:
            event = connection.recv()
            assert event.type != "error", event
            updates += event.type == "session.updated"
            if event.type == "conversation.item.input_audio_transcription.completed":
                heard.append(event.transcript)
    assert len(heard) == turns
    assert words_of(" ".join(heard)) == "good morning my friend see you in the evening"


def test_who_speaks_in_the_right_channel_alone_is_heard(engines):  # AUD-07
    said = np.frombuffer(spoken(engines, "Good morning, my friend."), "<i2")
    with live_client(engines.process.url, model="whisper", sample_rate=RATE, channels=2) as client:
        client.say(np.column_stack([np.zeros_like(said), said]).tobytes())
        client.end()
        done = client.events()[-2]
    assert words_of(done["text"]) == "good morning my friend"


def test_a_live_transcript_is_the_one_of_an_upload(engines, talk):
    with live_client(engines.process.url, model="whisper", sample_rate=RATE) as client:
        client.say(talk)
        client.end()
        live = client.events()[-2]["text"]
    upload = io.BytesIO()
    soundfile.write(upload, np.frombuffer(talk, "<i2"), RATE, format="WAV", subtype="PCM_16")
    assert words_of(live) == words_of(engines.transcribe(upload.getvalue()).json()["text"])
