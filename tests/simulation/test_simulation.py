"""Thousands of seeded histories on whole runtimes, in virtual time: everything that must hold is checked at each step.

`ANTIPHON_SEEDS=0:10000` in the environment asks for other seeds. A seed that fails is told with its minimal history.
"""

import logging
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from antiphon.residency.lifecycle import TRANSITIONS
from sim_history import draw, minimal
from sim_play import play
from sim_refusals import REASONS
from sim_tally import Tally, played

SEEDS = range(*map(int, os.environ.get("ANTIPHON_SEEDS", "0:5000").split(":")))
BLOCK = 100


@pytest.fixture(scope="module")
def tally() -> Tally:
    blocks = [SEEDS[at : at + BLOCK] for at in range(0, len(SEEDS), BLOCK)]
    whole = Tally()
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as processes:
        for block in processes.map(played, blocks):
            whole.failed += block.failed
            whole.unlike += block.unlike
            whole.edges += block.edges
            whole.reasons += block.reasons
            whole.answered += block.answered
    print(f"{len(SEEDS)} seeds, {whole.answered} answers, {dict(whole.reasons)}")
    return whole


def test_every_history_is_in_order(tally):
    if not tally.failed:
        return
    logging.disable(logging.CRITICAL)
    seed = tally.failed[0]
    history = minimal(draw(seed), lambda it: bool(play(it).findings))
    logging.disable(logging.NOTSET)
    findings = play(history).findings or play(draw(seed)).findings
    pytest.fail(f"{len(tally.failed)} seeds fail: {tally.failed[:20]}. {seed} comes down to:\n{history}\n{findings}")


def test_every_journal_replays_to_the_same_decisions(tally):
    assert tally.unlike == []


def test_every_edge_of_the_lifecycle_is_taken_a_hundred_times(tally):
    assert {edge: tally.edges[edge] for edge in TRANSITIONS if tally.edges[edge] < 100} == {}


def test_every_reason_to_refuse_arises_a_hundred_times(tally):
    assert {reason: tally.reasons[reason] for reason in REASONS if tally.reasons[reason] < 100} == {}


def test_there_are_more_answers_than_histories(tally):
    assert tally.answered > len(SEEDS)
