"""Speech over Wyoming with real engines: what Piper says, Whisper hears."""

import pytest
from wyoming.asr import Transcribe
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient
from wyoming.info import Describe, Info
from wyoming.tts import Synthesize, SynthesizeVoice

from engine_server import EngineServer, words_of

pytestmark = pytest.mark.engine


async def read_until(client, kind):
    """The events up to one of this kind."""
    events = []
    while not kind.is_type((event := await client.read_event()).type):
        events.append(event)
    return [*events, event]


async def test_what_is_said_over_wyoming_is_heard_over_wyoming(engines):
    async with AsyncClient.from_uri(f"unix://{engines.process.folder}/w.sock") as client:
        await client.write_event(Describe().event())
        info = Info.from_event((await read_until(client, Info))[-1])
        assert {model.name: model.languages for model in info.asr[0].models}["whisper"] == ["en"]
        assert "en" in info.tts[0].voices[0].languages

        await client.write_event(Synthesize(EngineServer.SENTENCE, SynthesizeVoice("piper")).event())
        start, *chunks, _ = await read_until(client, AudioStop)

        await client.write_event(Transcribe(name="whisper", language="en").event())
        await client.write_event(AudioStart.from_event(start).event())
        for chunk in chunks:
            await client.write_event(AudioChunk.from_event(chunk).event())
        await client.write_event(AudioStop().event())
        while (event := await client.read_event()).type != "transcript":
            assert event.type in ("transcript-start", "transcript-chunk"), event
    assert words_of(event.data["text"]) == words_of(EngineServer.SENTENCE)
