"""Long random histories beside the oracle: up to 16 slots, hundreds of waiters, times that are no round numbers."""

from collections.abc import Collection

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from admission_lockstep import Lockstep
from antiphon.vocabulary.spec import MAX_SLOTS
from antiphon.vocabulary.states import Operation

# A bound is often as long as time often passes: so that deadlines come, and some of them exactly.
_TIMEOUTS = st.sampled_from([0.0, 0.1, 0.25, 0.3, 1.0]) | st.floats(min_value=0.001, max_value=3.0)
_PAUSES = st.sampled_from([0.1, 0.2, 0.25, 0.3, 1.0]) | st.floats(min_value=0.0, max_value=1.0)
_OPERATIONS = st.sampled_from([Operation.INFER] * 4 + [Operation.LOAD, Operation.UNLOAD, Operation.BULK_UNLOAD])
_CROWD = 400
"""Beyond this many waiters the rescanning oracle only costs time."""
_PICKS = st.integers(min_value=0, max_value=10_000)


class GateMachine(RuleBasedStateMachine):
    """One gate and its oracle; each rule is one call or a burst of one kind of call."""

    @initialize(capacity=st.integers(min_value=1, max_value=MAX_SLOTS))
    def open(self, capacity: int) -> None:
        self.pair = Lockstep(capacity)

    @rule(operation=_OPERATIONS, timeout_s=_TIMEOUTS)
    def submit(self, operation: Operation, timeout_s: float) -> None:
        self.pair.submit(operation, timeout_s)

    @rule(
        count=st.integers(min_value=2, max_value=150), timeout_s=_TIMEOUTS, every=st.integers(min_value=2, max_value=70)
    )
    def submit_many(self, count: int, timeout_s: float, every: int) -> None:
        for place in range(min(count, _CROWD - len(self.pair.waiters))):
            self.pair.submit(Operation.INFER if place % every else Operation.UNLOAD, timeout_s)

    @rule()
    def try_exclusive(self) -> None:
        self.pair.try_exclusive(Operation.EVICT)

    @rule(pick=_PICKS, then_pause_s=_PAUSES)
    def release(self, pick: int, then_pause_s: float) -> None:
        if self.pair.leases:
            self.pair.release(_pick(self.pair.leases, pick))
            self.pair.pass_time(then_pause_s)

    @rule()
    def release_everything_that_is_held_now(self) -> None:
        for number in list(self.pair.leases):
            self.pair.release(number)

    @rule(capacity=st.integers(min_value=1, max_value=MAX_SLOTS))
    def resize(self, capacity: int) -> None:
        if any(lease.slot is None for lease in self.pair.leases.values()):
            self.pair.resize(capacity)

    @rule(pick=_PICKS)
    def withdraw(self, pick: int) -> None:
        if self.pair.waiters:
            self.pair.withdraw(_pick(self.pair.waiters, pick))

    @rule(stride=st.integers(min_value=2, max_value=5))
    def withdraw_many(self, stride: int) -> None:
        for number in sorted(self.pair.waiters)[::stride]:
            if number in self.pair.waiters:
                self.pair.withdraw(number)

    @rule(stride=st.integers(min_value=1, max_value=5))
    def dismiss_all_but_some(self, stride: int) -> None:
        self.pair.dismiss(sorted(self.pair.waiters)[stride - 1 :: stride] if stride > 1 else ())

    @rule(pause_s=_PAUSES)
    def pass_time(self, pause_s: float) -> None:
        self.pair.pass_time(pause_s)

    @rule()
    def expire(self) -> None:
        self.pair.expire()

    @rule()
    def look(self) -> None:
        self.pair.check_queries()
        self.pair.check_refusals()

    @rule()
    def ask_for_the_next_deadline(self) -> None:
        assert self.pair.gate.next_deadline() == self.pair.oracle.next_deadline()


def _pick(numbers: Collection[int], pick: int) -> int:
    return sorted(numbers)[pick % len(numbers)]


GateMachine.TestCase.settings = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=50,
    stateful_step_count=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestRandomHistories = GateMachine.TestCase
