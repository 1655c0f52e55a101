"""What an upload does to the process that decodes it, and what that costs the others, in the test's own time."""

import asyncio
import io
import os
import signal
from contextlib import suppress

import pytest

import audio_assets
import odd_codec
from antiphon.audio.decode import DecodeLimits
from antiphon.runtime.file_worker import STALL_LIMIT_S, START_LIMIT_S
from antiphon.vocabulary.errors import AntiphonError, InvalidRequest, ServerBusy, ShuttingDown, TooLarge, WorkerDied
from codec_stage import Processes, Threads, wav
from host_stage import descriptors
from runtime_stage import until

ODD = "odd_codec"


@pytest.fixture
def odd():
    return Processes(module=ODD)


@pytest.fixture
def pair():
    return Processes(module=ODD, workers=2)


@pytest.fixture
def real():
    return Processes()


async def does(codec, act):
    return await codec.decode(io.BytesIO(odd_codec.upload(act)))


async def refused(codec, act):
    with pytest.raises(InvalidRequest) as caught:
        await does(codec, act)
    assert caught.value.param == "file"
    return caught.value.message


def begin(codec, act):
    return asyncio.ensure_future(does(codec, act))


async def decoding(codec):
    """Until an upload is being decoded: from then on two limits run, that of a stall and that of the whole."""
    await until(lambda: len(codec.clock.statistics().pending) == 2)


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("act", ["kill", "segfault", "abort", "exit", "overflow"])
async def test_an_upload_that_kills_its_decoder_is_refused_and_the_next_is_served(odd, act):
    assert await refused(odd, act) == "the audio could not be decoded"
    assert (await does(odd, "tone")).frames == 3


async def test_a_fault_of_the_decoder_is_the_uploads_and_costs_no_process(odd, caplog):
    caplog.set_level("INFO")
    await odd.start()
    before = odd.pids
    assert await refused(odd, "stumble") == "the audio could not be decoded"
    assert odd.pids == before
    await odd.terminate()
    assert "codec: RuntimeError: a fault of the decoder's" in [record.message for record in caplog.records]


async def test_an_upload_that_takes_too_much_memory_is_too_large_and_takes_it_from_nobody_else(odd):
    await odd.start()
    [before] = odd.pids
    with pytest.raises(TooLarge, match="memory") as caught:
        await does(odd, "swallow")
    assert caught.value.param == "file"
    assert (await does(odd, "tone")).frames == 3
    assert gone(before)


async def test_a_decoder_can_write_no_file(odd):
    assert await refused(odd, "write") == "the audio could not be decoded"


async def test_a_decoder_that_gives_nothing_has_decoded_nothing(odd):
    assert await refused(odd, "nothing") == "the audio could not be decoded"


@pytest.mark.parametrize("act", ["hang", "hold_gil"])
async def test_a_decode_without_progress_is_killed_and_the_next_is_served(odd, act):
    upload = begin(odd, act)
    await decoding(odd)
    odd.clock.advance(STALL_LIMIT_S)
    with pytest.raises(InvalidRequest, match="could not be decoded in time"):
        await upload
    assert (await does(odd, "tone")).frames == 3


async def test_a_decode_that_takes_longer_than_its_bytes_can_need_is_killed(odd):
    upload = begin(odd, "dribble")
    await decoding(odd)
    for _ in range(2):
        await until(lambda: odd.clock.now() + STALL_LIMIT_S in odd.clock.statistics().pending)
        odd.clock.advance(STALL_LIMIT_S * 0.9)
    with pytest.raises(InvalidRequest, match="could not be decoded in time"):
        await upload


async def test_a_longer_upload_may_take_longer(odd):
    upload = asyncio.ensure_future(odd.decode(io.BytesIO(b"endless".ljust(10 * 1024 * 1024))))
    await decoding(odd)
    assert odd.clock.statistics().pending[-1] - odd.clock.now() == pytest.approx(STALL_LIMIT_S + 640)
    odd.kill()
    with pytest.raises(ShuttingDown):
        await upload


async def test_a_sound_without_end_is_too_long():
    codec = Processes(module=ODD, limits=DecodeLimits(max_seconds=0.1))
    with pytest.raises(TooLarge, match="longer"):
        await does(codec, "endless")
    await codec.terminate()


async def test_a_kill_costs_the_culprit_alone(pair):
    upload = begin(pair, "hang")
    await decoding(pair)
    assert (await does(pair, "tone")).frames == 3
    first, second = pair.pids
    pair.clock.advance(STALL_LIMIT_S)
    with pytest.raises(InvalidRequest):
        await upload
    assert [gone(first), gone(second)] == [True, False]


async def test_uploads_wait_for_a_process_in_their_order(odd):
    order = []
    uploads = [begin(odd, "tone") for _ in range(4)]
    for number, upload in enumerate(uploads):
        upload.add_done_callback(lambda _, number=number: order.append(number))
    await asyncio.gather(*uploads)
    assert order == [0, 1, 2, 3]
    assert len(odd.pids) == 1


