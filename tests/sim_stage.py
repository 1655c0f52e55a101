"""A house of simulated models with its runtime, and what must always hold there: it begins nothing by itself.

What it finds is a list of sentences.
"""

import asyncio
from collections import Counter, deque
from dataclasses import replace

from antiphon.admission.gate import Gate
from antiphon.observability.journal.entries import Released
from antiphon.observability.observers import Observers
from antiphon.ports.observer import SilentObserver
from antiphon.residency.crashes import LONGEST_BACK_OFF_S
from antiphon.residency.eviction import RESIDENT
from antiphon.residency.lifecycle import TRANSITIONS, Step
from antiphon.runtime.api import BoundModel, Inference, Timing
from antiphon.runtime.models import ModelRuntime
from antiphon.runtime.owned import AbandonedError
from antiphon.runtime.wiring import EngineLimits, ResidencyLimits, RuntimePorts
from antiphon.testing.sim import Act, SimCall, SimWorld, capability_of, sim_spec
from antiphon.testing.sim_codec import SimCodec
from antiphon.testing.virtual import StalledError, VirtualClock, VirtualLoop
from antiphon.vocabulary.errors import (
    AntiphonError,
    InsufficientMemory,
    ServerBusy,
    UnsupportedSlots,
)
from antiphon.vocabulary.spec import ModelSpec, Registration
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import TaskRequest, TaskResult
from sim_history import History
from sim_journal import WatchedJournal

_MIB = 2**20
_MAX_STEPS = 50_000
_TAKES_MS = {
    "load": 3,
    "open": 1,
    "clone": 1,
    "close": 2,
    "inspect": 1,
    "probe": 1,
    "step": 1,
    "reset": 1,
    "terminate": 1,
}


