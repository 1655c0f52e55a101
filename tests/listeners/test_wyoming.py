"""Wyoming's requests, from the library's own client to a real server and back."""

import pytest
from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.info import Describe, Info
from wyoming.ping import Ping
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeVoice

from wyoming_stage import HEARD, raw_event, sound_of, spoken, types_of, wyoming_server

TONE_BYTES = 3200
"""What the controlled voice says to any text: 0.1 s at 16 kHz."""

SPOKEN = ["audio-start", "audio-chunk", "audio-stop"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with wyoming_server(tmp_path_factory.mktemp("wyoming")) as server:
        yield server


@pytest.fixture
def voice(server):
    """The voice's steering, as it was found afterwards."""
    yield server.voice
    for hold in server.voice.path.glob("*.hold*"):
        hold.unlink()


async def test_describe_tells_of_the_models(server):
    async with server.client() as client:
        (event,) = await client.ask(Describe(), until="info")
    info = Info.from_event(event)
    (asr,), (tts,) = info.asr, info.tts
    assert [model.name for model in asr.models] == ["ear"]
    assert [voice.name for voice in tts.voices] == ["voice"]
    assert asr.supports_transcript_streaming
    assert tts.supports_synthesize_streaming
    assert all(it.installed for it in (asr, tts, *asr.models, *tts.voices))


async def test_a_ping_is_answered_with_its_text(server):
    async with server.client() as client:
        (pong,) = await client.ask(Ping("are you there"), until="pong")
    assert pong.data["text"] == "are you there"


async def test_an_audio_is_heard_in_pieces_and_whole(server):
    async with server.client() as client:
        events = await client.transcript("hello")
    assert types_of(events) == ["transcript-start", "transcript-chunk", "transcript", "transcript-stop"]
    whole = events[-2].data["text"]
    assert whole.startswith("ear|")
    assert whole.endswith("|hello")
    assert "".join(event.data["text"] for event in events if event.type == "transcript-chunk") == whole


async def test_the_first_words_come_while_the_speaker_still_speaks(server):
    server.ear.set("live.echo")
    start, first, second, stop = spoken(bytes(2 * 3200))[1:]
    try:
        async with server.client() as client:
            early = await client.ask(start, first, until="transcript-chunk")
            late = await client.ask(second, stop, until="transcript-stop")
    finally:
        server.ear.unset("live.echo")
    assert [event.data.get("text") for event in early] == [None, "1 "]
    assert [event.data.get("text") for event in late][-3:] == ["2 ", "1 2 ", None]


async def test_pieces_of_a_transcript_come_before_all_of_it_is_made(server):
    with server.ear.held("stream"):
        async with server.client() as client:
            await client.send(*spoken(bytes(3200), "early"))
            assert types_of([await client.next(), await client.next()]) == ["transcript-start", "transcript-chunk"]
            server.ear.release("stream")
            assert (await client.until("transcript-stop"))[-1].type == "transcript-stop"


@pytest.mark.parametrize("shape", [(8000, 1, 1), (16000, 2, 1), (44100, 2, 2), (48000, 3, 2), (22050, 4, 1)])
async def test_any_rate_and_width_and_channels_are_heard(server, shape):
    rate, width, channels = shape
    form = {"rate": rate, "width": width, "channels": channels}
    sound = AudioChunk(**form, audio=bytes(rate // 10 * width * channels))
    async with server.client() as client:
        events = await client.ask(AudioStart(**form), sound, AudioStop(), until="transcript-stop")
    assert Transcript.from_event(events[-2]).text.startswith("ear|")


async def test_an_audio_without_its_start_is_heard(server):
    async with server.client() as client:
        events = await client.ask(AudioChunk(**HEARD, audio=bytes(3200)), AudioStop(), until="transcript-stop")
    assert events[-1].type == "transcript-stop"


async def test_a_wish_is_for_one_audio(server):
    async with server.client() as client:
        first = await client.transcript("only once")
        second = await client.ask(*spoken(bytes(3200))[1:], until="transcript-stop")
    assert first[-2].data["text"].endswith("|only once")
    assert second[-2].data["text"].endswith("|")


async def test_a_model_is_asked_for_by_its_name(server):
    async with server.client() as client:
        (error,) = await client.ask(Transcribe(name="other"), *spoken(bytes(3200))[1:], until="error")
    assert error.data["code"] == "model_not_found"
    assert "other" in error.data["text"]


async def test_a_text_is_spoken_as_samples(server):
    async with server.client() as client:
        events = await client.ask(Synthesize("hello", SynthesizeVoice("voice")), until="audio-stop")
    assert types_of(events) == SPOKEN
    assert events[0].data == {"rate": 16000, "width": 2, "channels": 1, "timestamp": None}
    assert len(sound_of(events)) == TONE_BYTES
    assert server.voice.events("run", "hello")


async def test_speech_comes_before_all_of_it_is_made(server, voice):
    voice.hold("stream")
    async with server.client() as client:
        await client.send(Synthesize("slowly"))
        assert types_of([await client.next(), await client.next()]) == ["audio-start", "audio-chunk"]
        voice.release("stream")
        assert (await client.until("audio-stop"))[-1].type == "audio-stop"


async def test_the_first_sentence_is_heard_while_the_text_still_grows(server):
    async with server.client() as client:
        await client.send(SynthesizeStart(), SynthesizeChunk("The first one is wh"), SynthesizeChunk("ole. The sec"))
        first = await client.until("audio-stop")
        assert types_of(first) == SPOKEN
        assert server.voice.events("run", "The first one is whole.")
        await client.send(SynthesizeChunk("ond one"), SynthesizeStop())
        rest = await client.until("synthesize-stopped")
    assert types_of(rest) == [*SPOKEN, "synthesize-stopped"]
    assert server.voice.events("run", "The second one")


async def test_the_whole_text_that_follows_a_growing_one_is_not_said_again(server):
    text = "Said but once."
    async with server.client() as client:
        events = await client.ask(
            SynthesizeStart(), SynthesizeChunk(text), Synthesize(text), SynthesizeStop(), until="synthesize-stopped"
        )
    assert len(sound_of(events)) == TONE_BYTES
    assert len(server.voice.events("run", text)) == 1


async def test_a_growing_text_with_nothing_to_say_is_silence(server):
    async with server.client() as client:
        (event,) = await client.ask(
            SynthesizeStart(), SynthesizeChunk(" \n"), SynthesizeStop(), until="synthesize-stopped"
        )
    assert event.type == "synthesize-stopped"


async def test_one_connection_serves_one_request_after_another(server):
    async with server.client() as client:
        assert (await client.ask(Describe(), until="info"))[-1].type == "info"
        assert (await client.transcript())[-1].type == "transcript-stop"
        assert (await client.ask(Synthesize("and then"), until="audio-stop"))[-1].type == "audio-stop"


async def test_what_nobody_knows_is_passed_over(server):
    async with server.client() as client:
        await client.send_bytes(raw_event("select-program", data={"name": "x"}, payload_length=3) + b"abc")
        assert (await client.ask(Ping(), until="pong"))[-1].type == "pong"


async def test_a_ping_in_the_middle_of_an_audio_is_answered(server):
    start, first, second, stop = spoken(bytes(3200))[1:]
    async with server.client() as client:
        assert types_of(await client.ask(start, first, Ping(), until="pong")) == ["pong"]
        assert (await client.ask(second, stop, until="transcript-stop"))[-1].type == "transcript-stop"
