"""What holds of the codec in either isolation, and its budget of decoded audio."""

import asyncio
import gc
import io
import threading
from contextlib import suppress
from functools import partial

import pytest

from antiphon.audio.decode import DecodeLimits
from antiphon.ports.codec import AudioFormat
from antiphon.runtime.codecs import ThreadCodec
from antiphon.vocabulary.errors import InvalidRequest, ServerBusy, TooLarge
from codec_stage import CODECS, wav
from server_process import HANG_GUARD_S

MIB = 1024 * 1024


@pytest.fixture(params=CODECS)
def make_codec(request):
    return partial(CODECS[request.param])  # the class itself would look like something to end


@pytest.fixture
def codec(make_codec):
    return make_codec(4 * MIB)


@pytest.fixture(autouse=True)
def without_the_cycle_collector():
    gc.disable()
    yield
    gc.enable()


async def test_an_upload_holds_its_own_size_of_the_budget_until_its_audio_is_dropped(codec):
    pcm = await codec.decode(wav(16_000))
    assert (pcm.frames, pcm.rate) == (16_000, 16_000)
    assert await codec.settled() == 64_000
    del pcm
    assert await codec.settled() == 0


async def test_a_converted_copy_does_not_keep_the_share_of_its_original(codec):
    pcm = await codec.decode(wav(8_000, rate=8_000))
    converted = await codec.convert(pcm, 16_000, 1)
    assert converted.frames == 16_000
    del pcm
    assert await codec.settled() == 0


async def test_audio_that_needs_no_conversion_stays_the_same_object(codec):
    pcm = await codec.decode(wav(100))
    assert await codec.convert(pcm, 16_000, 1) is pcm


async def test_an_upload_beyond_the_budget_is_refused_and_gives_all_back(codec):
    first = await codec.decode(wav(750_000))
    with pytest.raises(ServerBusy, match="max_pending_audio_mb"):
        await codec.decode(wav(750_000))
    assert await codec.settled() == 3_000_000
    del first
    assert await codec.settled() == 0
    assert (await codec.decode(wav(750_000))).frames == 750_000


async def test_what_a_refused_upload_held_is_back_while_its_error_still_lives(codec):
    first = await codec.decode(wav(500_000))
    with pytest.raises(ServerBusy) as caught:
        await codec.decode(wav(900_000))
    assert await codec.settled() == 2_000_000
    del first
    assert caught.value.__traceback__ is not None


async def test_an_upload_that_is_more_than_the_whole_budget_is_too_large_whoever_else_is_there(codec):
    with pytest.raises(TooLarge, match="max_pending_audio_mb"):
        await codec.decode(wav(800_000, channels=2))  # 6.4 MB of a budget of 4
    assert await codec.settled() == 0


async def test_an_upload_that_would_fit_alone_is_refused_only_for_now(codec):
    first = await codec.decode(wav(750_000))
    with pytest.raises(ServerBusy):
        await codec.decode(wav(500_000, channels=2))
    with pytest.raises(TooLarge, match="4194304 bytes"):
        await codec.decode(wav(600_000, channels=2))
    del first
    assert (await codec.decode(wav(500_000, channels=2))).frames == 500_000


async def test_an_upload_that_needs_the_whole_budget_to_the_last_byte_has_it(codec):
    pcm = await codec.decode(wav(MIB, rate=32_000))
    assert await codec.settled() == 4 * MIB
    del pcm


async def test_what_is_left_of_a_step_can_still_be_used(codec):
    first = await codec.decode(wav(600_000))
    second = await codec.decode(wav(440_000))  # together 34 kB less than the budget
    assert await codec.settled() == 4_160_000
    del first, second


async def test_what_a_damaged_upload_held_is_back_while_its_error_still_lives(make_codec):
    codec = make_codec(4 * MIB, DecodeLimits(max_seconds=60, max_bytes=2 * MIB))
    with pytest.raises(TooLarge) as caught:
        await codec.decode(wav(600_000))
    assert await codec.settled() == 0
    assert caught.value.__traceback__ is not None
    await codec.terminate()


