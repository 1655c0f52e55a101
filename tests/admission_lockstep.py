"""A gate and the oracle, driven side by side: every answer is compared whole, and the laws are checked on top.

The laws (`_obey`) are read off the decisions alone, so they hold even where gate and oracle should agree on a mistake.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from types import ModuleType

from admission_oracle import Oracle, Outcome
from antiphon.admission import gate as shipped
from antiphon.admission.gate import Decision, Gate, GateView, Lease, Waiter
from antiphon.vocabulary.errors import InvariantError
from antiphon.vocabulary.states import Operation


class Lockstep:
    """One gate beside one oracle. `core` is the gate's module, so that a mutant can be driven in its place.

    `waiters` and `leases` are those who wait and hold, by number.
    """

    def __init__(self, capacity: int, core: ModuleType = shipped) -> None:
        self.core = core
        self.gate: Gate = core.Gate("model", capacity)
        self.oracle = Oracle(capacity)
        self.now = 0.0
        self.waiters: dict[int, Waiter] = {}
        self.leases: dict[int, Lease] = {}
        self._last_granted = -1

    def copy(self) -> "Lockstep":
        """An independent twin: containers are copied, the claims in them are values and shared."""
        twin = Lockstep.__new__(Lockstep)
        vars(twin).update(vars(self))
        twin.gate = type(self.gate).__new__(type(self.gate))
        vars(twin.gate).update(
            {name: it.copy() if isinstance(it, dict | list) else it for name, it in vars(self.gate).items()}
        )
        twin.oracle = self.oracle.copy()
        twin.waiters = dict(self.waiters)
        twin.leases = dict(self.leases)
        return twin

    def pass_time(self, seconds: float) -> None:
        """Let time pass without telling the gate: the timer is late until `expire`."""
        self.now += seconds

    def submit(self, operation: Operation, timeout_s: float) -> None:
        """Enter a claim."""
        waiter, decisions = self.gate.submit(operation, self.now, timeout_s)
        assert waiter.number == self.oracle.entries, "numbers count entries"
        self.waiters[waiter.number] = waiter
        self._compare(decisions, self.oracle.submit(operation.value, self.now, timeout_s))

    def try_exclusive(self, operation: Operation) -> None:
        """Try to take the whole model."""
        lease, decisions = self.gate.try_exclusive(operation, self.now)
        taken, outcomes = self.oracle.try_exclusive(operation.value, self.now)
        assert (lease is not None) == taken
        following, _ = self.copy().gate.submit(Operation.INFER, self.now, 0)
        assert following.number == self.oracle.entries, "numbers count entries"
        self._compare(decisions, outcomes, then=lease)

    def release(self, number: int) -> None:
        """End a lease; ending it again must fail, also where its slot has passed to another."""
        lease = self.leases.pop(number)
        decisions = self.gate.release(lease, self.now)
        _raises(lambda: self.gate.release(lease, self.now))
        self._compare(decisions, self.oracle.release(number, self.now))

    def resize(self, capacity: int) -> None:
        """Change the number of slots; somebody has the whole model."""
        (lease,) = self.leases.values()
        decisions = self.gate.resize(lease, capacity, self.now)
        self._compare(decisions, self.oracle.resize(capacity, self.now))

    def withdraw(self, number: int) -> None:
        """Take a waiter out; taking it out again must fail."""
        waiter = self.waiters.pop(number)
        decisions = self.gate.withdraw(waiter, self.now)
        _raises(lambda: self.gate.withdraw(waiter, self.now))
        self._compare(decisions, self.oracle.withdraw(number, self.now))

    def dismiss(self, spared: Collection[int] = ()) -> None:
        """Send all who wait away, but for these."""
        decisions = self.gate.dismiss(self.now, [self.waiters[number] for number in spared])
        self._compare(decisions, self.oracle.dismiss(spared, self.now))

    def expire(self) -> None:
        """Tell the gate the time."""
        self._compare(self.gate.expire(self.now), self.oracle.expire(self.now))

    def check_queries(self) -> None:
        """Compare what only reads; on a twin, because `next_deadline` may tidy up."""
        gate = self.copy().gate
        assert gate.next_deadline() == self.oracle.next_deadline()
        assert gate.is_idle == (not self.oracle.present)
        assert _flat(gate.snapshot(self.now, limit=1))[:5] == self.oracle.snapshot(self.now)[:5]
        assert len(gate.snapshot(self.now, limit=1).queue) <= 1
        assert [list(it.waits_for) for it in gate.snapshot(self.now).queue] == self.oracle.waits_for()

    def check_refusals(self) -> None:
        """Offer what must be refused: to withdraw a holder or another gate's claim, to end a copy, a bad timeout.

        And to resize with a slot's lease, with none that is out, or to what no gate can be.
        """
        before = self.copy()
        number = next(iter(self.waiters), 0)
        foreign = self.core.Waiter("other", number, Operation.INFER, 0.0, float("inf"))
        _raises(lambda: self.gate.withdraw(foreign, self.now))
        _raises(lambda: self.gate.submit(Operation.INFER, self.now, -1.0))
        for lease in self.leases.values():
            _raises(partial(self.gate.withdraw, lease.waiter, self.now))
            _raises(partial(self.gate.release, replace(lease), self.now))
            _raises(partial(self.gate.resize, replace(lease), self.gate.capacity + 1, self.now))
            for capacity in (0, 17) if lease.slot is None else (1, 2):
                _raises(partial(self.gate.resize, lease, capacity, self.now))
        assert vars(self.gate) == vars(before.gate), "a refused call changes nothing"

    def _compare(self, decisions: list[Decision], outcomes: list[Outcome], then: Lease | None = None) -> None:
        told = [self._note(decision) for decision in decisions]
        assert told == outcomes
        if then is not None:
            self._hold(then)
        assert _flat(self.gate.snapshot(self.now)) == self.oracle.snapshot(self.now)
        self._obey()

    def _note(self, decision: Decision) -> Outcome:
        match decision:
            case self.core.Granted(lease):
                number = lease.waiter.number
                assert number == min(self.waiters), "FIFO: nobody older waits"
                assert self.waiters.pop(number) is lease.waiter, "decided once, and only while it waits"
                self._hold(lease)
                return ("granted", number, lease.slot, lease.since)
            case self.core.Refused(waiter, reason):
                assert self.waiters.pop(waiter.number) is waiter, "decided once, and only while it waits"
                _raises(lambda: self.gate.withdraw(waiter, self.now))
                return ("refused", waiter.number, reason.value)
        raise AssertionError(f"{decision} is no decision")

    def _hold(self, lease: Lease) -> None:
        assert lease.waiter.number > self._last_granted, "no barging: grants follow the order of entry"
        assert lease.waiter.number not in self.leases, "no double grant"
        self._last_granted = lease.waiter.number
        self.leases[lease.waiter.number] = lease

    def _obey(self) -> None:
        slots = [lease.slot for lease in self.leases.values()]
        assert slots == [None] or None not in slots, "an exclusive lease is alone"
        assert len(set(slots)) == len(slots) <= self.gate.capacity, "a slot has one holder"
        assert all(waiter.deadline > self.now for waiter in self.waiters.values()), "nobody waits beyond its deadline"
        if self.waiters:
            oldest = self.waiters[min(self.waiters)]
            if oldest.operation is Operation.INFER:
                assert slots == [None] or len(slots) == self.gate.capacity, "nobody is left waiting before a free slot"
            else:
                assert slots, "nobody is left waiting before an empty model"


def _flat(view: GateView) -> tuple[object, ...]:
    return (
        view.capacity,
        view.active_slots,
        view.queued_requests,
        view.waiting,
        tuple((it.slot, it.operation, it.age_s) for it in view.leases),
        tuple((it.position, it.operation, it.age_s) for it in view.queue),
    )


def _raises(call: Callable[[], object]) -> None:
    try:
        call()
    except InvariantError:
        return
    raise AssertionError("an illegal call was accepted")
