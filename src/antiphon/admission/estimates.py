"""How long a claim will probably wait: a model's measured pace, played forward over its gate. It decides nothing.

The model of the future: every claim works for the mean time of a run, a request in one slot and a management claim in
all of them, and they start in the order of the queue. What runs has the mean less its age to go; one that has run for
longer may end at any moment, and counts as 0. So a request starts when the first slot comes free, a management claim
when the last one does, and each moves that moment on by one mean. Estimates grow with the queue and with the mean.

Units: seconds throughout.
"""

import heapq
import math
from itertools import islice

from antiphon.admission.gate import GateView
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import ClaimKind

_WEIGHT = 0.2
"""The share of the newest measurement: after ten more, what was measured before counts for about a tenth."""


class RunTimes:
    """The pace of one model: exponentially weighted means of its runs and of its loads, None while none was measured.

    Every call raises InvariantError for what is no duration, and changes nothing then.
    """

    __slots__ = ("mean_load_s", "mean_run_s")

    def __init__(self) -> None:
        self.mean_run_s: float | None = None
        self.mean_load_s: float | None = None

    def note_run(self, seconds: float) -> None:
        """Count a request's run; the first one is the mean."""
        self.mean_run_s = _moved(self.mean_run_s, seconds)

    def note_load(self, seconds: float) -> None:
        """Count a load."""
        self.mean_load_s = _moved(self.mean_load_s, seconds)

    def forget_loads(self) -> None:
        """Say that what is loaded from now on is something else."""
        self.mean_load_s = None


def wait_estimates_s(view: GateView, mean_run_s: float) -> tuple[float, ...]:
    """How long each waiter listed will wait until it is served, in the order of the queue and in one pass over it."""
    return tuple(_starts(view, mean_run_s, len(view.queue)))


def wait_estimate_s(view: GateView, position: int, mean_run_s: float) -> float:
    """How long the waiter at this position, from 1, will wait; raises InvariantError where the view lists none."""
    if not 1 <= position <= len(view.queue):
        raise InvariantError(f"the view lists {len(view.queue)} waiters, none at {position}")
    return _starts(view, mean_run_s, position)[-1]


def retry_after_s(view: GateView, mean_run_s: float) -> float:
    """How long a request would wait that entered now, at the end of the queue."""
    return min(_free_after_queue(view, mean_run_s))


def drain_s(view: GateView, mean_run_s: float) -> float:
    """How long a management claim would wait that entered now, at the end of the queue."""
    return max(_free_after_queue(view, mean_run_s))


def _free_after_queue(view: GateView, mean_run_s: float) -> list[float]:
    """When each slot is free of what runs and waits now.

    Those beyond the view's limit are known by number and kind only: their requests are placed first, and then their
    management claims. So a view with no waiter listed will do, and costs the same for every length of the queue.
    """
    free_in = _free_in(view, mean_run_s)
    for waiter in view.queue:
        _place(free_in, waiter.operation.kind, mean_run_s)
    listed = sum(waiter.operation.kind is ClaimKind.REQUEST for waiter in view.queue)
    requests = view.queued_requests - listed
    managers = view.waiting - view.queued_requests - (len(view.queue) - listed)
    # Slots never lie more than one mean apart, so a request for each of them moves each on by exactly one mean.
    rounds, rest = divmod(requests, view.capacity)
    free_in = [seconds + rounds * mean_run_s for seconds in free_in]
    for _ in range(rest):
        _place(free_in, ClaimKind.REQUEST, mean_run_s)
    return [max(free_in) + managers * mean_run_s] * view.capacity if managers else free_in


def _moved(mean_s: float | None, seconds: float) -> float:
    if not 0 <= seconds < math.inf:
        raise InvariantError(f"{seconds} s is no duration")
    return seconds if mean_s is None else mean_s + _WEIGHT * (seconds - mean_s)


def _starts(view: GateView, mean_run_s: float, count: int) -> list[float]:
    """When the first `count` waiters start."""
    free_in = _free_in(view, mean_run_s)
    return [_place(free_in, waiter.operation.kind, mean_run_s) for waiter in islice(view.queue, count)]


def _free_in(view: GateView, mean_run_s: float) -> list[float]:
    """When each slot will be free of what runs now, as a heap."""
    to_go = [max(0.0, mean_run_s - lease.age_s) for lease in view.leases]
    if any(lease.slot is None for lease in view.leases):
        return to_go * view.capacity
    free_in = to_go + [0.0] * (view.capacity - len(to_go))
    heapq.heapify(free_in)
    return free_in


def _place(free_in: list[float], kind: ClaimKind, mean_run_s: float) -> float:
    """When a claim of this kind starts; the slots that it takes are free one mean later."""
    if kind is ClaimKind.REQUEST:
        start = free_in[0]
        heapq.heapreplace(free_in, start + mean_run_s)
    else:
        start = max(free_in)
        free_in[:] = [start + mean_run_s] * len(free_in)
    return start
