"""One model's gate: its slots, its queue and the barriers in it. It decides; whoever calls it acts on the decisions.

The rules, in order (docs/architecture.md):

1. A request is granted at once only when nobody waits, nothing exclusive runs and a slot is free.
2. A management claim is granted at once only when nobody waits and no lease is out.
3. Otherwise, when every occupant has run for longer than the caller would wait, it is refused now.
4. Otherwise it joins the end of the queue. Requests at the head fill free slots; a barrier at the head waits until
   every lease is back; nothing passes it.
5. Expiry, withdrawal and release advance the queue: whoever becomes grantable is granted in the same call, and a
   deadline that has come expires before anything is granted.

Units: `now`, deadlines and ages are monotonic seconds. Every error leaves the gate as it was.
"""

import heapq
import math
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TypeAlias

from antiphon.admission.policy import is_hopeless
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.spec import MAX_SLOTS
from antiphon.vocabulary.states import ClaimKind, Operation

_SLACK = 64
"""Stale deadlines that are not worth a clean-up."""


@dataclass(frozen=True, slots=True)
class Waiter:
    """A claim's identity and terms; `number` is its place in the order of entry at this gate."""

    gate: str
    number: int
    operation: Operation
    since: float
    deadline: float


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to one slot, or with `slot` None to the whole model."""

    waiter: Waiter
    slot: int | None
    since: float


class Refusal(StrEnum):
    """Why a claim was refused."""

    EXPIRED = "expired"
    OVERDUE = "overdue"
    SHUTTING_DOWN = "shutting_down"


@dataclass(frozen=True, slots=True)
class Granted:
    """The claim holds its lease from now on, whether or not its caller has heard of it yet."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Refused:
    """The claim is out of the queue and holds nothing."""

    waiter: Waiter
    reason: Refusal


Decision: TypeAlias = Granted | Refused


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A lease as status shows it."""

    slot: int | None
    operation: Operation
    age_s: float


@dataclass(frozen=True, slots=True)
class WaiterView:
    """A waiter as status shows it; positions count from 1.

    `waits_for` names what must end or move on first: every lease that is out ("lease:0" by slot, "lease:exclusive" for
    the whole model), then the waiter directly before this one ("waiter:1" by position). That one stands for all who
    wait before it: to list them for each waiter would take space with the square of the queue.
    """

    position: int
    operation: Operation
    age_s: float
    waits_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateView:
    """The whole gate at one moment. `waiting` is the true count, also where `queue` was cut short."""

    capacity: int
    active_slots: int
    queued_requests: int
    waiting: int
    leases: tuple[LeaseView, ...]
    queue: tuple[WaiterView, ...]


@dataclass(frozen=True, slots=True)
class GateState:
    """All that a gate goes by: its leases, and who waits in their order. `entered` is the next claim's number."""

    name: str
    capacity: int
    entered: int = 0
    leases: tuple[Lease, ...] = ()
    waiting: tuple[Waiter, ...] = ()


