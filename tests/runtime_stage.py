"""A runtime over real threads and controlled checkpoints, with its clock in the test's hand."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from antiphon.admission.gate import Gate
from antiphon.audio.decode import DecodeLimits
from antiphon.ports.host import SlotHost
from antiphon.ports.observer import SilentObserver
from antiphon.runtime.api import Bind, BoundModel, Inference, ModelView, OpenStream, Strategy, Timing
from antiphon.runtime.codecs import ThreadCodec
from antiphon.runtime.hosts.thread import ThreadHost
from antiphon.runtime.models import ModelRuntime
from antiphon.runtime.pool import Pool
from antiphon.runtime.wiring import ResidencyLimits, RuntimePorts
from antiphon.testing import ControlledAdapter, ControlledCheckpoint, ManualClock
from antiphon.vocabulary.audio import Pcm
from antiphon.vocabulary.spec import ModelSpec, Registration
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Final, Interface, OptionValue, StreamEvent, Task, TaskRequest, TaskResult


@dataclass(frozen=True)
class Kind:
    """One of the server's runtimes, and the slots of its models."""

    make: type[ModelRuntime]
    slots: int

    def __str__(self) -> str:
        return f"{self.make.__name__}-{self.slots}"


class Ear(SilentObserver):
    """An observer that remembers."""

    def __init__(self) -> None:
        self.states: list[tuple[str, ModelState]] = []
        self.faults: list[tuple[str, str, str]] = []
        self.runs: list[str] = []

    def transitioned(self, model_id: str, before: ModelState, after: ModelState) -> None:
        self.states.append((model_id, after))

    def failed(self, model_id: str, what: str, error: BaseException) -> None:
        self.faults.append((model_id, what, str(error)))

    def ran(self, model_id: str, load_s: float, run_s: float) -> None:
        self.runs.append(model_id)


_NO_LIMITS = ResidencyLimits()


