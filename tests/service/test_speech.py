"""Text to speech as a use case: what is refused, when, and what is spoken."""

import gc
import io
from dataclasses import replace

import pytest

from antiphon.ports.codec import AudioFormat
from antiphon.service.speech import SpeechOrder, SpeechService
from antiphon.vocabulary.errors import EngineError, InvalidRequest, TooLarge
from antiphon.vocabulary.spec import OptionSpec
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Task
from codec_stage import containers
from runtime_stage import Stage

SPEED = OptionSpec("speed", "number", "a factor", minimum=0.5, maximum=2)
STEPS = OptionSpec("steps", "integer", "how many", minimum=1)
STYLE = OptionSpec("style", "string", "which", choices=("calm", "glad"))


def service(stage: Stage, **capability: object) -> SpeechService:
    """The service over one model `a` that can what `capability` says."""
    inspect = stage.adapter.inspect
    stage.adapter.inspect = lambda spec: replace(inspect(spec), **capability)
    stage.model("a")
    return SpeechService(stage.runtime, stage.codec, max_text_chars=20)


async def spoken(service: SpeechService, order: SpeechOrder) -> bytes:
    with (await service.speak(order)).encoded.body as body:
        return body.read()


async def test_a_text_is_spoken_whole(stage):
    audio = await spoken(service(stage), SpeechOrder("a", "hello"))
    assert audio[:4] == b"RIFF"
    assert len(audio) == 44 + 2 * 1600


async def test_a_stream_holds_the_same_samples_as_the_whole_answer(stage):
    speech = service(stage)
    stream = await speech.stream(SpeechOrder("a", "hello", AudioFormat.PCM))
    pieces = [piece async for piece in stream]
    await stream.aclose()
    assert len(pieces) == 3
    assert b"".join(pieces) == await spoken(speech, SpeechOrder("a", "hello", AudioFormat.PCM))


async def test_a_wav_stream_begins_with_its_header(stage):
    stream = await service(stage).stream(SpeechOrder("a", "hello"))
    assert (await anext(stream))[:4] == b"RIFF"
    await stream.aclose()
    assert stream.content_type == "audio/wav"


@pytest.mark.parametrize("audio_format", [AudioFormat.FLAC, AudioFormat.OPUS])
async def test_a_compressed_stream_ends_with_what_its_encoder_still_held(stage, audio_format):
    stream = await service(stage).stream(SpeechOrder("a", "hello", audio_format))
    pieces = [piece async for piece in stream]
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await stream.aclose()
    assert (await stage.codec.decode(io.BytesIO(b"".join(pieces)))).duration_s == pytest.approx(0.1, abs=1e-4)


async def test_who_leaves_a_compressed_stream_leaves_neither_a_lease_nor_an_encoder(stage):
    stream = await service(stage).stream(SpeechOrder("a", "hello", AudioFormat.FLAC))
    await anext(stream)
    gc.collect()
    gc.disable()
    try:
        before = containers()
        await stream.aclose()
        await stage.codec._crew.call(len, "")
        assert containers() == before - 1
    finally:
        gc.enable()
    assert stage.runtime.view("a").active_slots == 0


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u200b\u200d", "\x00", "\u00a0\u2028"])
async def test_a_text_without_a_visible_sign_is_refused_and_loads_nothing(stage, text):
    speech = service(stage)
    for ask in (speech.speak, speech.stream):
        with pytest.raises(InvalidRequest) as caught:
            await ask(SpeechOrder("a", text))
        assert caught.value.param == "input"
    assert stage.state() is ModelState.UNLOADED


async def test_a_text_over_the_limit_is_too_large_and_one_at_the_limit_is_not(stage):
    speech = service(stage)
    with pytest.raises(TooLarge, match="21 characters; the limit is 20"):
        await speech.speak(SpeechOrder("a", "x" * 21))
    await spoken(speech, SpeechOrder("a", "x" * 20))