class Gate:
    """Strict FIFO over `capacity` slots with exclusive barriers in it."""

    def __init__(self, name: str, capacity: int) -> None:
        self.name = name
        self._free = _all_free(capacity)
        self.capacity = capacity
        self.queued_requests = 0
        self._entered = 0
        self._shared: dict[int, Lease] = {}
        self._exclusive: Lease | None = None
        # An OrderedDict unlinks anywhere and reads its head in O(1); a dict would rescan its deleted head.
        self._waiting: OrderedDict[int, Waiter] = OrderedDict()
        self._deadlines: list[tuple[float, int]] = []

    @property
    def active_slots(self) -> int:
        """How many slots are leased; 0 under an exclusive lease."""
        return len(self._shared)

    @property
    def is_idle(self) -> bool:
        """Whether nobody holds a lease and nobody waits."""
        return not self._waiting and not self._occupied()

    def submit(self, operation: Operation, now: float, timeout_s: float) -> tuple[Waiter, list[Decision]]:
        """Enter a claim that waits `timeout_s` at most, 0 without bound. The decisions may concern others as well."""
        if not 0 <= timeout_s < math.inf:
            raise InvariantError(f"a claim waits 0 s (no bound) or longer, not {timeout_s}")
        # A waiter that has expired no longer stands before the newcomer. Nothing else can have changed since.
        decisions = self._advance(now) if self._is_due(now) else []
        deadline = now + timeout_s if timeout_s else math.inf
        waiter = Waiter(self.name, self._entered, operation, now, deadline)
        self._entered += 1
        if not self._waiting and self._admits(operation.kind):
            decisions.append(self._grant(waiter, now))
        elif self.is_hopeless(now, timeout_s):
            decisions.append(Refused(waiter, Refusal.OVERDUE))
        else:
            self._enqueue(waiter)
        return waiter, decisions

    def is_hopeless(self, now: float, timeout_s: float) -> bool:
        """Whether a claim with this bound that entered now would be refused at once, if it could not be granted."""
        return is_hopeless((it.since for it in self._leases()), now, timeout_s)

    def try_exclusive(self, operation: Operation, now: float) -> tuple[Lease | None, list[Decision]]:
        """Take the whole model if it is idle and nobody waits for it; never wait (rule.retire_try_acquire).

        Raises InvariantError for an operation that does not manage.
        """
        if operation.kind is not ClaimKind.MANAGEMENT:
            raise InvariantError(f"{operation} has no use for the whole model")
        decisions = self._advance(now)
        if not self.is_idle:
            return None, decisions
        waiter = Waiter(self.name, self._entered, operation, now, math.inf)
        self._entered += 1
        return self._grant(waiter, now).lease, decisions

    def release(self, lease: Lease, now: float) -> list[Decision]:
        """End a lease; raises InvariantError for one that is not out."""
        if lease is self._exclusive:
            self._exclusive = None
        elif lease.slot is not None and self._shared.get(lease.slot) is lease:
            del self._shared[lease.slot]
            heapq.heappush(self._free, lease.slot)
        else:
            raise InvariantError(f"{lease} is not out")
        return self._advance(now)

    def resize(self, lease: Lease, capacity: int, now: float) -> list[Decision]:
        """Set the number of slots under this gate's exclusive lease; after its release, those who wait fill them.

        Raises InvariantError for any other lease, and for a capacity that no gate can have.
        """
        if lease is not self._exclusive:
            raise InvariantError(f"{lease} is no exclusive lease of {self.name} that is out")
        self._free = _all_free(capacity)
        self.capacity = capacity
        return self._advance(now)

    def withdraw(self, waiter: Waiter, now: float) -> list[Decision]:
        """Take a claim out of the queue; raises InvariantError for one that does not wait."""
        if self._waiting.get(waiter.number) is not waiter:
            raise InvariantError(f"{waiter} does not wait")
        self._leave_queue(waiter)
        return self._advance(now)

    def dismiss(self, now: float, spare: Collection[Waiter] = ()) -> list[Decision]:
        """Refuse all who wait but for those of `spare`; leases stay out, and whoever is due expires first."""
        decisions = self._advance(now)
        for waiter in [it for it in self._waiting.values() if it not in spare]:
            self._leave_queue(waiter)
            decisions.append(Refused(waiter, Refusal.SHUTTING_DOWN))
        return decisions + self._advance(now)

    def expire(self, now: float) -> list[Decision]:
        """Refuse those whose deadline has come, and grant those whom that sets free."""
        return self._advance(now)

    def next_deadline(self) -> float | None:
        """When `expire` will next have something to do; None while nobody waits with a bound."""
        while self._deadlines and self._deadlines[0][1] not in self._waiting:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def snapshot(self, now: float, limit: int = 1000) -> GateView:
        """The gate as it stands, with at most `limit` waiters listed."""
        leases = sorted(self._leases(), key=lambda it: it.slot or 0)
        held = tuple("lease:exclusive" if it.slot is None else f"lease:{it.slot}" for it in leases)
        queue = enumerate(islice(self._waiting.values(), limit), start=1)
        return GateView(
            capacity=self.capacity,
            active_slots=self.active_slots,
            queued_requests=self.queued_requests,
            waiting=len(self._waiting),
            leases=tuple(LeaseView(it.slot, it.waiter.operation, now - it.since) for it in leases),
            queue=tuple(
                WaiterView(at, it.operation, now - it.since, held if at == 1 else (*held, f"waiter:{at - 1}"))
                for at, it in queue
            ),
        )

    def state(self) -> GateState:
        """The whole of it, from which `restore` makes another that decides the same."""
        leases, waiting = tuple(self._leases()), tuple(self._waiting.values())
        return GateState(self.name, self.capacity, self._entered, leases, waiting)

    @classmethod
    def restore(cls, state: GateState) -> "Gate":
        """A gate that stands as another did."""
        gate = cls(state.name, state.capacity)
        gate._entered = state.entered
        gate._shared = {it.slot: it for it in state.leases if it.slot is not None}
        gate._exclusive = next((it for it in state.leases if it.slot is None), None)
        gate._free = [slot for slot in _all_free(state.capacity) if slot not in gate._shared]
        for waiter in state.waiting:
            gate._enqueue(waiter)
        return gate

    def __repr__(self) -> str:
        held = "exclusive" if self._exclusive else f"{self.active_slots}/{self.capacity}"
        return f"<Gate {self.name} {held} +{len(self._waiting)}>"

    def _advance(self, now: float) -> list[Decision]:
        decisions: list[Decision] = []
        while self._is_due(now):
            waiter = self._waiting.get(heapq.heappop(self._deadlines)[1])
            if waiter is not None:
                self._leave_queue(waiter)
                decisions.append(Refused(waiter, Refusal.EXPIRED))
        while self._waiting:
            head = next(iter(self._waiting.values()))
            if not self._admits(head.operation.kind):
                break
            self._leave_queue(head)
            decisions.append(self._grant(head, now))
        return decisions

    def _is_due(self, now: float) -> bool:
        return bool(self._deadlines) and self._deadlines[0][0] <= now

    def _admits(self, kind: ClaimKind) -> bool:
        """Whether a claim with nobody before it can have its lease now."""
        if kind is ClaimKind.REQUEST:
            return self._exclusive is None and bool(self._free)
        return not self._occupied()

    def _grant(self, waiter: Waiter, now: float) -> Granted:
        if waiter.operation.kind is ClaimKind.MANAGEMENT:
            lease = self._exclusive = Lease(waiter, None, now)
        else:
            slot = heapq.heappop(self._free)
            lease = self._shared[slot] = Lease(waiter, slot, now)
        return Granted(lease)

    def _occupied(self) -> bool:
        return self._exclusive is not None or bool(self._shared)

    def _leases(self) -> Collection[Lease]:
        """The leases that are out, in no order."""
        return [self._exclusive] if self._exclusive else self._shared.values()

    def _enqueue(self, waiter: Waiter) -> None:
        self._waiting[waiter.number] = waiter
        self.queued_requests += waiter.operation.kind is ClaimKind.REQUEST
        if waiter.deadline < math.inf:
            heapq.heappush(self._deadlines, (waiter.deadline, waiter.number))
        if len(self._deadlines) > 2 * len(self._waiting) + _SLACK:
            # Deadlines of those who left early are dropped here, in bulk, so that leaving itself costs O(1).
            self._deadlines = [(it.deadline, it.number) for it in self._waiting.values() if it.deadline < math.inf]
            heapq.heapify(self._deadlines)

    def _leave_queue(self, waiter: Waiter) -> None:
        del self._waiting[waiter.number]
        self.queued_requests -= waiter.operation.kind is ClaimKind.REQUEST


def _all_free(capacity: int) -> list[int]:
    """The slots of a gate that has leased none of them, as a heap."""
    if not 1 <= capacity <= MAX_SLOTS:
        raise InvariantError(f"a gate has 1..{MAX_SLOTS} slots, not {capacity}")
    return list(range(capacity))
