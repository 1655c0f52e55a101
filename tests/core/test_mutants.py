"""Faults that somebody could well write, each of which a short proof must find: so the proofs are able to fail.

A mutant is one piece of a module's source and what stands in its place; the piece must occur exactly once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import pytest

from admission_exploration import Scope, explore
from admission_lockstep import Lockstep
from antiphon.admission import estimates, gate, policy, scheduler
from antiphon.admission.gate import Decision, Gate, Refusal, Refused, Waiter
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import Operation


@dataclass(frozen=True, slots=True)
class Core:
    """The modules of admission, one of which may be a mutant."""

    gate: ModuleType = gate
    policy: ModuleType = policy
    scheduler: ModuleType = scheduler
    estimates: ModuleType = estimates


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to a module; `fault` says what the changed code does wrong."""

    fault: str
    module: ModuleType
    old: str
    new: str


MUTANTS = [
    Mutant("a newcomer barges past the queue", gate, "if not self._waiting and self._admits(", "if self._admits("),
    Mutant("the newest waiter goes first", gate, "head = next(iter(", "head = next(reversed("),
    Mutant("a manager joins the requests", gate, "return not self._occupied()", "return self._exclusive is None"),
    Mutant("a request joins the manager", gate, "return self._exclusive is None and bool(", "return bool("),
    Mutant("one call grants one waiter", gate, "self._grant(head, now))", "self._grant(head, now))\n            break"),
    Mutant("a deadline that has just come is not over", gate, "_deadlines[0][0] <= now", "_deadlines[0][0] < now"),
    Mutant(
        "a newcomer meets waiters that have expired",
        gate,
        "decisions = self._advance(now) if self._is_due(now) else []",
        "decisions: list[Decision] = []",
    ),
    Mutant(
        "grants come before expiry",
        gate,
        "        decisions: list[Decision] = []\n",
        "        decisions: list[Decision] = []\n"
        "        while (head := next(iter(self._waiting.values()), None)) and self._admits(head.operation.kind):\n"
        "            self._leave_queue(head)\n"
        "            decisions.append(self._grant(head, now))\n",
    ),
    Mutant(
        "a withdrawn barrier frees nobody",
        gate,
        "self._leave_queue(waiter)\n        return self._advance(now)",
        "self._leave_queue(waiter)\n        return []",
    ),
    Mutant("a dismissal spares nobody", gate, " if it not in spare]", "]"),
    Mutant(
        "a dismissal frees nobody",
        gate,
        "        return decisions + self._advance(now)\n",
        "        return decisions\n",
    ),
    Mutant(
        "a dismissal overtakes what was due",
        gate,
        "        decisions = self._advance(now)\n        for waiter in [",
        "        decisions: list[Decision] = []\n        for waiter in [",
    ),
    Mutant("a released slot is lost", gate, "            heapq.heappush(self._free, lease.slot)\n", ""),
    Mutant("a lease is ended twice", gate, "self._shared.get(lease.slot) is lease", "lease.slot in self._shared"),
    Mutant(
        "whoever has the number may leave", gate, ".get(waiter.number) is not waiter", ".get(waiter.number) is None"
    ),
    Mutant(
        "an overdue occupant keeps others from a free slot",
        gate,
        "        if not self._waiting and self._admits(operation.kind):",
        "        if is_hopeless((it.since for it in self._leases()), now, timeout_s):\n"
        "            decisions.append(Refused(waiter, Refusal.OVERDUE))\n"
        "        elif not self._waiting and self._admits(operation.kind):",
    ),
    Mutant("age runs from the entry", gate, "Lease(waiter, slot, now)", "Lease(waiter, slot, waiter.since)"),
    Mutant("a manager is never overdue", gate, "return [self._exclusive] if self._exclusive else", "return"),
    Mutant(
        "managers count as requests",
        gate,
        "queued_requests += waiter.operation.kind is ClaimKind.REQUEST",
        "queued_requests += 1",
    ),
    Mutant("the next deadline is of one who left", gate, "self._deadlines[0][1] not in self._waiting", "False"),
    Mutant("a clean-up loses deadlines", gate, "if it.deadline < math.inf]", "if it.deadline < 0]"),
    Mutant("a clean-up leaves no heap", gate, "            heapq.heapify(self._deadlines)\n", ""),
    Mutant(
        "an attempt takes no number",
        gate,
        "is_idle:\n            return None, decisions\n",
        "is_idle:\n            return None, decisions\n        self._entered -= 1\n",
    ),
    Mutant("a clean-up invents deadlines", gate, " if it.deadline < math.inf]", "]"),
    Mutant(
        "a resize changes a number and no slot",
        gate,
        "self._free = _all_free(capacity)\n        self.capacity = capacity\n        return",
        "_all_free(capacity)\n        self.capacity = capacity\n        return",
    ),
    Mutant(
        "any holder resizes",
        gate,
        "if lease is not self._exclusive:",
        "if self._exclusive is None and not self._shared:",
    ),
    Mutant("a copy of a lease resizes", gate, "if lease is not self._exclusive:", "if lease != self._exclusive:"),
    Mutant(
        "a resize does not tell who expired",
        gate,
        "capacity = capacity\n        return self._advance(now)\n\n    def withdraw",
        "capacity = capacity\n        self._advance(now)\n        return []\n\n    def withdraw",
    ),
    Mutant("a gate is resized to nothing", gate, "if not 1 <= capacity", "if not 0 <= capacity"),
    Mutant("a waiter waits for itself", gate, 'f"waiter:{at - 1}"', 'f"waiter:{at}"'),
    Mutant("the first waiter waits for nobody before it", gate, "held if at == 1 else", "held if at == 0 else"),
    Mutant("one overdue occupant is enough", policy, "max(occupied_since", "min(occupied_since"),
    Mutant(
        "a wait as long as the age is hopeless", policy, "now - youngest > timeout_s", "now - youngest >= timeout_s"
    ),
    Mutant("a wait without bound is hopeless", policy, "return timeout_s > 0 and", "return"),
    Mutant("a request outwaits the ceiling", policy, "min(_bound(request_s), ceiling_s)", "_bound(request_s)"),
    Mutant(
        "a model's 0 means the server's default",
        policy,
        "server_s if model_s is None else model_s",
        "model_s or server_s",
    ),
    Mutant("a model is published twice", scheduler, "in dict.fromkeys(names)]", "in names]"),
    Mutant(
        "an unknown model is found too late",
        scheduler,
        "gates = [self.gate(name) for name in dict.fromkeys(names)]",
        "gates = map(self.gate, dict.fromkeys(names))",
    ),
    Mutant("a bulk barrier gives up", scheduler, "timeout_s=0)", "timeout_s=1)"),
    Mutant("an age does not count", estimates, "mean_run_s - lease.age_s", "mean_run_s"),
    Mutant(
        "an overdue run ends in the past", estimates, "max(0.0, mean_run_s - lease.age_s)", "mean_run_s - lease.age_s"
    ),
    Mutant("the whole model is one slot", estimates, "return to_go * view.capacity", "return to_go"),
    Mutant("a spare slot is forgotten", estimates, "to_go + [0.0] * (view.capacity - len(to_go))", "to_go"),
    Mutant("a manager starts with the first slot", estimates, "start = max(free_in)", "start = free_in[0]"),
    Mutant(
        "a manager takes one slot",
        estimates,
        "[start + mean_run_s] * len(free_in)",
        "sorted([start + mean_run_s, *free_in[1:]])",
    ),
    Mutant("whole rounds of the unlisted are dropped", estimates, "seconds + rounds * mean_run_s", "seconds"),
    Mutant("the rest of the unlisted is dropped", estimates, "in range(rest)", "in range(0)"),
    Mutant("unlisted managers are free", estimates, "+ managers * mean_run_s]", "+ 0]"),
    Mutant(
        "the listed count twice",
        estimates,
        "requests = view.queued_requests - listed",
        "requests = view.queued_requests",
    ),
    Mutant("a failed publication leaves barriers", scheduler, "gate.withdraw(barrier, now) if", "[] if"),
    Mutant("a failed publication keeps leases", scheduler, "else gate.release(lease, now)", "else []"),
    Mutant(
        "a failed publication tells of its own leases",
        scheduler,
        "            else:\n                others.append(decision)",
        "            others.append(decision)",
    ),
    Mutant(
        "a failed publication tells nobody",
        scheduler,
        "                others.append(decision)",
        "                pass",
    ),
]