async def test_an_upload_whose_client_left_is_given_up_at_its_next_block(odd):
    upload = begin(odd, "endless")
    await decoding(odd)
    [before] = odd.pids
    upload.cancel()
    with suppress(asyncio.CancelledError):
        await upload
    assert (await does(odd, "tone")).frames == 3
    assert odd.pids == [before]


async def test_an_upload_whose_client_left_while_it_hung_is_still_killed(odd):
    upload = begin(odd, "hang")
    await decoding(odd)
    upload.cancel()
    with suppress(asyncio.CancelledError):
        await upload
    odd.clock.advance(STALL_LIMIT_S)
    assert (await does(odd, "tone")).frames == 3


async def test_a_process_that_died_idle_is_replaced_without_a_word(odd):
    await does(odd, "tone")
    os.kill(odd.pids[0], signal.SIGKILL)
    assert (await does(odd, "tone")).frames == 3


async def test_where_no_process_works_the_server_is_at_fault():
    codec = Processes(module="nowhere")
    with pytest.raises(WorkerDied, match="decodes audio"):
        await codec.decode(wav(10))
    await codec.terminate()


async def test_a_process_that_never_begins_is_killed(odd):
    upload = begin(odd, "tone")
    await until(lambda: odd.pids != [])
    os.kill(odd.pids[0], signal.SIGSTOP)
    await until(lambda: len(odd.clock.statistics().pending) == 1)
    odd.clock.advance(START_LIMIT_S)
    assert (await upload).frames == 3


@pytest.mark.parametrize("act", ["hang", "hold_gil"])
async def test_a_codec_that_is_terminated_leaves_no_process_and_no_descriptor(odd, act):
    before = descriptors()
    upload = begin(odd, act)
    await decoding(odd)
    [pid] = odd.pids
    await odd.terminate()
    with suppress(AntiphonError):
        await upload
    del upload
    assert gone(pid)
    assert descriptors() == before


async def test_a_codec_that_is_terminated_while_its_process_starts_leaves_neither(odd):
    before = descriptors()
    upload = begin(odd, "tone")
    await asyncio.sleep(0)
    await odd.terminate()
    with pytest.raises(ShuttingDown):
        await upload
    del upload
    assert (odd.pids, descriptors()) == ([], before)


async def test_deaths_leave_no_descriptor(odd):
    await does(odd, "tone")
    before = descriptors()
    for _ in range(3):
        await refused(odd, "kill")
    await does(odd, "tone")
    assert len(descriptors()) == len(before)


async def test_a_codec_worker_imports_no_engine_and_no_server(odd):
    modules = "".join(chr(int(code)) for code in (await does(odd, "modules")).samples).split()
    assert {"av", "numpy", "soxr", "antiphon.audio.decode"} <= set(modules)
    assert not {name.partition(".")[0] for name in modules} & {
        "asyncio", "fastapi", "pydantic", "starlette", "uvicorn", "uvloop", "psutil", "faster_whisper", "piper",
        "antiphon_adapters",
    }  # fmt: skip
    assert {name for name in modules if name.startswith("antiphon.") and name.count(".") == 1} == {
        "antiphon.audio", "antiphon.ports", "antiphon.runtime", "antiphon.vocabulary", "antiphon.worker",
    }  # fmt: skip


async def test_a_body_that_is_a_file_is_decoded_where_it_lies(real, tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(wav(500).getvalue())
    with path.open("rb") as body:
        assert (await real.decode(body)).frames == 500
        assert (await real.decode(body)).frames == 500


async def test_every_bad_file_is_refused_and_none_costs_a_process(real):
    await real.start()
    before = real.pids
    for name, file in audio_assets.bad_audio().items():
        with pytest.raises((InvalidRequest, TooLarge)) as caught:
            await real.decode(io.BytesIO(file))
        assert caught.value.param == "file", name
    assert real.pids == before


@pytest.mark.parametrize("rate", [16_000, 48_000])
async def test_a_sound_is_the_same_in_either_isolation(real, rate):
    threads = Threads()
    for name, file in audio_assets.good_audio_variants(audio_assets.tone(440, 0.3, rate), rate).items():
        there, here = [await codec.decode(io.BytesIO(file)) for codec in (real, threads)]
        assert (there.rate, there.channels) == (here.rate, here.channels), name
        assert there.samples == here.samples, name
    await threads.terminate()


async def test_an_upload_waits_for_a_worker_no_longer_than_its_request_may(odd):
    hanging = begin(odd, "hang")
    await decoding(odd)
    before = descriptors()
    with pytest.raises(ServerBusy, match="no decoder was free"):
        await odd.decode(io.BytesIO(odd_codec.upload("tone")), wait_s=0.001)
    assert descriptors() == before
    odd.clock.advance(STALL_LIMIT_S)
    with pytest.raises(InvalidRequest):
        await hanging
    assert (await odd.decode(io.BytesIO(odd_codec.upload("tone")), wait_s=60)).frames == 3
