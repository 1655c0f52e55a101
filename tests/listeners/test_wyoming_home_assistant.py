"""Home Assistant's own sequences of events, restated from its integration `wyoming`, over TCP as it does."""

import asyncio

import pytest
from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.info import Describe, Info
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

from wyoming_stage import HEARD, wyoming_server

TONE_FRAMES = 1600
MICROPHONE = [bytes(2048)] * 8


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with wyoming_server(tmp_path_factory.mktemp("wyoming"), tcp=True) as server:
        host, _, port = server.uri.removeprefix("tcp://").rpartition(":")
        yield host, int(port)


async def test_it_sets_itself_up(address):
    async with AsyncTcpClient(*address) as client:
        await client.write_event(Describe().event())
        while not Info.is_type((event := await client.read_event()).type):
            pass
    info = Info.from_event(event)
    assert {model.name for model in info.asr[0].models if model.installed} == {"ear"}
    assert {voice.description or voice.name for voice in next(it for it in info.tts if it.installed).voices} == {
        "voice"
    }
    assert info.satellite is None


async def test_it_has_a_voice_command_heard(address):
    async with AsyncTcpClient(*address) as client:
        await client.write_event(Transcribe(language="en").event())
        await client.write_event(AudioStart(**HEARD).event())
        for piece in MICROPHONE:
            await client.write_event(AudioChunk(**HEARD, audio=piece).event())
        await client.write_event(AudioStop().event())
        while not Transcript.is_type((event := await client.read_event()).type):
            pass
    assert Transcript.from_event(event).text.startswith("ear|")


async def test_it_has_a_message_said(address):
    chunks = []
    async with AsyncTcpClient(*address) as client:
        voice = SynthesizeVoice(name="voice", speaker=None)
        await client.write_event(Synthesize(text="The light is on.", voice=voice).event())
        while not AudioStop.is_type((event := await client.read_event()).type):
            if AudioChunk.is_type(event.type):
                chunks.append(AudioChunk.from_event(event))
    assert {(chunk.rate, chunk.width, chunk.channels) for chunk in chunks} == {tuple(HEARD.values())}
    assert sum(chunk.samples for chunk in chunks) == TONE_FRAMES


async def test_it_has_an_answer_said_while_it_is_made_up(address):
    pieces = ["The light in the kitchen", " is on. The one in the ", "hall is off", ". Good night!"]
    async with AsyncTcpClient(*address) as client:

        async def write():
            await client.write_event(SynthesizeStart(voice=SynthesizeVoice(name="voice")).event())
            for piece in pieces:
                await client.write_event(SynthesizeChunk(text=piece).event())
            await client.write_event(Synthesize(text="".join(pieces), voice=SynthesizeVoice(name="voice")).event())
            await client.write_event(SynthesizeStop().event())

        writing = asyncio.create_task(write())
        heads, sound = 0, b""
        while not SynthesizeStopped.is_type((event := await client.read_event()).type):
            if AudioStart.is_type(event.type):
                heads += 1
            elif AudioChunk.is_type(event.type):
                assert heads, "sound came before its format"
                sound += AudioChunk.from_event(event).audio
        await writing
    assert (heads, len(sound)) == (3, 3 * TONE_FRAMES * HEARD["width"])


async def test_it_is_not_left_waiting_by_an_error(address):
    async with AsyncTcpClient(*address) as client:
        await client.write_event(Synthesize(text="x", voice=SynthesizeVoice(name="a voice that was removed")).event())
        while (event := await client.read_event()) is not None:
            assert not AudioStop.is_type(event.type)