async def test_what_is_no_audio_holds_nothing(codec):
    with pytest.raises(InvalidRequest):
        await codec.decode(io.BytesIO(b"certainly no audio"))
    assert await codec.settled() == 0


async def test_an_upload_whose_client_left_gives_all_back(codec):
    task = asyncio.ensure_future(codec.decode(wav(16_000)))
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    del task
    assert await codec.settled() == 0


async def test_uploads_together_share_one_budget(codec):
    outcomes = await asyncio.gather(*(codec.decode(wav(260_000)) for _ in range(5)), return_exceptions=True)
    assert [type(it).__name__ for it in outcomes] == ["Pcm"] * 4 + ["ServerBusy"]
    del outcomes
    assert await codec.settled() == 0


class HeldBody(io.BytesIO):
    """A WAV file whose second block of samples is held back."""

    def __init__(self, frames: int) -> None:
        super().__init__(wav(frames).getvalue())
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > 128 * 1024:
            self.reached.set()
            assert self.go_on.wait(HANG_GUARD_S)
        return super().read(size)


async def test_an_upload_that_is_being_decoded_keeps_no_small_one_out_for_what_it_may_need_later():
    codec = ThreadCodec(DecodeLimits(max_seconds=60), MIB, threads=2)
    body = HeldBody(140_000)  # half of the budget, in two blocks
    held = asyncio.ensure_future(codec.decode(body))
    try:
        while not body.reached.is_set():  # noqa: ASYNC110 (a thread sets it)
            await asyncio.sleep(0)
        small = [await codec.decode(wav(1_000)) for _ in range(50)]
    finally:
        body.go_on.set()
    assert (await held).frames == 140_000
    assert sum(it.frames for it in small) == 50_000
    await codec.terminate()


async def test_an_upload_waits_for_a_thread_no_longer_than_its_request_may():
    codec = ThreadCodec(DecodeLimits(max_seconds=60), 0, threads=1)
    body = HeldBody(140_000)
    held = asyncio.ensure_future(codec.decode(body))
    while not body.reached.is_set():  # noqa: ASYNC110 (a thread sets it)
        await asyncio.sleep(0)
    patient = asyncio.ensure_future(codec.decode(wav(1_000)))
    try:
        with pytest.raises(ServerBusy, match="no decoder was free"):
            await codec.decode(wav(1_000), wait_s=0.001)
        assert not patient.done()
    finally:
        body.go_on.set()
    assert (await held).frames == 140_000
    assert (await patient).frames == 1_000
    assert (await codec.decode(wav(1_000), wait_s=60)).frames == 1_000
    await codec.terminate()


async def test_a_thread_that_still_decodes_for_a_client_that_left_is_not_free():
    codec = ThreadCodec(DecodeLimits(max_seconds=60), 0, threads=1)
    body = HeldBody(140_000)
    left = asyncio.ensure_future(codec.decode(body))
    while not body.reached.is_set():  # noqa: ASYNC110 (a thread sets it)
        await asyncio.sleep(0)
    left.cancel()
    try:
        with pytest.raises(ServerBusy):
            await codec.decode(wav(1_000), wait_s=0.001)
    finally:
        body.go_on.set()
    assert (await codec.decode(wav(1_000))).frames == 1_000
    await codec.terminate()


async def test_a_budget_of_zero_has_no_bound(make_codec):
    codec = make_codec(0)
    assert (await codec.decode(wav(900_000))).frames == 900_000
    await codec.terminate()


async def test_a_whole_answer_and_one_in_pieces_hold_the_same_samples(codec):
    pcm = await codec.decode(wav(1_000))
    whole = await codec.encode(pcm, AudioFormat.PCM)
    encoder = codec.open_encoder(AudioFormat.PCM, 16_000, 1)
    pieces = encoder.header() + await encoder.feed(pcm) + await encoder.feed(pcm)
    with whole.body as body:
        assert body.read() * 2 == pieces
