"""What a compressed answer does to the process that encodes it, and what that costs others, in the test's own time."""

import asyncio
import io
import os
from contextlib import suppress

import numpy as np
import pytest
import soundfile

import audio_assets
import odd_codec
from antiphon.ports.codec import AudioFormat
from antiphon.runtime.file_worker import STALL_LIMIT_S
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import EngineError, InsufficientMemory, ShuttingDown, WorkerDied
from codec_stage import Processes, Threads, wav
from host_stage import descriptors
from runtime_stage import until

SPEECH = Pcm.from_bytes(audio_assets.tone(220, 2, 22_050).tobytes(), 22_050)
COMPRESSED = [AudioFormat.MP3, AudioFormat.OPUS, AudioFormat.FLAC, AudioFormat.AAC]


@pytest.fixture
def odd():
    return Processes(module="odd_codec")


@pytest.fixture
def real():
    return Processes()


async def does(codec, act):
    """Have an act encoded; how many bytes it made."""
    encoded = await codec.encode(odd_codec.sound(act), AudioFormat.MP3)
    with encoded.body as body:
        assert len(body.read()) == encoded.size_bytes
    return encoded.size_bytes


async def begun(codec, act):
    """An act that is being encoded: from then on two limits run, that of a stall and that of the whole."""
    answer = asyncio.ensure_future(does(codec, act))
    await until(lambda: len(codec.clock.statistics().pending) == 2)
    return answer


async def contents(codec, audio_format, pcm=SPEECH):
    encoded = await codec.encode(pcm, audio_format)
    with encoded.body as body:
        return encoded.content_type, encoded.size_bytes, body.read()


async def test_an_answer_is_the_same_in_either_isolation(real):
    threads = Threads()
    for audio_format in AudioFormat:
        assert await contents(real, audio_format) == await contents(threads, audio_format), audio_format
    await threads.terminate()


async def test_only_what_a_library_encodes_needs_a_process(real):
    for audio_format in (AudioFormat.WAV, AudioFormat.PCM):
        await contents(real, audio_format)
    assert real.pids == []
    await contents(real, AudioFormat.OPUS)
    assert len(real.pids) == 1


async def test_the_process_that_gets_uploads_encodes_nothing(real):
    await real.decode(wav(10))
    [decoder] = real.pids
    await contents(real, AudioFormat.FLAC)
    assert len(real.pids) == 2
    assert real.pids[0] == decoder


async def test_a_sound_larger_than_a_message_crosses_whole(real):
    samples = np.tile(audio_assets.tone(220, 1, 48_000), 90)
    assert samples.nbytes > 16 * 1024 * 1024
    _, _, flac = await contents(real, AudioFormat.FLAC, Pcm.from_bytes(samples.tobytes(), 48_000))
    assert soundfile.info(io.BytesIO(flac)).frames == len(samples)


@pytest.mark.parametrize("act", ["kill", "segfault", "abort", "overflow"])
async def test_an_encoder_that_dies_costs_its_own_answer_and_the_next_is_served(odd, act):
    with pytest.raises(WorkerDied, match="encodes audio has ended"):
        await does(odd, act)
    assert await does(odd, "tone") == 3


async def test_an_encoder_that_fails_costs_no_process(odd):
    await does(odd, "tone")
    before = odd.pids
    with pytest.raises(EngineError, match="could not be encoded"):
        await does(odd, "stumble")
    assert odd.pids == before


async def test_an_answer_that_takes_too_much_memory_is_refused_and_takes_it_from_nobody_else(odd):
    with pytest.raises(InsufficientMemory):
        await does(odd, "swallow")
    assert await does(odd, "tone") == 3


async def test_an_encoder_that_makes_more_than_there_can_be_is_not_believed(odd):
    with pytest.raises(EngineError, match="more of a sound"):
        await does(odd, "inflate")
    assert await does(odd, "tone") == 3


@pytest.mark.parametrize("act", ["hang", "hold_gil"])
async def test_an_encode_without_progress_is_killed_and_the_next_is_served(odd, act):
    answer = await begun(odd, act)
    odd.clock.advance(STALL_LIMIT_S)
    with pytest.raises(WorkerDied, match="encodes audio took too long"):
        await answer
    assert await does(odd, "tone") == 3


async def test_an_encode_that_takes_longer_than_its_sound_is_killed(odd):
    answer = await begun(odd, "dribble")
    for _ in range(2):
        await until(lambda: odd.clock.now() + STALL_LIMIT_S in odd.clock.statistics().pending)
        odd.clock.advance(STALL_LIMIT_S * 0.9)
    with pytest.raises(WorkerDied, match="took too long"):
        await answer


async def test_an_answer_whose_taker_left_is_given_up_at_its_next_piece(odd):
    answer = await begun(odd, "dribble")
    before = odd.pids
    answer.cancel()
    with suppress(asyncio.CancelledError):
        await answer
    assert await does(odd, "tone") == 3
    assert odd.pids == before


async def test_a_codec_that_is_terminated_in_mid_encode_leaves_no_process_and_no_descriptor(odd):
    before = descriptors()
    answer = await begun(odd, "hang")
    [pid] = odd.pids
    await odd.terminate()
    with pytest.raises(ShuttingDown):
        await answer
    del answer
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert descriptors() == before