class Stage:
    """Registers models and asks things of the runtime. What a test began is joined and checked at its end."""

    def __init__(
        self,
        folder: Path,
        kind: Kind,
        limits: ResidencyLimits = _NO_LIMITS,
        make_gate: Callable[[str, int], Gate] = Gate,
    ) -> None:
        self.kind = kind
        self.clock = ManualClock()
        self.ear = Ear()
        self.adapter = ControlledAdapter()
        self.make_host: Callable[[ModelSpec], SlotHost] = partial(ThreadHost, self.adapter)
        self.codec = ThreadCodec(DecodeLimits(max_seconds=60), 0, threads=1)
        self.free_bytes = 2**40
        self.process_bytes: int | None = 0
        self._max_slots: dict[str, int] = {}
        self.audit: Callable[[ModelSpec], int] = lambda spec: self._max_slots.get(spec.id, 16)
        ports = RuntimePorts(
            self.clock,
            self.codec,
            self.ear,
            lambda spec, on_death: self.make_host(spec),
            self,
            busy_timeout_ms=0,
            limits=limits,
            max_slots_of=lambda spec: self.audit(spec),  # noqa: PLW0108 (as above)
            make_gate=make_gate,
        )
        self.runtime = kind.make(ports)
        self.hung = False
        self._folder = folder
        self._checkpoints: dict[str, ControlledCheckpoint] = {}

    def model(
        self,
        model_id: str = "a",
        task: Task = Task.TTS,
        *,
        lazy: bool = True,
        busy_timeout_ms: int | None = None,
        slots: int | None = None,
        max_slots: int = 16,
        pinned: bool = False,
        weight_bytes: int = 0,
    ) -> ControlledCheckpoint:
        """Add a model as at the start; its revision is its id."""
        checkpoint = self.checkpoint(model_id)
        checkpoint.set("bytes", str(weight_bytes))
        spec = checkpoint.spec(task, model_id=model_id, slots=self.kind.slots if slots is None else slots)
        capability = self.adapter.inspect(spec)
        self._max_slots[model_id] = max_slots
        self.runtime.add(Registration(spec, lazy, busy_timeout_ms, pinned), capability)
        return checkpoint

    def checkpoint(self, name: str) -> ControlledCheckpoint:
        """Make a folder to load; its revision is its name."""
        return self._checkpoints.setdefault(name, ControlledCheckpoint(self._folder / name))

    def registration(
        self, model_id: str = "a", folder: str | None = None, *, slots: int | None = None, **options: OptionValue
    ) -> Registration:
        """What to register so that a folder, the id's own if none is named, is loaded with these session options."""
        checkpoint = self.checkpoint(folder or model_id)
        slots = self.kind.slots if slots is None else slots
        return Registration(checkpoint.spec(model_id=model_id, slots=slots, session_options=options), lazy=True)

    def register(
        self,
        registration: Registration,
        busy_timeout_ms: int | None = None,
        strategy: Strategy = Strategy.REPLACE,
    ) -> "asyncio.Task[ModelView]":
        """Begin to register or reconfigure."""
        return asyncio.ensure_future(self.runtime.register(registration, busy_timeout_ms, strategy))

    async def bring(self, *models: str) -> None:
        """Load models one after another, a second between them, so that the first is the least recently used."""
        for model in models:
            self.clock.advance(1)
            await self.runtime.load(model)

    def pool(self, model: str = "a") -> Pool | None:
        """The published pool itself: two loads never give the same one."""
        return self.runtime._residents.find(model).pool

    def available_bytes(self) -> int:
        """How much memory there is: the stage is also the meter."""
        return self.free_bytes

    async def resident_bytes(self) -> int | None:
        """How much the process holds."""
        return self.process_bytes

    def say(self, text: str, model: str = "a", busy_timeout_ms: int | None = None) -> "asyncio.Task[str]":
        """Begin an offline request; its task gives the engine's words."""
        return self.ask(order(text, model, busy_timeout_ms=busy_timeout_ms))

    def ask(self, inference: Inference) -> "asyncio.Task[str]":
        """Begin an offline request; its task gives the engine's words."""
        return asyncio.ensure_future(self.runtime.run(inference, _words))

    async def timing_of(self, inference: Inference) -> Timing:
        """Run offline; where the time went."""
        return await self.runtime.run(inference, _timing)

    async def open(self, text: str, model: str = "a") -> OpenStream[StreamEvent]:
        """Begin a stream."""
        return await self.runtime.open_stream(order(text, model, Interface.STREAMING))

    def fill(self, model: str = "a") -> "list[asyncio.Task[str]]":
        """Begin a request for each slot, named slot0, slot1, ..."""
        return [self.say(f"slot{number}", model) for number in range(self.kind.slots)]

    async def waiting(self, count: int, model: str = "a") -> None:
        """Let the loop run until so many claims wait at the model's gate."""
        await until(lambda: self.runtime._desk.view(model).waiting == count)

    def state(self, model: str = "a") -> ModelState:
        return self.runtime.view(model).state

    def hold_nothing(self) -> None:
        """Take back every hold."""
        for checkpoint in self._checkpoints.values():
            for path in checkpoint.path.iterdir():
                if ".hold" in path.name:
                    path.unlink(missing_ok=True)

    async def at_end(self) -> None:
        """Close the runtime; no lease, claim, task or pool may be left."""
        self.hold_nothing()
        if self.hung:
            return
        await self.runtime.close()
        self.codec.close()
        for status in self.runtime.status():
            model = status.view.registration.spec.id
            assert (status.gate.leases, status.gate.queue) == ((), ()), f"the gate of {model} is not idle"
            assert status.view.state is ModelState.UNLOADED
            assert self.pool(model) is None
        assert not self.runtime._desk._pending
        assert not self.runtime._residents._room._waiting
        assert not len(self.runtime._tasks)
        assert self.clock.statistics().pending == (), "an alarm outlives the runtime"


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop run until something holds that nothing announces."""
    while not holds():  # noqa: ASYNC110 (see above)
        await asyncio.sleep(0)


def order(
    text: str,
    model: str = "a",
    interface: Interface = Interface.OFFLINE,
    *,
    busy_timeout_ms: int | None = None,
    audio: Pcm | None = None,
) -> Inference:
    """A request as a service makes it, bound as it is."""
    return Inference(model, TaskRequest(text=text, audio=audio), as_it_is, interface, busy_timeout_ms)


async def as_it_is(model: BoundModel, request: TaskRequest) -> TaskRequest:
    """Bind without a check."""
    return request


def bound_by(bind: Bind, inference: Inference) -> Inference:
    return replace(inference, bind=bind)


async def drained(stream: OpenStream) -> list[StreamEvent]:
    """All events of a stream, which is then closed."""
    events = [event async for event in stream]
    await stream.aclose()
    return events


def words_of(events: list[StreamEvent]) -> str:
    """The text of a stream's final result."""
    last = events[-1]
    assert isinstance(last, Final)
    return last.result.text or ""


async def left(task: "asyncio.Task[str]") -> None:
    """Be the client that goes: cancel the task that waits for the answer."""
    task.cancel()
    outcome = (await asyncio.gather(task, return_exceptions=True))[0]
    assert isinstance(outcome, asyncio.CancelledError)


async def _words(result: TaskResult, timing: Timing) -> str:
    return result.text or ""


async def _timing(result: TaskResult, timing: Timing) -> Timing:
    return timing
