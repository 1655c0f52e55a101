"""The operations that the failpoint sweep disturbs, each on a small house."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace

from antiphon.runtime.api import BatchInference, Draft, Inference, Strategy
from antiphon.testing.sim import Act, sim_spec
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.errors import AntiphonError, ShuttingDown
from antiphon.vocabulary.spec import Registration
from antiphon.vocabulary.tasks import Interface, TaskRequest
from sim_history import House
from sim_sweep import FailpointError, Operation, Sweep

_ONE_SLOT = House(slots=(1,))
_TWO_SLOTS = House(slots=(2, 2, 2))
_THREADS = House(slots=(2, 2, 2), threads=True)
_LIMITED = House(slots=(2, 2, 2), engine_ms=20)
_LIMITED_THREADS = House(slots=(2, 2, 2), engine_ms=20, threads=True)


async def run(stage: Sweep, model: str = "m0", text: str = "hello") -> None:
    async def finish(result, timing):
        await asyncio.sleep(0.001)

    await stage.runtime.run(Inference(model, TaskRequest(text=text), stage._bound), finish)


async def some_request(stage: Sweep, text: str = "hello") -> None:
    """A request of somebody else's, whatever comes of it."""
    with suppress(AntiphonError, FailpointError):
        await run(stage, text=text)


async def run_with_audio(stage: Sweep) -> None:
    async def finish(result, timing):
        pass

    audio = Pcm.from_bytes(bytes(64), 8000)
    await stage.runtime.run(Inference("m0", TaskRequest(text="hello", audio=audio), stage._bound), finish)


async def run_with_a_voice(stage: Sweep) -> None:
    """The recording of the voice is one that the registration names: it is decoded while the slot is held."""

    async def finish(result, timing):
        pass

    async def bind(model, request):
        await asyncio.sleep(0.001)
        return replace(await stage._bound(model, request), voice_ref=Pcm.from_bytes(bytes(64), 8000))

    await stage.runtime.run(Inference("m0", TaskRequest(text="hello"), bind), finish)


async def two_loads(stage: Sweep) -> None:
    await asyncio.gather(stage.runtime.load("m0"), stage.runtime.load("m1"))


def broken(step: str, act):
    """Act while the first model's next call of this kind will fail."""

    async def acted(stage: Sweep) -> None:
        stage.armed["m0", step] = deque([Act(fault=OSError())])
        with suppress(AntiphonError):
            await act(stage)

    return acted


def hanging(step: str, act):
    """Act while the first model's next call of this kind will never end by itself."""

    async def acted(stage: Sweep) -> None:
        stage.armed["m0", step] = deque([Act(held=asyncio.Event())])
        with suppress(AntiphonError):
            await act(stage)

    return acted


def slow(step: str, act):
    """Act while the first model's next call of this kind takes longer than any limit, in a thread that goes on."""

    async def acted(stage: Sweep) -> None:
        stage.armed["m0", step] = deque([Act(takes_ms=30)])
        with suppress(AntiphonError):
            await act(stage)

    return acted


def load(*models: str):
    async def before(stage: Sweep) -> None:
        for model in models:
            await stage.runtime.load(model)

    return before


def register(
    model: str = "m0", strategy: Strategy = Strategy.REPLACE, busy_timeout_ms: int | None = None, **changes: int
):
    async def act(stage: Sweep) -> None:
        registration = Registration(sim_spec(model, **{"slots": 2, **changes}))
        await stage.runtime.register(registration, busy_timeout_ms, strategy)

    return act


def behind_a_request(act, text: str = "hello"):
    """Begin a request on the first model, then act while it runs."""

    async def both(stage: Sweep) -> None:
        stage.run_ms["long"] = 40
        stage.clients.append(stage.loop.create_task(some_request(stage, text)))
        await asyncio.sleep(0.0005)
        await act(stage)

    return both


async def stream(stage: Sweep) -> None:
    flow = await stage.runtime.open_stream(
        Inference("m0", TaskRequest(text="one two"), stage._bound, Interface.STREAMING)
    )
    try:
        async for _ in flow:
            pass
    finally:
        await flow.aclose()


async def hear(stage: Sweep) -> None:
    audio = spoken()
    inference = Inference("m0", TaskRequest(text="one"), stage._bound, Interface.STREAMING, live=audio)
    try:
        flow = await stage.runtime.open_stream(inference)
        try:
            async for _ in flow:
                pass
        finally:
            await flow.aclose()
    finally:
        await audio.aclose()