async def test_a_voice_that_the_model_lacks_is_refused_and_loads_nothing(stage):
    with pytest.raises(InvalidRequest, match="the model has alba, bryn") as caught:
        await service(stage, voices=("alba", "bryn")).speak(SpeechOrder("a", "hello", voice="coco"))
    assert caught.value.param == "voice"
    assert stage.state() is ModelState.UNLOADED


async def test_a_model_without_voices_says_so(stage):
    with pytest.raises(InvalidRequest, match="the model has none"):
        await service(stage).speak(SpeechOrder("a", "hello", voice="coco"))


async def test_a_voice_of_the_model_speaks(stage):
    await spoken(service(stage, voices=("alba",)), SpeechOrder("a", "hello", voice="alba"))


@pytest.mark.parametrize("language", ["en", "English", "en-US", "auto", None])
async def test_a_language_of_the_model_in_any_spelling_speaks(stage, language):
    await spoken(service(stage, languages=("en",)), SpeechOrder("a", "hello", language=language))


@pytest.mark.parametrize("language", ["de", "no language at all"])
async def test_another_language_is_refused(stage, language):
    with pytest.raises(InvalidRequest) as caught:
        await service(stage, languages=("en",)).speak(SpeechOrder("a", "hello", language=language))
    assert caught.value.param == "language"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"pitch": 1}, "options.pitch"),
        ({"steps": 0}, "options.steps"),
        ({"steps": 1.5}, "options.steps"),
        ({"steps": True}, "options.steps"),
        ({"steps": "1"}, "options.steps"),
        ({"steps": None}, "options.steps"),
        ({"style": "wild"}, "options.style"),
        ({"style": ["calm"]}, "options.style"),
        ({"speed": 3}, "options.speed"),
        ({"speed": float("nan")}, "options.speed"),
    ],
)
async def test_an_option_that_is_unknown_or_out_of_its_range_is_refused_by_its_name(stage, options, param):
    speech = service(stage, options=(SPEED, STEPS, STYLE))
    with pytest.raises(InvalidRequest) as caught:
        await speech.speak(SpeechOrder("a", "hello", options=options))
    assert caught.value.param == param
    assert stage.state() is ModelState.UNLOADED


async def test_options_within_their_ranges_are_taken(stage):
    speech = service(stage, options=(SPEED, STEPS, STYLE))
    await spoken(speech, SpeechOrder("a", "hello", speed=2, options={"steps": 10**30, "style": "glad"}))


async def test_the_natural_speed_asks_nothing_of_a_model_without_speeds(stage):
    speech = service(stage)
    await spoken(speech, SpeechOrder("a", "hello", speed=1.0))
    with pytest.raises(InvalidRequest) as caught:
        await speech.speak(SpeechOrder("a", "hello", speed=1.5))
    assert caught.value.param == "speed"


async def test_a_speed_is_checked_also_where_an_option_of_that_name_is_given(stage):
    speech = service(stage, options=(SPEED,))
    with pytest.raises(InvalidRequest) as caught:
        await speech.speak(SpeechOrder("a", "hello", speed=3.5, options={"speed": 1.5}))
    assert caught.value.param == "speed"


async def test_a_model_for_other_work_does_not_speak(stage):
    stage.model("b", task=Task.ASR)
    with pytest.raises(InvalidRequest, match="for asr, not for tts") as caught:
        await SpeechService(stage.runtime, stage.codec, 20).speak(SpeechOrder("b", "hello"))
    assert caught.value.param == "model"


async def test_an_encoder_that_cannot_be_opened_leaves_no_lease(stage, monkeypatch):
    def refuse(*_):
        raise EngineError("no encoder")

    speech = service(stage)
    monkeypatch.setattr(stage.codec, "open_encoder", refuse)
    with pytest.raises(EngineError) as caught:
        await speech.stream(SpeechOrder("a", "hello"))
    assert caught.value.__traceback__ is not None  # which keeps the stream: its lease is not left to its end
    assert stage.runtime.view("a").active_slots == 0
