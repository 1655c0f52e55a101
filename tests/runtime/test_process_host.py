"""The process host alone: what crosses between the server and a worker. Deaths are in test_worker_deaths.py."""

import asyncio
import gc
import logging
import os
import signal
import weakref
from array import array
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.runtime.hosts.process import ProcessHost
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import EngineError, InvalidRequest
from antiphon.vocabulary.spec import ModelSpec
from antiphon.vocabulary.states import Isolation
from antiphon.vocabulary.tasks import Cancellation, Task, TaskRequest
from host_stage import Opened, descriptors
from odd_engine import NOISE_BYTES, TARGET

LARGE = 6 * 1024 * 1024
"""Samples: above what either side keeps in memory."""


class Odd:
    """A worker with the odd engine behind two slots."""

    def __init__(self):
        self.host = ProcessHost(TARGET, ModelSpec("odd", "odd", "/nowhere", Task.ASR, slots=2), lambda: None)

    async def open(self):
        await self.host.load()
        await self.host.open()
        await self.host.clone(1)

    async def text_of(self, act, slot=0, **fields):
        return (await self.host.run(slot, TaskRequest(text=act, **fields))).text

    async def at_end(self):
        await self.host.close()
        await self.host.terminate()


@pytest.fixture
def odd():
    return Odd()


@pytest.fixture
def opened(checkpoint):
    return Opened(checkpoint, Isolation.PROCESS)


def oom_score(pid):
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def sound(samples, rate=16_000, channels=1):
    return Pcm(
        memoryview(array("f", range(samples)) if samples < 100 else array("f", b"\1\2\3\4" * samples)), rate, channels
    )


@pytest.mark.parametrize("samples", [0, 2, 40_000, LARGE])
async def test_audio_of_any_size_arrives_as_it_was_and_comes_back(odd, samples):
    await odd.open()
    sent = sound(samples, 8000, 2)
    came = (await odd.host.run(0, TaskRequest(audio=sent))).audio
    assert (came.rate, came.channels) == (8000, 2)
    assert came.samples == sent.samples


async def test_a_large_audio_holds_up_no_request_beside_it(odd):
    await odd.open()
    large = asyncio.ensure_future(odd.host.run(0, TaskRequest(audio=sound(LARGE))))
    await asyncio.sleep(0)
    await odd.text_of("made", slot=1)
    assert not large.done()
    await large


async def test_a_stream_that_nobody_reads_holds_up_no_request_beside_it(odd):
    await odd.open()
    stream = await odd.host.stream(0, TaskRequest(), None)
    while await odd.text_of("made", slot=1) != "9":  # eight on the way, the ninth waits for credit
        pass
    await stream.aclose()
    assert await odd.text_of("made", slot=1) == "9"


async def test_a_stream_goes_on_as_it_is_read(odd):
    await odd.open()
    stream = await odd.host.stream(0, TaskRequest(), None)
    for number in range(1, 40):
        assert (await anext(stream)).text == str(number)
    assert int(await odd.text_of("made", slot=1)) <= 39 + 10
    await stream.aclose()


class Owner:
    """What a sound keeps alive, such as its share of a budget."""


@pytest.mark.parametrize("act", ["echo", "refuse"])
async def test_a_requests_audio_is_let_go_with_the_request(odd, act):
    await odd.open()
    gc.disable()
    try:
        owner = Owner()
        watched = weakref.ref(owner)
        with suppress(InvalidRequest):
            await odd.host.run(0, TaskRequest(text=act, audio=replace(sound(40_000), owner=owner)))
        del owner
        await odd.text_of("made")
        assert watched() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("step", ["prepare", "run"])
async def test_a_failed_stream_is_let_go_without_the_collector(opened, step):
    await opened.slots()
    opened.checkpoint.fail(step)
    gc.disable()
    try:
        owner = Owner()
        watched = weakref.ref(owner)
        with suppress(EngineError):
            request = TaskRequest(text="a", audio=replace(sound(40_000), owner=owner))
            stream = await opened.host.stream(0, request, None)
            with suppress(EngineError):
                await anext(stream)
            await stream.aclose()
        del owner, request
        assert watched() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("before", [True, False])
async def test_a_cancellation_reaches_the_engine_while_it_runs(opened, before):
    await opened.slots()
    opened.checkpoint.set("run.cancellable")
    opened.checkpoint.hold("run")
    cancellation = Cancellation()
    if before:
        cancellation.cancel()
    running = asyncio.ensure_future(opened.host.run(0, TaskRequest(text="a", cancellation=cancellation)))
    await opened.checkpoint.await_for("run")
    cancellation.cancel()
    await running  # though the hold is still there
    assert cancellation._followers == []