async def spoken() -> AsyncGenerator[Pcm]:
    """Two pieces of audio at another rate than the session's, with silence between them."""
    for _ in range(2):
        await asyncio.sleep(0.001)
        yield Pcm.from_bytes(bytes(64), 8_000)


async def hear_until_stop(stage: Sweep) -> None:
    stage.closing = True
    stage.loop.call_later(0.0015, stage.runtime.refuse)
    with suppress(ShuttingDown):
        await hear(stage)
    await close(stage)


async def close_stream(stage: Sweep) -> None:
    flow = await stage.runtime.open_stream(
        Inference("m0", TaskRequest(text="one two"), stage._bound, Interface.STREAMING)
    )
    try:
        await anext(flow)
    finally:
        await flow.aclose()


async def drop_stream(stage: Sweep) -> None:
    await stage.runtime.open_stream(Inference("m0", TaskRequest(text="one"), stage._bound, Interface.STREAMING))


async def batch(stage: Sweep) -> None:
    drafts = tuple(Draft(TaskRequest(text=text), stage._bound) for text in ("one", "two"))
    flow = await stage.runtime.open_batch(BatchInference("m0", drafts))
    try:
        async for _ in flow:
            pass
    finally:
        await flow.aclose()


async def idle(stage: Sweep) -> None:
    await asyncio.sleep(0.05)


async def start(stage: Sweep) -> None:
    await stage.runtime.start()
    await asyncio.sleep(0.05)


async def close(stage: Sweep) -> None:
    stage.closing = True
    await stage.runtime.close()


async def cut(stage: Sweep) -> None:
    stage.loop.call_soon(stage.runtime.cut)
    await close(stage)


async def expired(stage: Sweep) -> None:
    for _ in range(2):
        stage.clients.append(stage.loop.create_task(some_request(stage)))
    await asyncio.sleep(0.0005)
    try:
        await stage.runtime.unload("m0", busy_timeout_ms=1)
    except AntiphonError:
        return


async def foresee(stage: Sweep) -> None:
    stage.runtime.status()
    stage.runtime.foresee_unload_many()
    await stage.runtime.foresee_load("m1")
    await stage.runtime.foresee_load("m1", Registration(sim_spec("m1", 2, revision=1)))