def prove_estimates(core: Core) -> None:
    busy = Gate("m", 2)
    for operation in [Operation.INFER] * 3 + [Operation.UNLOAD] + [Operation.INFER] * 3:
        busy.submit(operation, 0.0, 0)
    assert core.estimates.wait_estimates_s(busy.snapshot(4.0), 10) == (6, 16, 26, 26, 36)
    assert core.estimates.wait_estimates_s(busy.snapshot(40.0), 10) == (0, 10, 20, 20, 30)
    assert core.estimates.retry_after_s(busy.snapshot(4.0), 10) == 36
    assert core.estimates.retry_after_s(busy.snapshot(4.0, limit=2), 10) == 36
    assert core.estimates.retry_after_s(busy.snapshot(4.0, limit=1), 10) == 36
    managed = Gate("m", 2)
    for operation in [Operation.LOAD, *[Operation.INFER] * 3]:
        managed.submit(operation, 0.0, 0)
    assert core.estimates.wait_estimates_s(managed.snapshot(4.0), 10) == (6, 6, 16)
    spare = Gate("m", 2)
    spare.submit(Operation.INFER, 0.0, 0)
    assert core.estimates.retry_after_s(spare.snapshot(0.0), 10) == 0
    for since in (3.0, 3.0):
        spare.submit(Operation.INFER, since, 0)
    assert core.estimates.retry_after_s(spare.snapshot(4.0, limit=0), 10) == 9


