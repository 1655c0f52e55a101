"""What is over is gone: audio, sessions and weights are freed by their last use, without the cycle collector."""

import gc
import threading
import weakref
from array import array
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from antiphon.runtime.hosts.thread import ThreadHost
from antiphon.testing import ControlledAdapter
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import AntiphonError
from antiphon.vocabulary.tasks import Interface, Task
from runtime_stage import drained, left, order, until


class Owner:
    """What lives as long as an audio does."""


@contextmanager
def without_the_cycle_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def audio():
    """Half a second of silence at another rate than the engine's, and a reference that tells whether it lives."""
    owner = Owner()
    return Pcm(memoryview(array("f", [0.0] * 4000)), 8000, owner=owner), weakref.ref(owner)


class Watching(ControlledAdapter):
    """Remembers, without keeping them, the models that it loaded; each session keeps its model."""

    def __init__(self):
        self.loaded = []

    def load(self, spec):
        model = super().load(spec)
        self.loaded.append(weakref.ref(model))
        return model

    def alive(self):
        """What still exists once the host's threads have ended."""
        for thread in threading.enumerate():
            if thread.name.startswith("antiphon-a-"):
                thread.join(30)
                assert not thread.is_alive(), thread.name
        return [model() for model in self.loaded if model() is not None]


def watched(stage):
    """Have the stage load its models by an adapter that watches them."""
    adapter = Watching()
    stage.make_host = partial(ThreadHost, adapter)
    return adapter


async def quiet(stage):
    """Let the threads come back from what they did last."""
    for crew in (stage.codec._crew, *stage.runtime._residents.find("a").pool.host._threads.values()):
        await crew.call(len, "")


@pytest.mark.parametrize("fault", [None, "prepare", "run"])
async def test_an_audio_lives_no_longer_than_its_request(stage, fault):
    checkpoint = stage.model(task=Task.ASR)
    await stage.runtime.load("a")
    if fault:
        checkpoint.fail(fault)
    pcm, alive = audio()
    with without_the_cycle_collector():
        with suppress(AntiphonError):
            await stage.ask(order("hello", audio=pcm))
        del pcm
        await quiet(stage)
        assert alive() is None


async def test_an_audio_lives_no_longer_than_the_run_that_its_client_left(stage):
    checkpoint = stage.model(task=Task.ASR)
    await stage.runtime.load("a")
    checkpoint.hold("run")
    pcm, alive = audio()
    with without_the_cycle_collector():
        task = stage.ask(order("hello", audio=pcm))
        del pcm
        await checkpoint.await_for("run")
        await left(task)
        del task
        assert alive() is not None
        checkpoint.release("run")
        await until(lambda: not stage.runtime._tasks._running)
        await quiet(stage)
        assert alive() is None


@pytest.mark.parametrize("fault", [None, "run", "stream", "reset"])
async def test_an_audio_lives_no_longer_than_its_stream(stage, fault):
    checkpoint = stage.model(task=Task.ASR)
    await stage.runtime.load("a")
    if fault:
        checkpoint.fail(fault)
    pcm, alive = audio()
    inference = order("hello", interface=Interface.STREAMING, audio=pcm)
    with without_the_cycle_collector():
        stream = await stage.runtime.open_stream(inference)
        with suppress(AntiphonError):
            await drained(stream)
        await stream.aclose()
        del pcm, inference
        await quiet(stage)
        assert alive() is None  # although the stream itself is still held


@pytest.mark.parametrize("work", ["run", "failed run", "stream", "failed stream", "left stream"])
async def test_an_unloaded_model_is_gone_whatever_it_did(stage, work):
    checkpoint, adapter = stage.model(), watched(stage)
    await stage.runtime.load("a")
    fault, _, kind = work.rpartition(" ")
    if fault == "failed":
        checkpoint.fail(kind)
    with without_the_cycle_collector():
        with suppress(AntiphonError):
            if kind == "run":
                await stage.say("hello")
            elif fault == "left":
                await (await stage.open("hello")).aclose()
            else:
                await drained(await stage.open("hello"))
        await stage.runtime.unload("a")
        assert len(adapter.loaded) == 1
        assert adapter.alive() == []


@pytest.mark.parametrize("fault", ["clone", "destroy"])
async def test_a_model_that_could_not_be_loaded_or_freed_is_gone(wide, fault):
    checkpoint, adapter = wide.model(), watched(wide)
    checkpoint.fail(fault)
    with without_the_cycle_collector():
        with suppress(AntiphonError):
            await wide.runtime.load("a")
        await wide.runtime.unload("a")
        assert len(adapter.loaded) == 1
        assert adapter.alive() == []
