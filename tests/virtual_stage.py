"""A runtime over simulated hosts in virtual time: hosts die and hang where a test says so."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from antiphon.ports.observer import SilentObserver
from antiphon.runtime.api import BatchInference, BoundModel, Draft, Inference, OpenStream, Timing
from antiphon.runtime.parallel import ParallelServerState
from antiphon.runtime.wiring import EngineLimits, ResidencyLimits, RuntimePorts
from antiphon.testing.sim import Act, SimCall, SimHost, SimWorld, capability_of, sim_spec
from antiphon.testing.sim_codec import SimCodec
from antiphon.testing.virtual import VirtualClock, VirtualLoop
from antiphon.vocabulary.spec import Registration
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Interface, StreamEvent, TaskRequest, TaskResult

MIB = 2**20


@dataclass
class VirtualStage(SilentObserver):
    """Its calls take a millisecond each, where no act is set for a step of a model."""

    loop: VirtualLoop
    limits: ResidencyLimits = field(default_factory=ResidencyLimits)
    engine_limits: EngineLimits = field(default_factory=EngineLimits)
    memory_mb: int = 1000

    def __post_init__(self) -> None:
        self.world = SimWorld(self.memory_mb * MIB)
        self.world.script = self._script
        self.acts: dict[tuple[str, str], Act] = {}
        self.states: list[tuple[str, ModelState]] = []
        self.faults: list[tuple[str, str, str]] = []
        ports = RuntimePorts(
            VirtualClock(self.loop),
            SimCodec(),
            self,
            self.world.make_host,
            self.world,
            busy_timeout_ms=0,
            limits=self.limits,
            engine_limits=self.engine_limits,
            max_slots_of=lambda spec: 16,
        )
        self.runtime = ParallelServerState(ports)

    def transitioned(self, model_id: str, before: ModelState, after: ModelState) -> None:
        self.states.append((model_id, after))

    def failed(self, model_id: str, what: str, error: BaseException) -> None:
        self.faults.append((model_id, what, str(error)))

    def model(self, model_id: str = "a", slots: int = 2, *, megabytes: int = 1, **policy: int) -> None:
        """Register a lazy model."""
        spec = sim_spec(model_id, slots, megabytes=megabytes)
        self.runtime.add(Registration(spec, lazy=True, **policy), capability_of(spec))

    def hold(self, step: str, model: str = "a") -> asyncio.Event:
        """Have every such call of a model wait for the event."""
        held = asyncio.Event()
        self.acts[model, step] = Act(held=held)
        return held

    def dies(self, step: str, model: str = "a") -> None:
        """Have every such call of a model end in its host's death."""
        self.acts[model, step] = Act(dies=True)

    def like_threads(self) -> None:
        """Have hosts that cannot be killed from now on."""
        self.world.killable = False

    def well(self, model: str = "a") -> None:
        """Have a model's calls succeed from now on."""
        self.acts = {key: act for key, act in self.acts.items() if key[0] != model}

    def host(self, model: str = "a") -> SimHost:
        """The one host of a model."""
        (host,) = (it for it in self.world.hosts if it.spec.id == model)
        return host

    def say(self, text: str, model: str = "a", run_timeout_ms: int | None = None) -> "asyncio.Task[str]":
        """Begin an offline request; its task gives the engine's words."""
        return self.ask(order(text, model, run_timeout_ms=run_timeout_ms))

    def ask(self, inference: Inference) -> "asyncio.Task[str]":
        """Begin an offline request; its task gives the engine's words."""
        return self.loop.create_task(self.runtime.run(inference, _words))

    async def open(self, text: str, model: str = "a") -> OpenStream[StreamEvent]:
        """Begin a stream, with a piece for each word."""
        return await self.runtime.open_stream(order(text, model, Interface.STREAMING))

    def batch(self, *texts: str, model: str = "a") -> "asyncio.Task[OpenStream[tuple[int, TaskResult]]]":
        """Begin a batch."""
        drafts = tuple(Draft(TaskRequest(text=text), _as_it_is) for text in texts)
        return self.loop.create_task(self.runtime.open_batch(BatchInference(model, drafts)))

    def state(self, model: str = "a") -> ModelState:
        return self.runtime.view(model).state

    def loads(self, model: str = "a") -> int:
        """How many loads were begun."""
        return sum(it.step == "load" and it.spec.id == model for it in self.world.calls)

    async def settled(self) -> None:
        """Let everything come as far as it can."""
        await asyncio.sleep(1)

    def calls(self, step: str) -> list[SimCall]:
        return [it for it in self.world.calls if it.step == step]

    async def at_end(self) -> None:
        """Close the runtime: nothing may be left of what a test began, and no promise to a host be broken."""
        await self.runtime.close()
        assert not self.world.hosts
        assert self.world.violations == []
        assert not len(self.runtime._tasks)
        assert self.loop.complaints == []

    def _script(self, call: SimCall) -> Act:
        return self.acts.get((call.spec.id, call.step), Act())


def in_virtual_time(test: Callable[..., Coroutine]) -> Callable[..., None]:
    """Run a coroutine test on the loop of its `stage`, and end that."""

    @functools.wraps(test)
    def run(**fixtures: object) -> None:
        stage = fixtures["stage"]
        assert isinstance(stage, VirtualStage)

        async def whole() -> None:
            await test(**fixtures)
            await stage.at_end()

        stage.loop.run(whole())

    return run


def order(
    text: str, model: str, interface: Interface = Interface.OFFLINE, run_timeout_ms: int | None = None
) -> Inference:
    """A request, bound as it is."""
    return Inference(model, TaskRequest(text=text), _as_it_is, interface, run_timeout_ms=run_timeout_ms)


async def _as_it_is(model: BoundModel, request: TaskRequest) -> TaskRequest:
    return request


async def _words(result: TaskResult, timing: Timing) -> str:
    return result.text or ""