def prove_every_small_state(core: Core) -> None:
    explore(Scope(requests=2, managers=2, timeouts=(0, 1, 2), lateness=1, resizes=(1, 2, 3)), core.gate)


def prove_deadlines_survive_a_clean_up(core: Core) -> None:
    pair = Lockstep(1, core.gate)
    pair.submit(Operation.INFER, 0)
    for place in range(100):
        pair.submit(Operation.INFER, 1 + place * 37 % 100)
    for number in range(11, 101):
        pair.withdraw(number)
    pair.submit(Operation.INFER, 0)  # enough have left: the clean-up comes here
    for _ in range(10):
        pair.check_queries()
        pair.pass_time(10)
        pair.expire()
    for place in range(100):
        pair.submit(Operation.INFER, 200 + place)
    for number in list(pair.waiters)[1:]:
        pair.withdraw(number)
    pair.submit(Operation.INFER, 0)  # and here, where nobody is left who has one
    pair.check_queries()


def prove_effective_timeouts(core: Core) -> None:
    for request_s, model_s, server_s, effective_s in [
        (None, None, 5, 5),
        (None, 3, 5, 3),
        (None, 0, 5, 0),
        (2, 3, 5, 2),
        (9, 3, 5, 3),
        (9, None, 5, 5),
        (0, 3, 5, 3),
        (0, 0, 5, 0),
        (9, 0, 5, 9),
        (9, None, 0, 9),
    ]:
        assert core.policy.effective_timeout_s(request_s, model_s, server_s) == effective_s


def prove_publication(core: Core) -> None:
    models = core.scheduler.Scheduler()
    gates = [Gate("a", 1), Gate("b", 1)]
    for each in gates:
        models.add(each)
    before = [each.snapshot(0.0) for each in gates]
    with pytest.raises(InvariantError):
        models.publish(["a", "unknown", "b"], Operation.BULK_UNLOAD, 0.0)
    assert [each.snapshot(0.0) for each in gates] == before
    models.publish(["b", "a", "b"], Operation.BULK_UNLOAD, 0.0)
    barriers, _ = models.publish(["b", "a", "b"], Operation.BULK_UNLOAD, 0.0)
    assert list(barriers) == ["b", "a"]
    assert [each.snapshot(0.0).waiting for each in gates] == [1, 1]
    assert [each.next_deadline() for each in gates] == [None, None]


class FaultyGate(Gate):
    """A gate that nobody can enter."""

    def submit(self, operation: Operation, now: float, timeout_s: float) -> tuple[Waiter, list[Decision]]:
        raise MemoryError


def prove_a_failed_publication_leaves_nothing(core: Core) -> None:
    models = core.scheduler.Scheduler()
    idle, busy, faulty = Gate("idle", 1), Gate("busy", 1), FaultyGate("faulty", 1)
    for each in (idle, busy, faulty):
        models.add(each)
    busy.submit(Operation.INFER, 0.0, 0)
    late, _ = busy.submit(Operation.INFER, 0.0, 1)
    with pytest.raises(core.scheduler.PublicationError) as caught:
        models.publish(["idle", "busy", "faulty"], Operation.BULK_UNLOAD, 1.0)
    assert caught.value.decisions == [Refused(late, Refusal.EXPIRED)]
    assert idle.is_idle
    assert busy.snapshot(1.0).waiting == 0


Proof: TypeAlias = Callable[[Core], None]
PROOFS: list[Proof] = [
    prove_estimates,
    prove_effective_timeouts,
    prove_publication,
    prove_a_failed_publication_leaves_nothing,
    prove_deadlines_survive_a_clean_up,
    prove_every_small_state,
]


@pytest.mark.parametrize("proof", PROOFS)
def test_the_shipped_modules_pass(proof: Proof) -> None:
    proof(Core())


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda it: it.fault)
def test_a_proof_finds_that(mutant: Mutant) -> None:
    core = _mutated(mutant)
    with pytest.raises((AssertionError, LookupError, core.scheduler.PublicationError)):
        _prove(core)


def _prove(core: Core) -> None:
    for proof in PROOFS:
        proof(core)


def _mutated(mutant: Mutant) -> Core:
    broken = _load(mutant.module, mutant.old, mutant.new)
    if mutant.module is gate:
        return Core(gate=broken)
    if mutant.module is scheduler:
        return Core(scheduler=broken)
    if mutant.module is estimates:
        return Core(estimates=broken)
    judging = _load(gate)
    vars(judging)["is_hopeless"] = broken.is_hopeless
    return Core(gate=judging, policy=broken)


def _load(module: ModuleType, old: str = "", new: str = "") -> ModuleType:
    """The module's source in a namespace of its own, with one piece of it replaced."""
    source = Path(module.__file__ or "").read_text()
    if old:
        assert source.count(old) == 1, f"{old!r} occurs {source.count(old)} times"
        source = source.replace(old, new)
    fresh = ModuleType(f"mutant_of_{module.__name__}")
    exec(compile(source, f"<{fresh.__name__}>", "exec"), vars(fresh))
    return fresh
