"""`SimHost`: engines that exist in virtual time only. A world says how long each call takes and whether it fails.

The world also watches: what the runtime promised to its hosts (one call at a time a slot, sessions closed before
weights, no call cancelled) is checked at every call, and what is broken is noted in `violations`. A world knows no
leases and no models, only hosts.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

from antiphon.testing.mortal import Mortal
from antiphon.testing.sim_codec import RATE
from antiphon.testing.sim_flow import SimFlow
from antiphon.vocabulary.audio import AudioChunk
from antiphon.vocabulary.errors import AntiphonError, EngineError, InsufficientMemory, WorkerDied
from antiphon.vocabulary.spec import Capability, ModelSpec, SessionFacts
from antiphon.vocabulary.tasks import (
    Final,
    Interface,
    Mode,
    StreamEvent,
    Task,
    TaskRequest,
    TaskResult,
    TextDelta,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Act:
    """What becomes of one call: it takes `takes_ms` virtual milliseconds, and longer while `held`, then perhaps fails.

    `empty` has a call that opens a session open none; `dies` has the host die in the call, at its end.
    """

    takes_ms: float = 1.0
    fault: Exception | None = None
    held: asyncio.Event | None = None
    empty: bool = False
    dies: bool = False


@dataclass(frozen=True, slots=True)
class SimCall:
    """A call that was made to a host; `text` is the request's, where it has one."""

    step: str
    spec: ModelSpec
    slot: int | None = None
    text: str | None = None


def _one_ms(call: SimCall) -> Act:
    del call
    return Act()


class SimWorld:
    """Hosts, their memory, and what they saw. It is the factory of hosts and the meter of memory of a runtime.

    Units: `total_bytes` is what there is before anything is loaded.
    """

    def __init__(self, total_bytes: int = 2**40) -> None:
        self.script: Callable[[SimCall], Act] = _one_ms
        self.total_bytes = total_bytes
        self.killable = True
        """Whether hosts are like processes, or like threads: those die only where the script says so."""
        self.used_bytes: int | None = None
        """What a measurement of any host finds, where a test wants something else than its weights."""
        self.calls: list[SimCall] = []
        self.violations: list[str] = []
        self.hosts: list[SimHost] = []
        """Those that may still be called."""

    def make_host(self, spec: ModelSpec, on_death: Callable[[], None]) -> "SimHost":
        """Make a host for one load; it dies when it is killed, or where the script says so."""
        host = SimHost(self, spec, on_death)
        self.hosts.append(host)
        return host

    def available_bytes(self) -> int:
        """What no loaded weights take."""
        return self.total_bytes - sum(weight_bytes(host.spec) for host in self.hosts if host.loaded)

    async def resident_bytes(self) -> int:
        """What they take; a reading takes a turn of the loop."""
        await asyncio.sleep(0)
        return self.total_bytes - self.available_bytes()

    def require(self, holds: bool, promise: str) -> None:
        """Note a promise that is broken."""
        if not holds:
            self.violations.append(promise)

    async def act(self, call: SimCall, mortal: Mortal) -> Act:
        """Let a call take its time, as long as its host lives; raises the fault that the script has for it."""
        self.calls.append(call)
        act = self.script(call)
        try:
            if act.takes_ms:
                await mortal.wait(act.takes_ms / 1000)
            if act.held is not None:
                await mortal.wait(act.held)
        except asyncio.CancelledError:
            self.violations.append(f"{call.step} was cancelled")
            raise
        if act.dies:
            mortal.die()
        mortal.require_alive()
        if act.fault is not None:
            raise domain_fault(act.fault)
        return act