async def test_one_request_of_a_batch_is_cancelled_alone(opened):
    await opened.slots()
    opened.checkpoint.set("run.cancellable")
    opened.checkpoint.hold("run", "b")
    requests = [TaskRequest(text="a"), TaskRequest(text="b")]
    batch = await opened.host.run_batch(0, requests)
    await opened.checkpoint.await_for("run", 2)
    requests[1].cancellation.cancel()
    assert [index async for index, _ in batch] == [0, 1]
    await batch.aclose()


async def test_text_that_is_no_unicode_and_numbers_without_bound_cross(odd):
    await odd.open()
    assert await odd.text_of("echo", language="half \ud800") == "half \ud800"
    assert (
        await odd.text_of("options", options={"n": [2**70, {"x": None}]})
        == "{'n': [1180591620717411303424, {'x': None}]}"
    )


async def test_an_error_of_the_engines_own_kind_arrives_as_the_kind_that_we_know(odd):
    await odd.open()
    with pytest.raises(InvalidRequest, match="odd") as caught:
        await odd.text_of("refuse")
    assert (type(caught.value), caught.value.param) == (InvalidRequest, "input")


async def test_an_answer_that_cannot_cross_is_the_engines_fault_and_the_slot_serves_on(odd):
    await odd.open()
    with pytest.raises(EngineError):
        await odd.text_of("garbage")
    assert await odd.text_of("made") == "0"


async def test_an_adapter_that_cannot_be_imported_is_told_and_no_death():
    host = ProcessHost("nowhere:Adapter", ModelSpec("m", "odd", "/nowhere", Task.ASR), lambda: None)
    with pytest.raises(Exception, match="nowhere:Adapter"):
        await host.load()
    assert host.pid is not None
    await host.close()
    await host.terminate()


async def test_a_host_that_was_never_asked_anything_closes_and_terminates():
    host = ProcessHost(TARGET, ModelSpec("m", "odd", "/nowhere", Task.ASR), lambda: None)
    await host.close()
    await host.terminate()
    assert (host.pid, await host.resident_bytes()) == (None, None)


async def test_a_worker_imports_its_engine_and_nothing_of_the_server(odd):
    await odd.open()
    modules = set((await odd.text_of("modules")).split())
    assert "odd_engine" in modules
    assert not modules & {
        "asyncio", "fastapi", "pydantic", "uvicorn", "numpy", "faster_whisper", "piper", "psutil", "antiphon.http",
        "antiphon.service", "antiphon.config", "antiphon.runtime.models", "antiphon.runtime.hosts.thread",
    }  # fmt: skip


async def test_ten_megabytes_of_noise_block_nobody_and_are_not_all_logged(odd, caplog):
    caplog.set_level(logging.INFO)
    await odd.open()
    assert await odd.text_of("noise") == "said"
    await odd.at_end()
    lines = [record.message for record in caplog.records if record.name == "antiphon.runtime.wire.chatter"]
    written = [line for line in lines if line == f"odd: {'x' * 99}"]
    left_out = [int(line.split()[1]) for line in lines if line.endswith("more lines in one second")]
    assert len(written) + sum(left_out) == NOISE_BYTES // 100
    assert len(written) <= 200 * (len(left_out) + 1)


async def test_what_an_engine_prints_goes_into_the_log_and_not_onto_the_line(odd, caplog):
    caplog.set_level(logging.INFO)
    await odd.open()
    assert await odd.text_of("print") == "said"
    await odd.at_end()
    lines = [record.message for record in caplog.records if record.name == "antiphon.runtime.wire.chatter"]
    assert lines == ["odd: a line of an engine", "odd: no newline, and a ?"]


async def test_the_signals_that_end_the_server_do_not_end_a_worker(odd):
    await odd.open()
    assert os.getpgid(odd.host.pid) == odd.host.pid != os.getpgid(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(odd.host.pid, number)
    assert await odd.text_of("made") == "0"


async def test_the_kernel_takes_a_worker_before_the_server_when_memory_runs_out(odd):
    await odd.open()
    assert oom_score(odd.host.pid) > oom_score("self")


async def test_a_worker_says_how_much_memory_it_has(opened):
    opened.checkpoint.set("bytes", str(2**26))
    await opened.host.inspect()
    before = await opened.host.resident_bytes()
    await opened.slots()
    assert 2**26 <= await opened.host.resident_bytes() - before < 2**27


async def test_a_terminated_host_leaves_no_process_and_no_descriptor(odd):
    before = descriptors()
    await odd.open()
    pid = odd.host.pid
    await odd.text_of("echo", audio=sound(LARGE))
    await odd.at_end()
    assert descriptors() == before
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
