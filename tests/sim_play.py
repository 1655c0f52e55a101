"""Plays a history on a whole runtime in virtual time, and checks at every decision of the core what must always hold.

What it finds is a list of sentences; a history without any is in order.
"""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field, replace

from antiphon.admission.gate import Decision, Gate
from antiphon.residency.crashes import LONGEST_BACK_OFF_S
from antiphon.residency.eviction import _RESIDENT
from antiphon.residency.lifecycle import TRANSITIONS, Step
from antiphon.runtime.api import BatchInference, BoundModel, Inference, Strategy, Timing
from antiphon.runtime.models import ModelRuntime
from antiphon.runtime.owned import AbandonedError
from antiphon.runtime.parallel import ParallelServerState
from antiphon.runtime.serial import ServerState
from antiphon.runtime.wiring import EngineLimits, ResidencyLimits, RuntimePorts
from antiphon.testing.sim import Act, SimCall, SimWorld, capability_of, sim_spec
from antiphon.testing.sim_codec import SimCodec
from antiphon.testing.virtual import StalledError, VirtualClock, VirtualLoop
from antiphon.vocabulary.errors import (
    AntiphonError,
    EngineError,
    InsufficientMemory,
    InvalidRequest,
    LoadFailed,
    ModelNotFound,
    RunTimeout,
    ServerBusy,
    ShuttingDown,
    UnsupportedSlots,
    WorkerDied,
)
from antiphon.vocabulary.spec import ModelSpec, Registration
from antiphon.vocabulary.states import ModelState
from antiphon.vocabulary.tasks import Final, Interface, TaskRequest, TaskResult
from sim_history import FAULTS, HANGS, Event, History
from sim_journal import Journal, journaled

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
_REFUSALS = {
    "came free within": "expired",
    "has run for longer": "overdue",
    "are all in use": "no room",
    "no room for a second pool": "no room beside",
    "times in a row": "died too often",
}
REASONS = (
    *_REFUSALS.values(),
    "no room in time",
    "no memory",
    "worker died",
    "run took too long",
    "load took too long",
    "load failed",
    "too many slots",
    "engine failed",
    "invalid registration",
    "unknown model",
    "shutting down",
)
"""Every reason why a client may be refused."""


@dataclass
class Report:
    """What came of a history."""

    findings: list[str]
    journal: Journal
    edges: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)
    answered: int = 0


def play(
    history: History,
    gate: type[Gate] = Gate,
    parallel: type[ModelRuntime] = ParallelServerState,
    serial: type[ModelRuntime] = ServerState,
) -> Report:
    """Play a history to its end, and what must be possible afterwards; the classes may be mutants."""
    loop = VirtualLoop()
    try:
        stage = Play(loop, history, gate, parallel if history.house.parallel else serial)
        loop.before_step = stage.count_step
        try:
            loop.run(stage.main())
        except StalledError as stall:
            stage.find(f"{stall}: {stage.open}")
        stage.findings += loop.complaints + stage.world.violations + stage.journal.differences
        return stage.report()
    finally:
        for task in asyncio.all_tasks(loop):
            task.get_coro().close()
            task._log_destroy_pending = False
        loop.close()


