"""The lease desk alone: no model, no engine, time in the test's hand."""

import asyncio
import gc
from contextlib import suppress

import pytest

from antiphon.runtime.leases import LeaseDesk
from antiphon.testing import ManualClock
from antiphon.vocabulary.errors import InvariantError, ServerBusy
from antiphon.vocabulary.states import Operation

INFER, UNLOAD = Operation.INFER, Operation.UNLOAD


class Desk:
    """A desk with one gate, and the claims that a test makes at it."""

    def __init__(self, capacity=1):
        self.clock = ManualClock()
        self.desk = LeaseDesk(self.clock)
        self.desk.open_gate("m", capacity)

    def claim(self, operation=INFER, timeout_s=0.0):
        return asyncio.ensure_future(self.desk.acquire("m", operation, timeout_s))

    def standing(self):
        view = self.desk.view("m")
        return [lease.operation for lease in view.leases], [waiter.operation for waiter in view.queue]


async def turn():
    """Let everything run that can run now."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_order_of_calls_is_the_order_of_the_queue_whenever_they_are_awaited():
    desk = Desk()
    held = await desk.claim()
    first = desk.desk.acquire("m", UNLOAD, 0)
    second = desk.claim()
    await turn()
    assert desk.standing() == ([INFER], [UNLOAD, INFER])
    desk.desk.release(held)
    manager = await first
    assert not second.done()
    desk.desk.release(manager)
    desk.desk.release(await second)
    assert desk.standing() == ([], [])


async def test_a_claim_that_is_cancelled_after_its_grant_gives_the_lease_back():
    desk = Desk()
    held = await desk.claim()
    claim = desk.claim()
    await turn()
    desk.desk.release(held)  # granted here, and not heard of before the cancellation
    claim.cancel()
    await turn()
    assert claim.cancelled()
    assert desk.standing() == ([], [])


async def test_a_lease_given_back_by_a_cancelled_claim_goes_to_the_next():
    desk = Desk()
    held = await desk.claim()
    claim, behind = desk.claim(), desk.claim()
    await turn()
    desk.desk.release(held)
    claim.cancel()
    desk.desk.release(await behind)
    assert desk.standing() == ([], [])


async def test_a_grant_to_a_claim_cancelled_in_the_same_turn_goes_on_to_the_next():
    desk = Desk()
    held = await desk.claim()
    claim, behind = desk.claim(), desk.claim()
    await turn()
    claim.cancel()  # its coroutine has not run yet, so the gate still counts it as waiting
    desk.desk.release(held)
    lease = await behind
    await turn()
    assert desk.standing() == ([INFER], [])
    desk.desk.release(lease)


async def test_a_barrier_that_is_cancelled_lets_those_behind_it_advance():
    desk = Desk(capacity=2)
    held = await desk.claim()
    barrier, behind = desk.claim(UNLOAD), desk.claim()
    await turn()
    assert desk.standing() == ([INFER], [UNLOAD, INFER])
    barrier.cancel()
    lease = await behind
    assert desk.standing() == ([INFER, INFER], [])
    desk.desk.release(lease)
    desk.desk.release(held)


async def test_a_claim_refused_while_it_is_cancelled_leaves_nothing_behind():
    desk = Desk()
    held = await desk.claim()
    claim = desk.claim(timeout_s=5)
    await turn()
    claim.cancel()
    desk.clock.advance(5)
    await turn()
    assert claim.cancelled()
    assert not desk.desk._pending
    desk.desk.release(held)


async def test_a_claim_cancelled_after_its_refusal_leaves_nothing_behind():
    desk = Desk()
    held = await desk.claim()
    claim = desk.claim(timeout_s=5)
    await turn()
    desk.clock.advance(5)
    claim.cancel()
    await turn()
    assert claim.cancelled()
    assert desk.standing() == ([INFER], [])
    desk.desk.release(held)


async def test_a_gate_has_one_alarm_and_it_is_for_the_next_deadline():
    desk = Desk()
    held = await desk.claim()
    late, soon, later = desk.claim(timeout_s=9), desk.claim(timeout_s=3), desk.claim(timeout_s=12)
    await turn()
    assert desk.clock.statistics().pending == (1003.0,)
    desk.clock.advance(3)
    assert desk.clock.statistics().pending == (1009.0,)
    with pytest.raises(ServerBusy):
        await soon
    desk.desk.release(held)
    desk.desk.release(await late)
    desk.desk.release(await later)


async def test_two_gates_have_alarms_of_their_own():
    desk = Desk()
    desk.desk.open_gate("n", 1)
    held = [await desk.claim(), await desk.desk.acquire("n", INFER, 0)]
    claims = [desk.claim(timeout_s=4), asyncio.ensure_future(desk.desk.acquire("n", INFER, 2))]
    await turn()
    assert desk.clock.statistics().pending == (1002.0, 1004.0)
    desk.clock.advance(4)
    assert [type(it) for it in await asyncio.gather(*claims, return_exceptions=True)] == [ServerBusy] * 2
    for lease in held:
        desk.desk.release(lease)


async def test_an_expired_barrier_frees_those_behind_it():
    desk = Desk(capacity=2)
    held = await desk.claim()
    barrier, behind = desk.claim(UNLOAD, timeout_s=5), desk.claim()
    await turn()
    desk.clock.advance(5)
    lease = await behind
    with pytest.raises(ServerBusy, match="within 5000 ms"):
        await barrier
    desk.desk.release(lease)
    desk.desk.release(held)


async def test_a_claim_behind_nothing_but_overdue_work_is_refused_at_once():
    desk = Desk()
    held = await desk.claim()
    desk.clock.advance(6)
    with pytest.raises(ServerBusy, match="longer than 5000 ms"):
        await desk.claim(timeout_s=5)
    desk.desk.release(held)


async def test_a_lease_is_released_once():
    desk = Desk()
    lease = await desk.claim()
    desk.desk.release(lease)
    with pytest.raises(InvariantError):
        desk.desk.release(lease)
    assert desk.standing() == ([], [])


async def test_the_lease_of_a_block_ends_with_it_also_on_an_error():
    async def fail_within():
        with desk.desk.holding(await desk.desk.acquire("m", UNLOAD, 0)):
            assert desk.standing() == ([UNLOAD], [])
            raise LookupError

    desk = Desk()
    with pytest.raises(LookupError):
        await fail_within()
    assert desk.standing() == ([], [])


async def test_a_claim_tells_its_lease_before_it_is_awaited_and_is_awaited_once():
    desk = Desk()
    granted, waiting = desk.desk.acquire("m", INFER, 0), desk.desk.acquire("m", INFER, 0)
    assert (granted.lease is not None, waiting.lease) == (True, None)
    desk.desk.release(await granted)
    assert granted.lease is None
    with pytest.raises(InvariantError):
        await granted
    desk.desk.release(await waiting)


async def test_barriers_are_entered_at_every_gate_or_at_none():
    desk = Desk()
    desk.desk.open_gate("n", 1)
    held = await desk.claim()
    with pytest.raises(InvariantError):
        desk.desk.publish(["m", "n", "nowhere"], UNLOAD)
    assert desk.standing() == ([INFER], [])
    first, second = desk.desk.publish(["n", "m"], UNLOAD)
    assert (first.lease is not None, second.lease) == (True, None)
    desk.desk.release(held)
    desk.desk.release(await first)
    desk.desk.release(await second)


async def test_a_model_is_told_to_be_idle_once_its_last_lease_is_back_and_nobody_waits():
    desk, told = Desk(capacity=2), []
    desk.desk.on_idle = told.append
    first, second = await desk.claim(), await desk.claim()
    third = desk.claim()
    await turn()
    desk.desk.release(first)
    desk.desk.release(second)
    assert told == []
    desk.desk.release(await third)
    assert told == ["m"]


async def test_a_new_gate_can_be_held_before_anyone_sees_it_and_be_taken_back():
    desk = Desk()
    lease = desk.desk.open_held_gate("n", 2, Operation.LOAD)
    waiting = desk.desk.acquire("n", INFER, 0)
    assert waiting.lease is None
    desk.desk.release(lease)
    desk.desk.release(await waiting)
    desk.desk.drop_gate(desk.desk.open_held_gate("o", 2, Operation.LOAD))
    desk.desk.open_gate("o", 1)


async def test_a_refusal_tells_when_to_come_back_by_the_measured_runs_and_the_queue():
    desk = Desk()
    held = await desk.claim()
    desk.clock.advance(2)
    with pytest.raises(ServerBusy) as unmeasured:
        await desk.claim(timeout_s=1)
    assert unmeasured.value.retry_after_s == 1
    desk.desk.run_times("m").note_run(10)
    waiting = [desk.claim(), desk.claim(timeout_s=3)]
    await turn()
    desk.clock.advance(3)
    with pytest.raises(ServerBusy) as measured:
        await waiting[1]
    assert measured.value.retry_after_s == 15  # 5 s of the run that is out, then the one that waits
    desk.desk.release(held)
    desk.desk.release(await waiting[0])


async def test_a_closed_desk_has_no_alarm():
    desk = Desk()
    held = await desk.claim()
    claim = desk.claim(timeout_s=5)
    await turn()
    desk.desk.close()
    assert desk.clock.statistics().pending == ()
    claim.cancel()
    await turn()
    desk.desk.release(held)


async def test_a_refusal_does_not_refer_to_itself():
    desk = Desk()
    held = await desk.claim()
    desk.clock.advance(6)
    gc.collect()
    gc.disable()
    try:
        with suppress(ServerBusy):
            await desk.desk.acquire("m", INFER, 5)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        assert not [it for it in gc.garbage if isinstance(it, ServerBusy)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    desk.desk.release(held)
