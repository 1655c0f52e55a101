"""Plays a history on a whole runtime in virtual time, and checks at every decision of the core what must always hold.

A history without any finding is in order.
"""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field, replace

from antiphon.admission.gate import Gate
from antiphon.runtime.api import BatchInference, Draft, Inference, Strategy, Timing
from antiphon.runtime.models import ModelRuntime
from antiphon.runtime.parallel import ParallelServerState
from antiphon.runtime.serial import ServerState
from antiphon.testing.sim import Act, sim_spec
from antiphon.testing.virtual import StalledError, VirtualLoop
from antiphon.vocabulary.errors import AntiphonError, WorkerDied
from antiphon.vocabulary.spec import Registration
from antiphon.vocabulary.tasks import Final, Interface, TaskRequest, TaskResult
from sim_history import FAULTS, HANGS, Event, History
from sim_journal import WatchedJournal
from sim_refusals import REASONS, Grounds, reason_of
from sim_stage import SimStage, answer_of


@dataclass
class Report:
    """What came of a history."""

    findings: list[str]
    journal: WatchedJournal
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


class Play(SimStage):
    """A stage on which a history is played."""

    def report(self) -> Report:
        """What came of it."""
        return Report(self.findings, self.journal, self.edges, self.reasons, sum(self.answers.values()))

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
        await self.check_idle_unload()
        await self.check_next()
        await self.runtime.close()
        self.closing = True
        self.check_closed()

    def _begin(self, at: int, event: Event) -> None:
        if event.act == "fault":
            step = FAULTS[event.value % len(FAULTS)]
            act = Act(empty=True) if step in ("open", "clone", "probe") and event.value % 2 else Act(fault=OSError())
            self.armed.setdefault((self._id(event), step), deque()).append(act)
            self.faulty.add(self._id(event))
            return
        if event.act == "hang":
            if self._hang(self._id(event), event.value) == "close":  # which an unload makes sure to reach
                self._begin(at, replace(event, act="unload"))
            return
        if event.act == "kill":
            if not self.house.threads:  # a thread cannot be killed
                self._kill(self._id(event), event.value)
            return
        if event.act == "beside" and event.value % 2:
            unload = replace(event, act="unload", at_ms=event.at_ms + 3)
            self.loop.call_at(1000 + unload.at_ms / 1000, self._begin, at, unload)
        task = self.loop.create_task(self._client(at, event))
        self.clients.append(task)
        if event.leaves_ms is not None:  # a close is not left: it is cut
            leave = self.runtime.cut if event.act == "close" else task.cancel
            self.loop.call_at(self.loop.time() + event.leaves_ms / 1000, leave)

    def _kill(self, model_id: str, value: int) -> None:
        """Kill one of a model's hosts, whatever it does, or have its next loads or runs end in its death."""
        self.killed = True
        if value % 4 == 0:
            step = ("load", "open", "run", "clone")[value // 4 % 4]
            self.armed.setdefault((model_id, step), deque()).extend([Act(dies=True)] * (1, 5, 7)[value % 3])
        hosts = [host for host in self.world.hosts if host.spec.id == model_id]
        if hosts and value % 4:
            hosts[value % len(hosts)].kill()

    def _hang(self, model_id: str, value: int) -> str | None:
        """Have a model's next call of a kind take longer than its limit, if there is one; the kind of call."""
        if not self.house.engine_ms:
            return None
        self.killed = True
        step = HANGS[value % len(HANGS)]
        self.armed.setdefault((model_id, step), deque()).append(Act(held=asyncio.Event()))
        return step

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
        model = self._id(event)
        faulty = model in self.faulty or event.act == "bulk"
        grounds = Grounds(faulty, self.killed, model in self.names, self.closing)
        reason, legal = reason_of(self.house, event, refusal, grounds)
        self.reasons[reason] += 1
        if not legal or reason not in REASONS:
            self.find(f"{name} {event.act} was refused with {refusal!r}")

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
        drafts = tuple(Draft(request, self._bound) for request in requests)
        batch = await self.runtime.open_batch(BatchInference(self._id(event), drafts, event.timeout_ms))
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
        view, _ = await self.runtime.unload(self._id(event), event.timeout_ms)
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
        self.runtime.foresee_unload_many(None)
        await self.runtime.foresee_load(self._id(event))

    async def _foresee(self, name: str, event: Event) -> None:
        """Load a model right after a dry run: nothing can change in between, so the two agree on a back-off."""
        model = self._id(event)
        is_idle = model in self.names and self.runtime._desk.is_idle(model)
        foreseen = (await self.runtime.foresee_load(model, busy_timeout_ms=event.timeout_ms)).refusal
        refused = False
        try:
            await self.runtime.load(model, event.timeout_ms)
        except WorkerDied as refusal:
            refused = "times in a row" in refusal.message
            raise
        finally:
            if is_idle and refused != isinstance(foreseen, WorkerDied):
                self.find(f"{name} was told {foreseen!r} by the dry run, and {refused=}")

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