class Play:
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
        self.registered: set[str] = set()
        self.steps = 0
        self.closing = False
        self.faulty: set[str] = set()
        self.killed = house.frail
        self.armed: dict[tuple[str, str], deque[Act]] = {}
        if house.frail:
            self.armed["m0", "load"] = deque([Act(dies=True)] * 5)
        self.clients: list[asyncio.Task] = []
        self.world = SimWorld(house.memory * _MIB)
        self.world.script = self._script
        self.journal = Journal()
        self.metadata: dict[str, object] = {}
        limits = ResidencyLimits(house.max_loaded, house.idle_ms / 1000, house.min_free * _MIB, house.room_ms / 1000)
        ports = RuntimePorts(
            VirtualClock(loop),
            SimCodec(),
            self,
            self.world.make_host,
            self.world,
            house.busy_ms,
            limits,
            EngineLimits(*[house.engine_ms / 1000] * 3),
            max_slots_of=lambda spec: 4,
            make_gate=Gate if gate is None else journaled(gate, self.journal),
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

    def report(self) -> Report:
        return Report(self.findings, self.journal, self.edges, self.reasons, sum(self.answers.values()))

    # The observer

    def transitioned(self, model_id: str, before: ModelState, after: ModelState) -> None:
        self.edges[before, self._step(model_id, before, after)] += 1
        self._check_room()

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
        return replace(armed.popleft(), takes_ms=takes_ms) if armed else Act(takes_ms)

    # What must hold

    def _decided(self, gate: Gate, decisions: list[Decision]) -> None:
        resident = self.runtime._residents.get(gate.name)
        if resident is None:
            return
        entry = resident.entry
        seen = self.metadata.setdefault(gate.name, entry.metadata)
        if seen is not entry.metadata and gate._exclusive is None and not self._just_released_exclusive(gate):
            self.find(f"{gate.name} was changed under no exclusive lease")
        self.metadata[gate.name] = entry.metadata
        self.registered.add(gate.name)
        self._check_room()
        for resident in self.runtime._residents:
            self._check_state(resident)

    def _just_released_exclusive(self, gate: Gate) -> bool:
        last = self.journal.lines[-1]
        return last.gate == gate.name and last.call == "release"

    def _check_state(self, resident) -> None:
        entry, state = resident.entry, resident.entry.state
        if (resident.pool is not None) != (state is ModelState.READY) and state is not ModelState.RECONFIGURING:
            self.find(f"{entry.id} is {state} and its pool is {resident.pool}")
        if (resident.pool is None) != (entry.facts is None):
            self.find(f"{entry.id} has {entry.facts} for {resident.pool}")
        if state is ModelState.LOADING and resident.attempt is None:
            self.find(f"{entry.id} loads and nobody loads it")
        if state is ModelState.READY and len(resident.pool.host.sessions) != entry.registration.spec.slots:
            self.find(f"{entry.id} is published in part")

    def _check_room(self) -> None:
        resident = sum(entry.state in _RESIDENT for entry in self.runtime._residents.registry)
        beside = len(self.runtime._residents._aside)
        if self.house.max_loaded and resident + beside > self.house.max_loaded:
            self.find(f"{resident} models are resident and {beside} built beside, of {self.house.max_loaded}")

    # The play

    async def main(self) -> None:
        if self.house.eager:
            await self.runtime.start()
        for at, event in enumerate(self.history.events):
            self.loop.call_at(1000 + event.at_ms / 1000, self._begin, at, event)
        last = max((it.at_ms for it in self.history.events), default=0)
        await asyncio.sleep(last / 1000 + 0.001)
        await self.quiet()
        if self.closing:
            self.check_closed()
            return
        self.check_idle()
        await self._check_idle_unload()
        await self.check_next()
        await self.runtime.close()
        self.closing = True
        self.check_closed()

    async def quiet(self) -> None:
        """Wait until nobody waits and nothing runs."""
        if self.clients:
            await asyncio.wait(self.clients)
        self.clients.clear()
        for _ in range(3):  # a stream that was dropped last is ended by a callback, in a task of its own
            await self.runtime._tasks.join()
            await asyncio.sleep(0)

    def _begin(self, at: int, event: Event) -> None:
        if event.act == "fault":
            step = FAULTS[event.value % len(FAULTS)]
            act = Act(empty=True) if step in ("open", "clone", "probe") and event.value % 2 else Act(fault=OSError())
            self.armed.setdefault((self._id(event), step), deque()).append(act)
            self.faulty.add(self._id(event))
            return
        if event.act == "hang":
            self._hang(self._id(event), event.value)
            return
        if event.act == "kill":
            self._kill(self._id(event), event.value)
            return
        task = self.loop.create_task(self._client(at, event))
        self.clients.append(task)
        if event.leaves_ms is not None and event.act != "close":
            self.loop.call_at(self.loop.time() + event.leaves_ms / 1000, task.cancel)

    def _kill(self, model_id: str, value: int) -> None:
        """Kill one of a model's hosts, whatever it does, or have its next loads or runs end in its death."""
        self.killed = True
        if value % 4 == 0:
            step = ("load", "open", "run", "clone")[value // 4 % 4]
            self.armed.setdefault((model_id, step), deque()).extend([Act(dies=True)] * (1, 5, 7)[value % 3])
        hosts = [host for host in self.world.hosts if host.spec.id == model_id]
        if hosts and value % 4:
            hosts[value % len(hosts)].kill()

    def _hang(self, model_id: str, value: int) -> None:
        """Have a model's next call of a kind never end: somebody must end it."""
        if self.house.engine_ms:
            self.killed = True
            step = HANGS[value % len(HANGS)]
            self.armed.setdefault((model_id, step), deque()).append(Act(held=asyncio.Event()))

    async def _client(self, at: int, event: Event) -> None:
        name = f"r{at}"
        self.open.add(f"{name} {event.act}")
        try:
            await getattr(self, f"_{event.act}")(name, event)
        except asyncio.CancelledError:
            pass
        except AntiphonError as refusal:
            self._refused(name, event, refusal)
        except Exception as fault:  # noqa: BLE001 (whatever it is, it is a finding)
            self.find(f"{name} {event.act} ended in {fault!r}")
        finally:
            self.open.discard(f"{name} {event.act}")

    def _refused(self, name: str, event: Event, refusal: AntiphonError) -> None:
        reason, legal = self._reason(event, refusal)
        self.reasons[reason] += 1
        if not legal or reason not in REASONS:
            self.find(f"{name} {event.act} was refused with {refusal!r}")

    def _reason(self, event: Event, refusal: AntiphonError) -> tuple[str, bool]:
        """The reason of a refusal, and whether there is any ground for it."""
        house, faulty = self.house, self._id(event) in self.faulty or event.act == "bulk"
        bounded = bool(event.timeout_ms) or (house.busy_ms and event.timeout_ms is not None) or house.busy_ms
        match refusal:
            case WorkerDied():
                too_often = _REFUSALS["times in a row"] if "times in a row" in refusal.message else "worker died"
                return too_often, self.killed
            case RunTimeout():
                return "run took too long", bool(house.engine_ms)
            case LoadFailed() if "load_timeout_ms" in refusal.message:
                return "load took too long", bool(house.engine_ms)
            case InsufficientMemory():
                return "no memory", house.memory < 1000
            case ServerBusy():
                reason = next((it for words, it in _REFUSALS.items() if words in refusal.message), refusal.message)
                if reason == "no room" and house.room_ms:
                    reason = "no room in time"
                grounds = {
                    "expired": bounded,
                    "overdue": bounded,
                    "no room": house.max_loaded,
                    "no room in time": house.max_loaded,
                    "no room beside": house.max_loaded and event.act == "beside",
                }
                return reason, bool(grounds.get(reason))
            case UnsupportedSlots():
                return "too many slots", event.act not in ("register", "beside")
            case LoadFailed():
                return "load failed", faulty and "internal error" not in refusal.message
            case EngineError():
                return "engine failed", faulty
            case InvalidRequest():
                return "invalid registration", event.act in ("register", "beside", "new") and refusal.param == "slots"
            case ModelNotFound():
                return "unknown model", self._id(event) not in self.registered
            case ShuttingDown():
                return "shutting down", self.closing
        return f"{refusal!r}", False

    def _bound(self, model: BoundModel, request: TaskRequest) -> TaskRequest:
        entry = self.runtime._residents.registry.find(model.registration.spec.id)
        if model.registration is not entry.registration:
            self.find(f"{request.text} was bound to what {entry.id} was")
        return request

    def _check_answer(self, name: str, model: str, result: TaskResult) -> None:
        spec = self.runtime._residents.registry.find(model).registration.spec
        self.answers[name] += 1
        if result.text != answer_of(spec, name) or self.answers[name] > 1:
            self.find(f"{name} was answered {result.text}, and {model} is {spec.load_options}, {spec.session_options}")

    def _inference(self, name: str, event: Event, interface: Interface) -> Inference:
        return Inference(self._id(event), TaskRequest(text=name), self._bound, interface, event.timeout_ms)

    async def _say(self, name: str, event: Event) -> None:
        async def finish(result: TaskResult, timing: Timing) -> None:
            await asyncio.sleep(0)
            self._check_answer(name, self._id(event), result)
            if min(timing.queue_s, timing.load_s, timing.run_s) < 0:
                self.find(f"{name} took {timing}")

        await self.runtime.run(self._inference(name, event, Interface.OFFLINE), finish)

    async def _stream(self, name: str, event: Event) -> None:
        stream = await self.runtime.open_stream(self._inference(name, event, Interface.STREAMING))
        try:
            async for piece in stream:
                if isinstance(piece, Final):
                    self._check_answer(name, self._id(event), piece.result)
                elif event.value % 4 == 0:
                    return
        finally:
            await stream.aclose()

    async def _drop(self, name: str, event: Event) -> None:
        await self.runtime.open_stream(self._inference(name, event, Interface.STREAMING))

    async def _batch(self, name: str, event: Event) -> None:
        requests = tuple(TaskRequest(text=f"{name}.{part}") for part in range(1 + event.value % 3))
        batch = await self.runtime.open_batch(BatchInference(self._id(event), requests, self._bound, event.timeout_ms))
        try:
            seen = []
            async for index, result in batch:
                seen.append(index)
                self._check_answer(f"{name}.{index}", self._id(event), result)
            if seen != list(range(len(requests))):
                self.find(f"{name} had the results {seen}")
        finally:
            await batch.aclose()

    async def _load(self, name: str, event: Event) -> None:
        await self.runtime.load(self._id(event), event.timeout_ms)

    async def _unload(self, name: str, event: Event) -> None:
        view = await self.runtime.unload(self._id(event), event.timeout_ms)
        if view.loaded:
            self.find(f"{name} unloaded m{event.model}, which is loaded")

    async def _bulk(self, name: str, event: Event) -> None:
        ids = [f"m{number}" for number in range(len(self.house.slots) + 1) if event.value >> number & 1]
        if event.value % 3 == 0:
            ids.reverse()
        unloaded = await self.runtime.unload_many(ids if event.value % 5 else None)
        known = [it for it in ids if it in {entry.id for entry in self.runtime._residents.registry}]
        if event.value % 5 and self.house.parallel and not set(unloaded.unloaded) <= set(known):
            self.find(f"{name} unloaded {unloaded}, asked for {ids}")

    async def _register(self, name: str, event: Event, strategy: Strategy = Strategy.REPLACE) -> None:
        registration = self._registration(name, event)
        view = await self.runtime.register(registration, event.timeout_ms, strategy)
        if view.registration != registration:
            self.find(f"{name} registered {registration} and got {view.registration}")

    async def _beside(self, name: str, event: Event) -> None:
        await self._register(name, event, Strategy.SIDE_BY_SIDE)

    async def _new(self, name: str, event: Event) -> None:
        spec = sim_spec(self._id(event), self._slots(event.value // 2), revision=int(name[1:]), capacity=2)
        await self.runtime.register(Registration(spec, lazy=True), event.timeout_ms)

    async def _status(self, name: str, event: Event) -> None:
        for status in self.runtime.status():
            gate = status.gate
            if gate.active_slots > gate.capacity or len(status.estimates_s) != len(gate.queue):
                self.find(f"{name} saw {status}")
        self.runtime.foresee_unload(None)
        await self.runtime.foresee_load(self._id(event))

    async def _close(self, name: str, event: Event) -> None:
        self.closing = True
        await self.runtime.close()

    def _registration(self, name: str, event: Event) -> Registration:
        """A change to what the model is now: of its slots, its sessions' style, its weights or none of them."""
        value, resident = event.value, self.runtime._residents.get(self._id(event))
        spec = sim_spec(self._id(event)) if resident is None else resident.entry.registration.spec
        options, style = dict(spec.load_options), dict(spec.session_options)
        if value % 2:
            options |= {"revision": int(name[1:]) + 1, "capacity": (2, 3, 16)[value % 3], "megabytes": 1 + value % 2}
        if value // 2 % 2:
            style["style"] = int(name[1:]) + 1
        slots = self._slots(value // 4) if value // 4 % 2 else spec.slots
        changed = replace(spec, slots=slots, load_options=options, session_options=style)
        return Registration(changed, lazy=True, pinned=self.house.pinned and event.model == 0)

    def _slots(self, value: int) -> int:
        return 1 + value % 5 if self.house.parallel else 1

    def _id(self, event: Event) -> str:
        """One of the models; beyond them one that may be registered later, or one that never is."""
        known = event.model < len(self.house.slots) and event.act != "new"
        return f"m{event.model}" if known or event.value % 8 == 7 else f"n{event.value % 2}"

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
        if desk._pending or len(self.runtime._tasks) or residents._aside or residents._room._waiting:
            self.find(f"left over: {desk._pending}, {len(self.runtime._tasks)} tasks, {len(residents._aside)}")
        pools = [it.pool.host for it in residents if it.pool is not None]
        if len(pools) != len(self.world.hosts) or any(it not in pools for it in self.world.hosts):
            self.find(f"{len(self.world.hosts)} hosts are left for {len(pools)} pools")
        if any(host.busy for host in pools):
            self.find("a slot is left at work")

    async def _check_idle_unload(self) -> None:
        if not self.house.idle_ms:
            return
        await asyncio.sleep(self.house.idle_ms / 1000 + 0.1)
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