class SimHost:
    """`SlotHost` in virtual time, a process of its own as it were: it can be killed.

    `load_options` steer it: `revision` and `capacity` (of its sessions).

    An answer is "<id>@<revision>/<style>|<text>", style being the session's; a stream has its words one by one.
    """

    def __init__(self, world: SimWorld, spec: ModelSpec, on_death: Callable[[], None]) -> None:
        self.spec = spec
        self.killable = world.killable
        self.loaded = False
        self.sessions: set[int] = set()
        self.busy: set[int] = set()
        self._world = world
        self._mortal = Mortal(self._died)
        self._on_death = on_death

    async def inspect(self) -> Capability:
        """Say what every simulated model can do."""
        await self._act("inspect")
        return capability_of(self.spec)

    async def load(self) -> None:
        """Take the weights' memory."""
        self._world.require(not self.loaded, "weights are loaded once")
        if self._world.available_bytes() < weight_bytes(self.spec):
            raise InsufficientMemory("the simulated machine has no memory left")
        self._mortal.require_alive()
        self.loaded = True  # from its beginning, as a real load takes memory before it is done
        await self._act("load")

    async def open(self) -> SessionFacts | None:
        """Open the primary."""
        return await self._seat("open", 0)

    async def probe(self, spec: ModelSpec) -> SessionFacts | None:
        """Open a private session and close it."""
        self._mortal.require_alive()
        self._world.require(self.loaded, "a probe needs weights")
        act = await self._act("probe")
        return None if act.empty else facts_of(spec)

    async def clone(self, slot: int) -> SessionFacts | None:
        """Clone the primary."""
        self._mortal.require_alive()
        self._world.require(self.sessions == set(range(slot)), "slots are cloned in order, after the primary")
        return await self._seat("clone", slot)

    async def run(self, slot: int, request: TaskRequest) -> TaskResult:
        """Answer a request."""
        self._mortal.require_alive()
        with _Occupied(self, self._world, slot):
            await self._act("run", slot, request.text)
            return self._answer(request)

    async def run_batch(self, slot: int, requests: Sequence[TaskRequest]) -> "SimFlow[tuple[int, TaskResult]]":
        """Begin a batch, whose results come in order."""
        results = [(index, self._answer(request)) for index, request in enumerate(requests)]
        return await self._begin("run_batch", slot, requests[0].text if requests else None, results)

    async def stream(
        self, slot: int, request: TaskRequest, audio: AsyncIterator[AudioChunk] | None
    ) -> "SimFlow[StreamEvent]":
        """Begin a stream: a piece for every chunk of live audio, one for every word, and the whole."""
        result = self._answer(request)
        words = (result.text or "").split()
        items: list[StreamEvent] = [*(TextDelta(word) for word in words), Final(result)]
        flow = await self._begin("stream", slot, request.text, items)
        return flow if audio is None else flow.over(audio, lambda chunk: TextDelta(str(chunk.pcm.frames)))

    async def close(self) -> None:
        """Close the sessions, then the weights, whatever of them exists and whether or not it fails."""
        self._world.require(not self.busy or self._mortal.dead, "no session is closed at work")
        self._world.require(not self._mortal.gone, "close comes before terminate")
        try:
            while self.sessions:
                self.sessions.discard(max(self.sessions))
            if self.loaded:
                await self._act("close")
            self._mortal.require_alive()
        finally:
            self.loaded = False

    async def terminate(self) -> None:
        """Leave the world."""
        gone = self._mortal.gone
        self._world.require(not (self.sessions or self.loaded or gone), "terminate comes last, and once")
        try:
            if not self._mortal.dead:
                with suppress(WorkerDied):
                    await self._act("terminate")
        finally:
            self._mortal.gone = True
            self._world.hosts.remove(self)

    def kill(self) -> None:
        """Die, unless it is dead, gone or not killable: what is under way fails, sessions and memory go at once."""
        if self.killable:
            self._mortal.die()

    @property
    def death(self) -> str | None:
        """That it died; None while it lives."""
        return "it was killed" if self._mortal.dead else None

    async def resident_bytes(self) -> int | None:
        """What it is said to take, or its weights' memory; None for a host that has died."""
        await asyncio.sleep(0)
        return None if self._mortal.dead else self._world.used_bytes or weight_bytes(self.spec) * self.loaded

    async def advance(self, step: str, *, slot: int, text: str | None) -> None:
        """Let one step of a stream or batch take its time."""
        await self._act(step, slot, text)

    def _died(self) -> None:
        self.sessions.clear()
        self.loaded = False
        self._on_death()

    async def _act(self, step: str, slot: int | None = None, text: str | None = None) -> Act:
        self._mortal.require_alive()
        self._world.require(not self._mortal.gone, f"no {step} after terminate")
        return await self._world.act(SimCall(step, self.spec, slot, text), self._mortal)

    async def _seat(self, step: str, slot: int) -> SessionFacts | None:
        self._mortal.require_alive()
        self._world.require(self.loaded and slot not in self.sessions, f"{step} needs weights and a free seat")
        act = await self._act(step, slot)
        if act.empty:
            return None
        self.sessions.add(slot)
        return facts_of(self.spec)

    async def _begin(self, step: str, slot: int, text: str | None, items: Sequence[T]) -> "SimFlow[T]":
        self._mortal.require_alive()
        occupied = _Occupied(self, self._world, slot)
        with occupied:
            await self._act(step, slot, text)
            occupied.keep()
        return SimFlow(partial(self.advance, slot=slot, text=text), occupied.leave, items)

    def _answer(self, request: TaskRequest) -> TaskResult:
        revision, style = self.spec.load_options.get("revision", 0), self.spec.session_options.get("style", 0)
        return TaskResult(text=f"{self.spec.id}@{revision}/{style}|{request.text or ''}")


