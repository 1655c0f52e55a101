"""Audio is let go of once the engine has it in its own form: while it works, there is one copy of it."""

import asyncio
import weakref
from array import array

from antiphon.runtime.api import Inference
from antiphon.vocabulary.audio import Handover, Pcm
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Interface, Task, TaskRequest
from host_stage import Opened
from runtime_stage import as_it_is, drained


class Owner:
    """Lives for as long as its audio does."""


def owned_sound(rate=8_000):
    """A tenth of a second, and what tells whether anybody still has it."""
    owner = Owner()
    return Pcm(memoryview(array("f", bytes(4 * rate // 10))), rate, owner=owner), weakref.ref(owner)


async def is_gone(stage, life):
    """Whether nobody has it any more, once the thread that converted it is through."""
    await stage.codec._crew.call(len, "")
    return life() is None


def handed_over(**fields):
    pcm, life = owned_sound()
    return Inference("a", TaskRequest(text="hello"), as_it_is, audio=Handover(pcm), **fields), life


async def test_a_recording_that_was_converted_is_gone_while_the_engine_works(stage):
    checkpoint = stage.model(task=Task.ASR)
    inference, life = handed_over()
    with checkpoint.held("run"):
        running = stage.ask(inference)
        await checkpoint.await_for("run")
        assert await is_gone(stage, life)
    assert (await running).endswith("|hello")


async def test_a_recording_that_no_engine_has_is_gone_with_its_request(stage):
    checkpoint = stage.model(task=Task.ASR)
    checkpoint.set("load.fail")
    inference, life = handed_over()
    outcome = stage.ask(inference)
    await asyncio.wait([outcome])
    assert outcome.exception() is not None
    del outcome
    assert await is_gone(stage, life)


async def test_a_stream_hears_what_was_handed_over(stage):
    stage.model(task=Task.ASR)
    inference, life = handed_over(interface=Interface.STREAMING)
    stream = await stage.runtime.open_stream(inference)
    gone = await is_gone(stage, life)
    events = await drained(stream)
    assert gone
    assert events[-1].result.segments[0].end_sample == 1_600


async def test_the_server_keeps_no_copy_of_what_a_worker_has(checkpoint):
    opened = Opened(checkpoint, Isolation.PROCESS, Task.ASR)
    try:
        await opened.slots()
        pcm, life = owned_sound(16_000)
        running = asyncio.ensure_future(opened.host.run(0, TaskRequest(text="hello", audio=pcm)))
        del pcm
        with checkpoint.held("run"):
            await checkpoint.await_for("run")
            assert life() is None
        assert (await running).segments[0].end_sample == 1_600
    finally:
        await opened.at_end()
