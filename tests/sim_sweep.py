"""Failpoints: one operation on a runtime in virtual time, disturbed once at the k-th place, for every k.

Four ways to disturb: the caller leaves at the k-th step of the loop; the oldest host dies there; the k-th call to a
host fails, after it was waited for; the k-th call from the runtime into the core or a port raises at once. Giving back
is exempt from the last: what releases, withdraws, expires or closes cannot fail, by contract.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, FrameType

import antiphon
from antiphon.admission.gate import Gate
from antiphon.residency.lifecycle import Step
from antiphon.residency.registry import Entry
from antiphon.runtime.parallel import ParallelServerState
from antiphon.runtime.serial import ServerState
from antiphon.testing.sim import Act, SimCall
from antiphon.testing.virtual import StalledError, VirtualLoop
from sim_history import History, House
from sim_play import Play

ROOT = Path(antiphon.__file__).parent
RUNTIME = str(ROOT / "runtime")
_CALLED = (str(ROOT / "admission"), str(ROOT / "residency"), str(ROOT / "testing"))
_MOST = 1000
_START = 4
"""A coroutine's frame that has come further than this is resumed, not called."""
_GIVING_BACK = frozenset({"release", "withdraw", "dismiss", "expire", "unclaim", "close", "aclose", "terminate"})
_UNDOING = frozenset(
    {
        "release",
        "give_up",
        "_ring",
        "_stop_load",
        "_stop_teardown",
        "abandon",
        "destroy",
        "_died",
        "close",
        "cut",
        "drop_gate",
        "schedule",
    }
)
"""What the runtime does to give back or take back: calls from within it are exempt too."""
_HEARING = frozenset({"transitioned", "failed"})
"""An observer must not raise."""
_PROPERTIES = {
    it.fget.__code__ for kind in (Entry, Gate) for it in vars(kind).values() if isinstance(it, property) and it.fget
}


class FailpointError(Exception):
    """What a failpoint raises."""


@dataclass(frozen=True)
class Operation:
    """What is swept: in a house, after `before`, `act` is disturbed."""

    name: str
    act: Callable[["Sweep"], Awaitable[object]]
    before: Callable[["Sweep"], Awaitable[object]] | None = None
    house: House = field(default_factory=lambda: House(slots=(2, 2, 2)))


class Sweep(Play):
    """A stage on which one operation is disturbed once."""

    def __init__(self, loop: VirtualLoop, operation: Operation) -> None:
        runtime = ParallelServerState if operation.house.parallel else ServerState
        super().__init__(loop, History(operation.house, ()), None, runtime)
        self.operation = operation
        self.reached = 0
        self.where: set[tuple[str, int]] = set()
        self.leaves_at = self.dies_at = self.fails_at = self.raises_at = 0
        self.acting: asyncio.Task | None = None
        self.disturbed = ""

    def failed(self, model_id: str, what: str, error: BaseException) -> None:
        """Faults are what this is about."""

    def count_step(self) -> None:
        super().count_step()
        if self.acting is None or self.acting.done() or not (self.leaves_at or self.dies_at):
            return
        self.reached += 1
        if self.reached == self.dies_at and self.world.hosts:
            self.disturbed = "a host died"
            self.world.hosts[0].kill()
        if self.reached == self.leaves_at:
            self.where = suspended(self.loop)
            self.disturbed = "left"
            self.acting.cancel()

    def _script(self, call: SimCall) -> Act:
        act = super()._script(call)
        if self.acting is None or not self.fails_at:
            return act
        self.reached += 1
        if self.reached != self.fails_at:
            return act
        self.disturbed = f"{call.step} fails"
        return replace(act, fault=OSError("failpoint"))

    def trace(self, frame: FrameType, event: str, argument: object) -> None:
        """Count a call that a failpoint may hit, and raise at the k-th: a trace function."""
        code, caller = frame.f_code, frame.f_back
        if event != "call" or caller is None or not caller.f_code.co_filename.startswith(RUNTIME):
            return
        if not may_raise(code) or frame.f_lasti > _START or undoes(caller):
            return
        self.reached += 1
        if self.reached == self.raises_at:
            self.disturbed = f"{caller.f_code.co_name}:{caller.f_lineno} calls {code.co_qualname}"
            raise FailpointError(self.disturbed)

    async def main(self) -> None:
        if self.operation.before is not None:
            await self.operation.before(self)
        self.acting = asyncio.ensure_future(self.operation.act(self))
        former = sys.gettrace()
        if self.raises_at:
            sys.settrace(self.trace)
        try:
            await asyncio.wait([self.acting])
            await self.quiet()
        finally:
            sys.settrace(former)
        self.acting = self._told(self.acting)
        if not self.closing:
            self.check_idle()
            await self.check_next()
        await self.runtime.close()
        await self.quiet()
        self.check_closed()

    def _told(self, acting: asyncio.Task) -> None:
        fault = None if acting.cancelled() else acting.exception()
        if isinstance(fault, AssertionError):
            self.find(f"ended in {fault!r}")


def swept(operation: Operation, way: str) -> tuple[int, list[str], set[tuple[str, int]]]:
    """Disturb an operation at every place of this way: how many there are, what is found, and which lines waited."""
    findings: list[str] = []
    where: set[tuple[str, int]] = set()
    for k in range(1, _MOST):
        loop = VirtualLoop()
        sweep = Sweep(loop, operation)
        setattr(sweep, f"{way}_at", k)
        loop.before_step = sweep.count_step
        try:
            loop.run(sweep.main())
        except StalledError as stall:
            sweep.find(f"{stall}")
        except Exception as fault:  # noqa: BLE001 (whatever it is, it is a finding)
            sweep.find(f"ended in {fault!r}")
        complaints = [it for it in loop.complaints if "FailpointError" not in it]
        found = sweep.findings + complaints + sweep.world.violations + sweep.journal.differences
        findings += [f"{operation.name}, k={k} ({sweep.disturbed}): {it}" for it in found]
        where |= sweep.where
        for task in asyncio.all_tasks(loop):
            task.get_coro().close()
            task._log_destroy_pending = False
        loop.close()
        if sweep.reached < k:
            return k - 1, findings, where
    raise AssertionError(f"{operation.name} does not end after {_MOST} places")


def may_raise(code: CodeType) -> bool:
    """Whether this is a function of the core or of a port that a failpoint may stand in."""
    name = code.co_name
    if code.co_qualname.startswith("VirtualLoop."):
        return False  # the loop is no port
    exempt = name in _GIVING_BACK or name in _HEARING or name.startswith("<") or code in _PROPERTIES
    return code.co_filename.startswith(_CALLED) and not exempt


def undoes(frame: FrameType | None) -> bool:
    """Whether the runtime gives something back here."""
    while frame is not None and frame.f_code.co_filename.startswith(RUNTIME):
        if frame.f_code.co_name in _UNDOING or frame.f_locals.get("step") in (Step.FAIL, Step.PRESERVE, Step.DESTROY):
            return True
        frame = frame.f_back
    return False


def suspended(loop: VirtualLoop) -> set[tuple[str, int]]:
    """The lines of the runtime that wait for something now."""
    lines = set()
    for task in asyncio.all_tasks(loop):
        waiting = task.get_coro()
        while (frame := getattr(waiting, "cr_frame", None)) is not None:
            if frame.f_code.co_filename.startswith(RUNTIME):
                lines.add((Path(frame.f_code.co_filename).name, frame.f_lineno))
            waiting = waiting.cr_await
    return lines
