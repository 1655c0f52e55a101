"""What a call costs as the queue grows, counted and not timed.

Counted are the lines of the core that run, the steps of every walk over the queue, and the comparisons of deadlines.
The last may grow with the logarithm, since deadlines are kept in a heap.
"""

import math
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from antiphon.admission.gate import Gate, Granted, Waiter
from antiphon.vocabulary.states import Operation


class Deadline(float):
    """A time that counts how often times are compared."""

    compared = 0

    def __add__(self, other: float) -> "Deadline":
        return Deadline(float(self) + float(other))

    def __lt__(self, other: float) -> bool:
        Deadline.compared += 1
        return float(self) < float(other)

    def __le__(self, other: float) -> bool:
        Deadline.compared += 1
        return float(self) <= float(other)

    def __eq__(self, other: object) -> bool:
        Deadline.compared += 1
        return super().__eq__(other)

    __hash__ = float.__hash__


class CountedQueue(OrderedDict[int, Waiter]):
    """A queue that counts the steps of those who walk over it."""

    walked = 0

    def __iter__(self) -> Iterator[int]:
        return _counted(super().__iter__())

    def values(self) -> Any:  # the view's own type is not ours to imitate
        return _counted(super().values())

    def items(self) -> Any:
        return _counted(super().items())


def _counted(walk: Any) -> Iterator[Any]:
    for item in walk:
        CountedQueue.walked += 1
        yield item


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call took."""

    lines: int
    walked: int
    compared: int


def cost_of(call: Callable[[], object]) -> Cost:
    """Run a call and count."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace if frame.f_globals.get("__package__") == "antiphon.admission" else None

    Deadline.compared = CountedQueue.walked = 0
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return Cost(lines, CountedQueue.walked, Deadline.compared)


def costs_with(waiting: int) -> dict[str, Cost]:
    """Each call once, at a gate with one slot leased and so many waiters with scattered deadlines."""
    gate, now = Gate("m", 1), Deadline(0)
    gate._waiting = CountedQueue()
    _, (holder,) = gate.submit(Operation.INFER, now, 0)
    assert isinstance(holder, Granted)
    waiters = [gate.submit(Operation.INFER, now, 1 + place * 7919 % waiting)[0] for place in range(waiting)]
    costs = {
        "submit": cost_of(lambda: gate.submit(Operation.INFER, now, waiting + 1)),
        "refused attempt": cost_of(lambda: gate.try_exclusive(Operation.EVICT, now)),
        "withdraw from the middle": cost_of(lambda: gate.withdraw(waiters[waiting // 2], now)),
        "next deadline": cost_of(gate.next_deadline),
        "release and grant": cost_of(lambda: gate.release(holder.lease, now)),
        "short status": cost_of(lambda: gate.snapshot(now, limit=1)),
    }
    managed = Gate("managed", 1)
    managed._waiting = CountedQueue()
    whole, _ = managed.try_exclusive(Operation.EVICT, now)
    assert whole is not None
    for place in range(waiting):
        managed.submit(Operation.INFER, now, 1 + place)
    costs["resize"] = cost_of(lambda: managed.resize(whole, 4, now))
    first_due = gate.next_deadline()
    assert first_due is not None
    return costs | {"expire one": cost_of(lambda: gate.expire(Deadline(first_due)))}


@pytest.mark.parametrize("waiting", [1_000, 100_000])
def test_no_call_walks_the_queue(waiting: int) -> None:
    few, many = costs_with(10), costs_with(waiting)
    for call, cost in many.items():
        assert (cost.lines, cost.walked) == (few[call].lines, few[call].walked), call
        assert cost.walked <= 2, call
        assert cost.compared <= 6 * math.log2(waiting), call


def test_the_counters_see_a_walk() -> None:
    gate = Gate("m", 1)
    gate._waiting = CountedQueue()
    for _ in range(101):
        gate.submit(Operation.INFER, Deadline(0), 1)
    assert cost_of(lambda: list(gate._waiting)).walked == 100
    assert cost_of(lambda: min(gate._deadlines)).compared >= 99
    assert cost_of(lambda: gate.snapshot(0)).walked == 100


def test_leaving_in_numbers_costs_one_clean_up() -> None:
    # 1,000 leave; whoever comes next pays for the clean-up, and those after that pay nothing again.
    gate, now = Gate("m", 1), Deadline(0)
    gate._waiting = CountedQueue()
    waiters = [gate.submit(Operation.INFER, now, 1 + place)[0] for place in range(1_101)]
    for waiter in waiters[101:]:
        gate.withdraw(waiter, now)
    walks = [cost_of(lambda: gate.submit(Operation.INFER, now, 5)).walked for _ in range(50)]
    assert walks == [101, *[0] * 49]