OPERATIONS = [
    Operation("load", lambda stage: stage.runtime.load("m0")),
    Operation("load in one slot", lambda stage: stage.runtime.load("m0"), house=House(slots=(1,), parallel=False)),
    Operation("request, cold", run),
    Operation("request, warm", run, load("m0")),
    Operation("two requests, cold", behind_a_request(run)),
    Operation("stream", stream, load("m0")),
    Operation("stream that nobody reads", drop_stream, load("m0")),
    Operation("live audio", hear, load("m0")),
    Operation("live audio, cut by a stop", hear_until_stop, load("m0")),
    Operation("batch", batch, load("m0")),
    Operation("request that waits", behind_a_request(run), load("m0"), _ONE_SLOT),
    Operation("request with audio", run_with_audio, load("m0")),
    Operation("request with a voice", run_with_a_voice, load("m0")),
    Operation("request whose load fails", broken("load", run)),
    Operation("request whose engine hangs", hanging("run", run), load("m0"), _LIMITED),
    Operation("request whose load hangs", hanging("load", run), house=_LIMITED),
    Operation("stream whose engine hangs", hanging("step", stream), load("m0"), _LIMITED),
    Operation("stream that hangs at its end", hanging("reset", stream), load("m0"), _LIMITED),
    Operation("unload that hangs", hanging("close", lambda stage: stage.runtime.unload("m0")), load("m0"), _LIMITED),
    Operation("two loads side by side", two_loads, house=replace(_TWO_SLOTS, memory=3, min_free=1)),
    Operation("two loads that take turns", two_loads, house=replace(_TWO_SLOTS, memory=3, min_free=2)),
    Operation("stream, cold", stream),
    Operation("stream, closed early", close_stream, load("m0")),
    Operation("stream that waits", behind_a_request(stream), load("m0"), _ONE_SLOT),
    Operation("batch, cold", batch),
    Operation("batch that waits", behind_a_request(batch), load("m0"), _ONE_SLOT),
    Operation("registration", register("new")),
    Operation("registration of too many slots", register("new", slots=4, capacity=2)),
    Operation("reconfiguration, unloaded", register(revision=1)),
    Operation("reconfiguration, nothing new", register(), load("m0")),
    Operation("reconfiguration, nothing new, unloaded", register()),
    Operation(
        "reconfiguration, unloaded, and no room",
        behind_a_request(register("m1", revision=1), "long"),
        load("m0"),
        replace(_TWO_SLOTS, max_loaded=1, room_ms=5),
    ),
    Operation(
        "reconfiguration, side by side in vain",
        behind_a_request(register(strategy=Strategy.SIDE_BY_SIDE, busy_timeout_ms=1, revision=1), "long"),
        load("m0"),
    ),
    Operation("reconfiguration, slots", register(slots=3), load("m0")),
    Operation("reconfiguration, options", register(style=1), load("m0")),
    Operation("reconfiguration, weights", register(revision=1), load("m0")),
    Operation("reconfiguration, one slot", register(slots=1, revision=1), load("m0")),
    Operation("reconfiguration, too many slots", register(slots=4, capacity=2), load("m0")),
    Operation("reconfiguration, side by side", register(strategy=Strategy.SIDE_BY_SIDE, revision=1), load("m0")),
    Operation(
        "reconfiguration, side by side and overtaken",
        behind_a_request(
            lambda stage: asyncio.gather(
                register(strategy=Strategy.SIDE_BY_SIDE, revision=1)(stage), register(style=1)(stage)
            )
        ),
        load("m0"),
    ),
    Operation(
        "reconfiguration, side by side and unloaded",
        lambda stage: asyncio.gather(
            register(strategy=Strategy.SIDE_BY_SIDE, revision=1)(stage), stage.runtime.unload("m0")
        ),
        load("m0"),
        replace(_TWO_SLOTS, max_loaded=2),
    ),
    Operation(
        "reconfiguration, side by side and too late",
        slow("load", register(strategy=Strategy.SIDE_BY_SIDE, revision=1)),
        load("m0"),
        _LIMITED_THREADS,
    ),
    Operation("reconfiguration, weights, too late", slow("load", register(revision=1)), load("m0"), _LIMITED_THREADS),
    Operation("reconfiguration, options, too late", slow("probe", register(style=1)), load("m0"), _LIMITED_THREADS),
    Operation("reconfiguration, unloaded, too late", slow("load", register(revision=1)), house=_LIMITED_THREADS),
    Operation("reconfiguration, unloaded, too many slots", register(slots=4, capacity=2)),
    Operation("reconfiguration, unloaded, one slot", register(slots=1, revision=1)),
    Operation("reconfiguration behind a request", behind_a_request(register(revision=1)), load("m0")),
    Operation("bulk", lambda stage: stage.runtime.unload_many(), load("m0", "m1")),
    Operation("bulk behind a request", behind_a_request(lambda stage: stage.runtime.unload_many()), load("m0", "m1")),
    Operation("bulk behind a first load", behind_a_request(lambda stage: stage.runtime.unload_many()), load("m1")),
    Operation("eviction", lambda stage: run(stage, "m1"), load("m0"), replace(_TWO_SLOTS, max_loaded=1)),
    Operation(
        "eviction that is waited for",
        behind_a_request(lambda stage: run(stage, "m1")),
        load("m0"),
        replace(_TWO_SLOTS, max_loaded=1, room_ms=50),
    ),
    Operation(
        "eviction that is waited for in vain",
        behind_a_request(lambda stage: run(stage, "m1")),
        load("m0"),
        replace(_TWO_SLOTS, max_loaded=1, room_ms=1),
    ),
    Operation(
        "eviction for memory", lambda stage: run(stage, "m1"), load("m0"), replace(_TWO_SLOTS, memory=2, min_free=1)
    ),
    Operation("eviction of the idle", idle, load("m0"), replace(_TWO_SLOTS, idle_ms=10)),
    Operation("unload", lambda stage: stage.runtime.unload("m0"), load("m0")),
    Operation("unload behind a request", behind_a_request(lambda stage: stage.runtime.unload("m0")), load("m0")),
    Operation("unload by force", behind_a_request(lambda stage: stage.runtime.unload("m0", force=True)), load("m0")),
    Operation("unload of an idle model by force", lambda stage: stage.runtime.unload("m0", force=True), load("m0")),
    Operation(
        "unload of several by force",
        behind_a_request(lambda stage: stage.runtime.unload_many(["m0", "m1"], force=True)),
        load("m0", "m1"),
    ),
    Operation(
        "unload by force in threads",
        behind_a_request(lambda stage: stage.runtime.unload("m0", force=True)),
        load("m0"),
        _THREADS,
    ),
    Operation("unload that is not waited for", expired, load("m0")),
    Operation("start", start, house=replace(_TWO_SLOTS, eager=True)),
    Operation("foresight", foresee, load("m0"), replace(_TWO_SLOTS, max_loaded=1)),
    Operation("close", behind_a_request(close), load("m0", "m1")),
    Operation("close that is cut", behind_a_request(cut), load("m0", "m1")),
    Operation("close of a load that is cut", behind_a_request(cut)),
    Operation("load in threads", lambda stage: stage.runtime.load("m0"), house=_THREADS),
    Operation("unload in threads", lambda stage: stage.runtime.unload("m0"), load("m0"), _THREADS),
    Operation("close in threads that is cut", behind_a_request(cut), load("m0", "m1"), _THREADS),
    Operation("close in threads of a load that is cut", behind_a_request(cut), house=_THREADS),
]

