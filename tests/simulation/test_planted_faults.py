"""Faults that somebody could well write, planted in the server: the simulation finds each, and in few events."""

import logging
from dataclasses import replace
from functools import partial

import pytest

from antiphon.admission.gate import Gate
from antiphon.runtime.api import Timing
from antiphon.runtime.parallel import ParallelServerState
from antiphon.vocabulary.states import ClaimKind, Operation
from sim_history import draw, minimal
from sim_play import play


class BargingGate(Gate):
    """A request that finds a free slot takes it, whoever waits."""

    def submit(self, operation, now, timeout_s):
        waiting = self._waiting
        if operation.kind is ClaimKind.REQUEST and self._free and not self._exclusive:
            self._waiting = type(waiting)()
        try:
            return super().submit(operation, now, timeout_s)
        finally:
            if self._waiting is not waiting:
                waiting.update(self._waiting)
                self._waiting = waiting


class DeafGate(Gate):
    """A waiter that expires does not free those behind it."""

    def expire(self, now):
        decisions = super().expire(now)
        return [it for it in decisions if not hasattr(it, "lease")]


class HastyRuntime(ParallelServerState):
    """A client that leaves takes its lease along while the engine still runs."""

    async def run(self, inference, finish):
        resident = self._residents.find(inference.model_id)
        lease = await self._claim(resident, Operation.INFER, inference.busy_timeout_ms)
        try:
            pool = await self._residents.pool(resident)
            result = await pool.host.run(lease.slot, inference.request)
            return await finish(result, Timing())
        finally:
            self._desk.release(lease)


class GenerousRuntime(ParallelServerState):
    """One model more than the limit stays in memory."""

    def __init__(self, ports):
        limits = replace(ports.limits, max_loaded_models=ports.limits.max_loaded_models + 1)
        super().__init__(replace(ports, limits=limits) if ports.limits.max_loaded_models else ports)


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("mutated", "words", "most"),
    [
        (partial(play, gate=BargingGate), "the oracle says", 4),
        (partial(play, gate=DeafGate), "", 4),
        (partial(play, parallel=HastyRuntime), "run was cancelled", 5),
        (partial(play, parallel=GenerousRuntime), "are resident", 4),
    ],
    ids=["barging", "deaf", "hasty", "generous"],
)
def test_a_planted_fault_is_found_and_comes_down_to_few_events(mutated, words, most):
    def fails(history):
        return any(words in finding for finding in mutated(history).findings)

    seed = next(seed for seed in range(3000) if fails(draw(seed)))
    history = minimal(draw(seed), fails)
    assert fails(history)
    assert not play(history).findings
    assert len(history.events) <= most, str(history)


def test_a_history_is_the_same_each_time():
    first, second = play(draw(7)), play(draw(7))
    assert first.journal.lines == second.journal.lines
    assert first.journal.lines