class SimStage(SilentObserver):
    """One house, its world and its runtime, and what is found wrong with them."""

    def __init__(
        self, loop: VirtualLoop, history: History, gate: type[Gate] | None, runtime: type[ModelRuntime]
    ) -> None:
        house = self.house = history.house
        self.history = history
        self.loop = loop
        self.findings: list[str] = []
        self.edges: Counter = Counter()
        self.reasons: Counter = Counter()
        self.answers: Counter = Counter()
        self.open: set[str] = set()
        self.pools: dict[str, object] = {}
        self.names: set[str] = set()
        self.steps = 0
        self.closing = False
        self.faulty: set[str] = set()
        self.killed = house.frail and not house.threads
        self.armed: dict[tuple[str, str], deque[Act]] = {}
        if self.killed:
            self.armed["m0", "load"] = deque([Act(dies=True)] * 5)
        self.clients: list[asyncio.Task] = []
        self.world = SimWorld(house.memory * _MIB)
        self.world.killable = not house.threads
        self.world.script = self._script
        clock = VirtualClock(loop)
        self.journal = WatchedJournal(clock)
        self.metadata: dict[str, object] = {}
        limits = ResidencyLimits(house.max_loaded, house.idle_ms / 1000, house.min_free * _MIB, house.room_ms / 1000)
        ports = RuntimePorts(
            clock,
            SimCodec(),
            self if gate is None else Observers([self, self.journal]),
            self.world.make_host,
            self.world,
            house.busy_ms,
            limits,
            EngineLimits(*[house.engine_ms / 1000] * 3),
            max_slots_of=lambda spec: 4,
            make_gate=Gate if gate is None else self.journal.maker(gate),
        )
        self.runtime = runtime(ports)
        for number, slots in enumerate(house.slots):
            spec = sim_spec(f"m{number}", slots)
            registration = Registration(spec, lazy=not house.eager, pinned=house.pinned and number == 0)
            self.runtime.add(registration, capability_of(spec))
        self.journal.after = self._decided
        self.run_ms = {f"r{at}": 1 + event.value % 9 for at, event in enumerate(history.events)}

    def find(self, finding: str) -> None:
        self.findings.append(f"{finding} (at {(self.loop.time() - 1000) * 1000:.3f} ms)")

    def count_step(self) -> None:
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise StalledError("it goes round in circles")

    # The observer

    def transitioned(self, model_id: str, before: ModelState, after: ModelState) -> None:
        step = self._step(model_id, before, after)
        self.edges[before, step] += 1
        # An adopted pool has two places within this one step: its own, and the one that it was built in.
        self._check_room(adopted=step is Step.ADOPT)

    def failed(self, model_id: str, what: str, error: BaseException) -> None:
        if not isinstance(error, AntiphonError | AbandonedError):
            self.find(f"{what} of {model_id} failed of {error!r}")

    def _step(self, model_id: str, before: ModelState, after: ModelState) -> Step:
        """Which step it was; of the two that lead back from reconfiguring, one keeps the pool."""
        pool = self.runtime._residents.get(model_id).pool
        steps = [step for (state, step), leads_to in TRANSITIONS.items() if (state, leads_to) == (before, after)]
        if after is ModelState.RECONFIGURING:
            self.pools[model_id] = pool
        if len(steps) > 1:
            return Step.PRESERVE if pool is self.pools[model_id] else Step.PUBLISH
        return steps[0]

    # The world

    def _script(self, call: SimCall) -> Act:
        armed = self.armed.get((call.spec.id, call.step))
        takes_ms = _TAKES_MS.get(call.step, self.run_ms.get(call.text or "", 2))
        if not armed:
            return Act(takes_ms)
        act = armed.popleft()
        if act.held is not None and self.house.threads:  # nothing else could end it
            self.loop.call_later(3 * self.house.engine_ms / 1000, act.held.set)
        return replace(act, takes_ms=takes_ms)

    # What must hold

    def _decided(self, gate: Gate) -> None:
        resident = self.runtime._residents.get(gate.name)
        if resident is None:
            return
        entry = resident.entry
        seen = self.metadata.setdefault(gate.name, entry.metadata)
        if seen is not entry.metadata and gate._exclusive is None and not self._just_released_exclusive(gate):
            self.find(f"{gate.name} was changed under no exclusive lease")
        self.metadata[gate.name] = entry.metadata
        self.names.add(gate.name)
        self._check_room()
        for resident in self.runtime._residents:
            self._check_state(resident)

    def _just_released_exclusive(self, gate: Gate) -> bool:
        last = self.journal.lines[-1]
        return isinstance(last, Released) and last.model == gate.name

    def _check_state(self, resident) -> None:
        entry, state = resident.entry, resident.entry.state
        if (resident.pool is not None) != (state is ModelState.READY) and state is not ModelState.RECONFIGURING:
            self.find(f"{entry.id} is {state} and its pool is {resident.pool}")
        if (resident.pool is None) != (entry.facts is None):
            self.find(f"{entry.id} has {entry.facts} for {resident.pool}")
        if state is ModelState.LOADING and resident.attempt is None:
            self.find(f"{entry.id} loads and nobody loads it")
        if resident.overdue is not None and not all(waiter.done() for waiter in resident.waiters):
            self.find(f"a caller still waits for {entry.id}, which is overdue")
        if state is ModelState.READY and len(resident.pool.host.sessions) != entry.registration.spec.slots:
            self.find(f"{entry.id} is published in part")

    def _check_room(self, *, adopted: bool = False) -> None:
        resident = sum(entry.state in RESIDENT for entry in self.runtime._residents.registry)
        beside = len(self.runtime._residents.evictions._beside) - adopted
        if self.house.max_loaded and resident + beside > self.house.max_loaded:
            self.find(f"{resident} models are resident and {beside} built beside, of {self.house.max_loaded}")

    async def quiet(self) -> None:
        """Wait until nobody waits and nothing runs."""
        if self.clients:
            await asyncio.wait(self.clients)
        self.clients.clear()
        for _ in range(3):  # a stream that was dropped last is ended by a callback, in a task of its own
            await self.runtime._tasks.join()
            await asyncio.sleep(0)

    async def _bound(self, model: BoundModel, request: TaskRequest) -> TaskRequest:
        entry = self.runtime._residents.registry.find(model.registration.spec.id)
        if model.registration is not entry.registration:
            self.find(f"{request.text} was bound to what {entry.id} was")
        return request

    # Afterwards

    def check_idle(self) -> None:
        desk, residents = self.runtime._desk, self.runtime._residents
        for resident in residents:
            gate = desk.view(resident.entry.id)
            if gate.leases or gate.queue:
                self.find(f"the gate of {resident.entry.id} is left with {gate}")
            if gate.capacity != resident.entry.registration.spec.slots:
                self.find(f"the gate of {resident.entry.id} has {gate.capacity} slots")
            if resident.attempt is not None or resident.entry.state not in (ModelState.READY, ModelState.UNLOADED):
                self.find(f"{resident.entry.id} is left {resident.entry.state}")
            self._check_state(resident)
        if desk._pending or len(self.runtime._tasks) or residents.evictions._beside or residents._room._waiting:
            self.find(
                f"left over: {desk._pending}, {len(self.runtime._tasks)} tasks, {len(residents.evictions._beside)}"
            )
        pools = [it.pool.host for it in residents if it.pool is not None]
        if len(pools) != len(self.world.hosts) or any(it not in pools for it in self.world.hosts):
            self.find(f"{len(self.world.hosts)} hosts are left for {len(pools)} pools")
        if any(host.busy for host in pools):
            self.find("a slot is left at work")

    async def check_idle_unload(self) -> None:
        if not self.house.idle_ms:
            return
        slowest_teardown_ms = 3 * self.house.engine_ms + 100
        await asyncio.sleep((self.house.idle_ms + slowest_teardown_ms) / 1000)
        for entry in self.runtime._residents.registry:
            if entry.state is not ModelState.UNLOADED and not entry.registration.pinned:
                self.find(f"{entry.id} is idle and {entry.state}")

    async def check_next(self) -> None:
        """The next request on each model works, or is refused for a reason that lies in how it is registered."""
        self.armed.clear()
        if self.killed:
            await asyncio.sleep(LONGEST_BACK_OFF_S)
        for resident in self.runtime._residents:
            spec = resident.entry.registration.spec

            async def finish(result: TaskResult, timing: Timing, spec: ModelSpec = spec) -> None:
                if result.text != answer_of(spec, "next"):
                    self.find(f"the next request on {spec.id} was answered {result.text}")

            inference = Inference(spec.id, TaskRequest(text="next"), self._bound, busy_timeout_ms=0)
            try:
                await self.runtime.run(inference, finish)
            except UnsupportedSlots:
                if spec.slots <= min(4, spec.load_options["capacity"]):
                    self.find(f"the next request on {spec.id} was refused")
            except InsufficientMemory as refusal:
                if self.house.memory >= 1000:
                    self.find(f"the next request on {spec.id} was refused: {refusal}")
            except ServerBusy as refusal:
                if not (self.house.pinned and self.house.max_loaded):
                    self.find(f"the next request on {spec.id} was refused: {refusal}")
            except Exception as fault:  # noqa: BLE001 (as above)
                self.find(f"the next request on {spec.id} failed: {fault!r}")
        await self.runtime._tasks.join()

    def check_closed(self) -> None:
        self.check_idle()
        if self.world.hosts:
            self.find(f"{len(self.world.hosts)} hosts outlive the runtime")
        if any(entry.state is not ModelState.UNLOADED for entry in self.runtime._residents.registry):
            self.find("a model outlives the runtime")


def answer_of(spec: ModelSpec, text: str) -> str:
    """What a simulated model says."""
    return f"{spec.id}@{spec.load_options['revision']}/{spec.session_options['style']}|{text}"
