"""Every state that a small gate can be in, reached once, with every call tried in each.

States are canonical: claims are anonymous and keep only their order, times are relative to now, an age beyond every
timeout counts as one age, and a waiter without a deadline has no age at all (nothing depends on it). With
`slots_are_alike` the slots are anonymous as well. That leaves finitely many; nothing else is bounded.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import TypeAlias

from admission_lockstep import Lockstep
from antiphon.admission import gate as shipped
from antiphon.vocabulary.states import Operation

State: TypeAlias = tuple[object, ...]
Move: TypeAlias = Callable[[Lockstep], None]


@dataclass(frozen=True, slots=True)
class Scope:
    """How much may be at the gate at once.

    Units: timeouts in ticks, 0 without bound. `lateness` is how many ticks a due timer may be overtaken by others.
    `resizes` are the numbers of slots that a manager may set.
    """

    requests: int
    managers: int
    timeouts: tuple[int, ...]
    lateness: int
    capacity: int = 2
    slots_are_alike: bool = True
    resizes: tuple[int, ...] = ()


def explore(scope: Scope, core: ModuleType = shipped) -> tuple[int, int]:
    """Try every call in every state, beside the oracle; returns how many states and transitions there were."""
    start = Lockstep(scope.capacity, core)
    seen = {_canonical(start, scope)}
    todo = deque([start])
    transitions = 0
    while todo:
        here = todo.popleft()
        here.check_queries()
        here.check_refusals()
        for move in _moves(here, scope):
            there = here.copy()
            move(there)
            transitions += 1
            state = _canonical(there, scope)
            if state not in seen:
                seen.add(state)
                todo.append(there)
    return len(seen), transitions


def _moves(here: Lockstep, scope: Scope) -> Iterator[Move]:
    present = here.oracle.present
    requests = sum(claim.is_request for claim in present)
    if requests < scope.requests:
        yield from (partial(_submit, Operation.INFER, timeout) for timeout in scope.timeouts)
    if len(present) - requests < scope.managers:
        yield from (partial(_submit, Operation.UNLOAD, timeout) for timeout in scope.timeouts)
        yield lambda there: there.try_exclusive(Operation.EVICT)
    if any(lease.slot is None for lease in here.leases.values()):
        yield from (partial(_resize, capacity) for capacity in scope.resizes)
    yield from (partial(_release, number) for number in here.leases)
    yield from (partial(_withdraw, number) for number in here.waiters)
    yield lambda there: there.expire()
    yield lambda there: there.dismiss()
    if here.waiters:
        yield partial(_dismiss_but, max(here.waiters))  # who waits last is the barrier of a server that ends
    if all(waiter.deadline > here.now - scope.lateness for waiter in here.waiters.values()):
        yield lambda there: there.pass_time(1)


def _submit(operation: Operation, timeout_s: float, there: Lockstep) -> None:
    there.submit(operation, timeout_s)


def _release(number: int, there: Lockstep) -> None:
    there.release(number)


def _resize(capacity: int, there: Lockstep) -> None:
    there.resize(capacity)


def _withdraw(number: int, there: Lockstep) -> None:
    there.withdraw(number)
    # Here and not later: the shortest way to a state rarely leads over somebody who left.
    assert there.gate.next_deadline() == there.oracle.next_deadline()


def _dismiss_but(number: int, there: Lockstep) -> None:
    there.dismiss([number])


def _canonical(there: Lockstep, scope: Scope) -> State:
    """The oracle's list without what no rule can tell apart."""
    oldest = max(scope.timeouts) + 1
    held = [
        (
            claim.is_request,
            None if scope.slots_are_alike else claim.slot,
            min(there.now - (claim.granted or 0.0), oldest),
        )
        for claim in there.oracle.holding()
    ]
    if scope.slots_are_alike:
        held.sort(key=lambda it: it[2])
    queue = [
        (claim.is_request, None if claim.deadline == math.inf else claim.deadline - there.now)
        for claim in there.oracle.waiting()
    ]
    return (there.oracle.capacity, tuple(held), tuple(queue))
