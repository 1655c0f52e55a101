"""`SimHost`: what it answers, and that it notices a runtime that breaks its word."""

import asyncio

import pytest

from antiphon.testing.sim import Act, SimWorld, sim_spec, weight_bytes
from antiphon.testing.sim_codec import SimCodec
from antiphon.testing.virtual import VirtualLoop
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import EngineError
from antiphon.vocabulary.tasks import Final, TaskRequest


@pytest.fixture
def loop():
    loop = VirtualLoop(start=0.0)
    yield loop
    loop.close()


@pytest.fixture
def world():
    return SimWorld(total_bytes=2**21)


async def opened(world, spec=None):
    host = world.make_host(spec or sim_spec("m", 2, revision=3, style=4), lambda: None)
    await host.load()
    await host.open()
    await host.clone(1)
    return host


def test_an_answer_says_what_was_loaded(loop, world):
    async def main():
        host = await opened(world)
        return (await host.run(1, TaskRequest(text="hello"))).text

    assert loop.run(main()) == "m@3/4|hello"
    assert world.violations == []


def test_a_stream_ends_in_the_whole_and_frees_its_slot(loop, world):
    async def main():
        host = await opened(world)
        events = [event async for event in await host.stream(0, TaskRequest(text="a b"), None)]
        await host.run(0, TaskRequest(text="next"))
        return events

    events = loop.run(main())
    assert isinstance(events[-1], Final)
    assert [it.text for it in events[:-1]] == ["m@3/4|a", "b"]
    assert world.violations == []


def test_calls_take_the_time_that_the_script_says(loop, world):
    world.script = lambda call: Act(takes_ms=250 if call.step == "load" else 0)
    loop.run(opened(world))
    assert loop.time() == 0.25


def test_a_held_call_goes_on_when_it_is_let(loop, world):
    held = asyncio.Event()
    world.script = lambda call: Act(held=held if call.step == "load" else None)

    async def main():
        loop.call_later(7, held.set)
        await opened(world)

    loop.run(main())
    assert loop.time() > 7


def test_a_fault_arrives_as_one_of_the_domain(loop, world):
    world.script = lambda call: Act(fault=OSError() if call.step == "run" else None)

    async def main():
        host = await opened(world)
        with pytest.raises(EngineError, match="OSError"):
            await host.run(0, TaskRequest(text="hello"))

    loop.run(main())


def test_weights_take_memory_until_they_are_closed(loop, world):
    async def main():
        host = await opened(world)
        taken = world.total_bytes - world.available_bytes()
        await host.close()
        await host.terminate()
        return taken, world.total_bytes - world.available_bytes()

    assert loop.run(main()) == (weight_bytes(sim_spec("m")), 0)
    assert world.hosts == []


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        (lambda host: asyncio.gather(*(host.run(0, TaskRequest(text="x")) for _ in range(2))), "one call at a time"),
        (lambda host: host.run(5, TaskRequest(text="x")), "only an open session"),
        (lambda host: host.clone(5), "in order"),
        (lambda host: host.terminate(), "terminate comes last"),
        (lambda host: asyncio.gather(host.run(0, TaskRequest(text="x")), host.close()), "no session is closed at work"),
        (lambda host: host.load(), "weights are loaded once"),
    ],
)
def test_a_broken_promise_is_noted(loop, world, broken, word):
    async def main():
        await broken(await opened(world))

    loop.run(main())
    assert any(word in violation for violation in world.violations)


def test_a_call_that_is_cancelled_is_noted(loop, world):
    async def main():
        host = await opened(world)
        call = asyncio.ensure_future(host.run(0, TaskRequest(text="x")))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])

    loop.run(main())
    assert world.violations == ["run was cancelled"]


def test_audio_is_called_what_the_session_takes(loop):
    pcm = Pcm.from_bytes(bytes(8), 8000)
    converted = loop.run(SimCodec().convert(pcm, 16000, 1))
    assert (converted.rate, converted.frames) == (16000, 2)