class _Occupied:
    """A slot at work, until the block ends or, when it is kept, until `leave`."""

    def __init__(self, host: SimHost, world: SimWorld, slot: int) -> None:
        self._host = host
        self._slot = slot
        self._kept = False
        world.require(slot in host.sessions, "only an open session is called")
        world.require(slot not in host.busy, "a slot has one call at a time")

    def __enter__(self) -> Self:
        self._host.busy.add(self._slot)
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._kept:
            self.leave()

    def keep(self) -> None:
        self._kept = True

    def leave(self) -> None:
        self._host.busy.discard(self._slot)


def sim_spec(
    model_id: str, slots: int = 1, *, revision: int = 0, style: int = 0, capacity: int = 16, megabytes: int = 1
) -> ModelSpec:
    """A simulated model. `revision` is of its weights and `style` of its sessions; both are in every answer."""
    return ModelSpec(
        model_id,
        "sim",
        f"/sim/{model_id}",
        Task.TTS,
        slots=slots,
        load_options={"revision": revision, "capacity": capacity, "megabytes": megabytes},
        session_options={"style": style},
    )


def weight_bytes(spec: ModelSpec) -> int:
    """How much memory the weights take."""
    megabytes = spec.load_options.get("megabytes", 1)
    assert isinstance(megabytes, int)
    return megabytes * 2**20


def capability_of(spec: ModelSpec) -> Capability:
    """What the simulated family says of a model."""
    return Capability(frozenset({Task.TTS}), frozenset({Mode.OFFLINE}), RATE, weight_bytes(spec))


def facts_of(spec: ModelSpec) -> SessionFacts:
    """What a simulated session says of itself."""
    capacity = spec.load_options.get("capacity", 16)
    assert isinstance(capacity, int)
    return SessionFacts(spec.family, spec.task, spec.mode, frozenset(Interface), RATE, 1, capacity)


def domain_fault(fault: Exception) -> AntiphonError:
    """What a host makes of an engine's fault: domain errors as they are, the rest as EngineError with its cause."""
    if isinstance(fault, AntiphonError):
        return fault
    wrapped = EngineError(f"the engine failed ({type(fault).__name__})")
    wrapped.__cause__ = fault
    return wrapped
