"""Speech to text as a use case: everything that can be refused before a slot is taken is refused there."""

import asyncio
import io
import weakref
from dataclasses import replace

import pytest

from antiphon.service.transcription import TranscriptionOrder, TranscriptionService, WordTimes
from antiphon.vocabulary.errors import InvalidRequest, ModelNotFound
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Task
from runtime_stage import drained, words_of

NOISE = b"certainly no audio"


class Watched(io.BytesIO):
    """A body that tells whether it was read."""

    was_read = False

    def read(self, *args):
        self.was_read = True
        return super().read(*args)


class Owner:
    """Lives for as long as its audio does."""


class WatchedDecoder:
    """Decodes as the codec does; `life` tells whether anybody still has what it decoded last."""

    def __init__(self, codec):
        self._codec = codec

    async def decode(self, body, wait_s=0):
        owner = Owner()
        self.life = weakref.ref(owner)
        return replace(await self._codec.decode(body, wait_s), owner=owner)


@pytest.fixture
def service(stage):
    return TranscriptionService(stage.runtime, stage.codec)


async def test_a_file_is_transcribed_at_the_engines_rate_and_its_own_length_is_told(stage, service, wav):
    stage.model(task=Task.ASR)
    transcript = await service.transcribe(TranscriptionOrder("a", prompt="hello"), wav(4000), lambda it: it)
    assert transcript.result.text.endswith("|hello")
    assert transcript.duration_s == 0.5
    assert transcript.result.segments[0].end_sample == 8000


async def test_a_transcript_is_rendered_while_its_slot_is_held(stage, service, wav):
    stage.model(task=Task.ASR)
    order = TranscriptionOrder("a")
    assert await service.transcribe(order, wav(), lambda _: stage.runtime.view("a").active_slots) == 1


async def test_a_transcript_comes_in_pieces(stage, service, wav):
    stage.model(task=Task.ASR)
    assert words_of(await drained(await service.stream(TranscriptionOrder("a", prompt="hello"), wav()))).endswith(
        "|hello"
    )


async def test_bad_audio_is_refused_while_the_only_slot_is_busy(stage, service, wav):
    checkpoint = stage.model(task=Task.ASR)
    with checkpoint.held("run"):
        running = asyncio.ensure_future(service.transcribe(TranscriptionOrder("a"), wav(), lambda it: it))
        await checkpoint.await_for("run")
        with pytest.raises(InvalidRequest) as caught:
            await service.transcribe(TranscriptionOrder("a"), io.BytesIO(NOISE), lambda it: it)
        assert caught.value.param == "file"
    await running


async def test_bad_audio_loads_nothing(stage, service):
    stage.model(task=Task.ASR)
    with pytest.raises(InvalidRequest):
        await service.stream(TranscriptionOrder("a"), io.BytesIO(NOISE))
    assert stage.state() is ModelState.UNLOADED
    assert stage.runtime.view("a").active_slots == 0


@pytest.mark.parametrize("ask", ["transcribe", "stream"])
async def test_an_unknown_model_is_refused_before_anything_is_decoded(service, ask):
    body = Watched(NOISE)
    rest = (lambda it: it,) if ask == "transcribe" else ()
    with pytest.raises(ModelNotFound):
        await getattr(service, ask)(TranscriptionOrder("nobody"), body, *rest)
    assert not body.was_read


async def test_an_unknown_language_is_refused_before_anything_is_decoded(stage, service):
    stage.model(task=Task.ASR)
    body = Watched(NOISE)
    with pytest.raises(InvalidRequest) as caught:
        await service.transcribe(TranscriptionOrder("a", language="Klingonese"), body, lambda it: it)
    assert caught.value.param == "language"
    assert not body.was_read


async def test_a_model_for_other_work_does_not_transcribe(stage, service, wav):
    stage.model(task=Task.TTS)
    with pytest.raises(InvalidRequest, match="for tts, not for asr"):
        await service.transcribe(TranscriptionOrder("a"), wav(), lambda it: it)


@pytest.mark.parametrize(
    ("order", "param"),
    [
        (TranscriptionOrder("a", temperature=0.5), "temperature"),
        (TranscriptionOrder("a", word_times=WordTimes.REQUIRED), "timestamp_granularities"),
        (TranscriptionOrder("a", options={"beams": 5}), "options.beams"),
        (TranscriptionOrder("a", into_english=True), "model"),
    ],
)
async def test_what_the_model_does_not_take_is_refused_by_the_name_under_which_it_came(
    stage, service, wav, order, param
):
    stage.model(task=Task.ASR)
    with pytest.raises(InvalidRequest) as caught:
        await service.transcribe(order, wav(), lambda it: it)
    assert caught.value.param == param


async def test_word_times_that_are_only_welcome_ask_nothing_of_a_model_without_them(stage, service, wav):
    stage.model(task=Task.ASR)
    order = TranscriptionOrder("a", word_times=WordTimes.WHERE_TOLD)
    await service.transcribe(order, wav(), lambda it: it)


async def test_a_temperature_of_zero_asks_nothing_of_a_model_without_one(stage, service, wav):
    stage.model(task=Task.ASR)
    await service.transcribe(TranscriptionOrder("a", temperature=0.0), wav(), lambda it: it)


async def test_a_recording_is_let_go_of_while_the_second_model_tells_its_speakers(stage, wav):
    stage.model("a", task=Task.ASR)
    checkpoint = stage.model("b", task=Task.DIAR)
    decoder = WatchedDecoder(stage.codec)
    service = TranscriptionService(stage.runtime, decoder)
    with checkpoint.held("run"):
        running = asyncio.ensure_future(
            service.transcribe_speakers(TranscriptionOrder("a"), None, wav(), lambda it: it.duration_s)
        )
        await checkpoint.await_for("run")
        await stage.codec._crew.call(len, "")  # the thread that converted it is through
        assert decoder.life() is None
    assert await running == 0.5