PLACES = {
    "load": (17, 3, 17),
    "load in one slot": (15, 2, 13),
    "request, cold": (21, 4, 22),
    "request, warm": (10, 1, 14),
    "two requests, cold": (36, 5, 36),
    "stream": (38, 5, 18),
    "stream that nobody reads": (8, 2, 14),
    "live audio": (63, 6, 29),
    "live audio, cut by a stop": (43, 4, 21),
    "batch": (32, 4, 16),
    "request that waits": (23, 2, 28),
    "request with audio": (9, 1, 15),
    "request with a voice": (11, 1, 21),
    "request whose load fails": (17, 3, 12),
    "request whose engine hangs": (8, 1, 17),
    "request whose load hangs": (17, 1, 25),
    "stream whose engine hangs": (37, 2, 24),
    "stream that hangs at its end": (60, 5, 33),
    "unload that hangs": (12, 1, 12),
    "two loads that take turns": (36, 3, 56),
    "two loads side by side": (46, 6, 66),
    "stream, cold": (49, 8, 26),
    "stream, closed early": (26, 3, 15),
    "stream that waits": (51, 6, 32),
    "batch, cold": (43, 7, 24),
    "batch that waits": (45, 5, 30),
    "registration": (26, 5, 20),
    "registration of too many slots": (28, 6, 14),
    "reconfiguration, unloaded": (26, 5, 22),
    "reconfiguration, nothing new": (15, 2, 11),
    "reconfiguration, nothing new, unloaded": (26, 5, 19),
    "reconfiguration, unloaded, and no room": (24, 3, 50),
    "reconfiguration, side by side in vain": (29, 8, 29),
    "reconfiguration, slots": (32, 8, 22),
    "reconfiguration, options": (32, 8, 22),
    "reconfiguration, weights": (30, 7, 21),
    "reconfiguration, one slot": (28, 6, 20),
    "reconfiguration, too many slots": (23, 6, 11),
    "reconfiguration, side by side": (25, 7, 22),
    "reconfiguration, side by side and overtaken": (90, 21, 62),
    "reconfiguration, side by side and unloaded": (42, 7, 64),
    "reconfiguration, side by side and too late": (23, 7, 48),
    "reconfiguration, weights, too late": (28, 7, 48),
    "reconfiguration, options, too late": (32, 8, 60),
    "reconfiguration, unloaded, too late": (26, 5, 57),
    "reconfiguration, unloaded, too many slots": (27, 6, 32),
    "reconfiguration, unloaded, one slot": (27, 4, 50),
    "reconfiguration behind a request": (43, 8, 35),
    "bulk": (24, 4, 11),
    "bulk behind a request": (37, 5, 24),
    "bulk behind a first load": (48, 8, 32),
    "eviction": (28, 6, 27),
    "eviction that is waited for": (41, 7, 41),
    "eviction that is waited for in vain": (17, 1, 34),
    "eviction for memory": (30, 6, 30),
    "eviction of the idle": (11, 2, 7),
    "unload": (10, 2, 10),
    "unload behind a request": (23, 3, 24),
    "unload by force": (18, 1, 30),
    "unload of an idle model by force": (10, 2, 10),
    "unload of several by force": (29, 3, 27),
    "unload by force in threads": (22, 3, 38),
    "unload that is not waited for": (14, 2, 35),
    "start": (54, 9, 52),
    "foresight": (10, 2, 73),
    "close": (32, 5, 16),
    "close that is cut": (28, 1, 15),
    "close of a load that is cut": (28, 1, 28),
    "load in threads": (18, 3, 34),
    "unload in threads": (11, 2, 18),
    "close in threads that is cut": (31, 5, 18),
    "close in threads of a load that is cut": (38, 5, 37),
}
"""How many places there were when this was noted: where callers leave, hosts fail, calls raise."""
